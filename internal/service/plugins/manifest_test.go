package plugins_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/leat-dev/leat/internal/service/plugins"
)

// The schema in the documentation accepts the same manifests as the program.
func TestManifests(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../../docs/plugin.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	with := func(key, value string) string {
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(manifest), &m); err != nil {
			t.Fatal(err)
		}
		if m[key] = json.RawMessage(value); value == "" {
			delete(m, key)
		}
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for text, ok := range map[string]bool{
		manifest: true,
		with("$schema", `"./plugin.schema.json"`):     true,
		with("kind", `"channel"`):                     true,
		with("description", `"What it is"`):           true,
		with("command", `["python3","plugin.py"]`):    true,
		with("command", `["./bin/run"]`):              true,
		with("env", `["MODEL_API_KEY"]`):              true,
		with("protocol", ""):                          false,
		with("protocol", "2"):                         false,
		with("protocol", `"1"`):                       false,
		with("name", ""):                              false,
		with("name", `"@scope/weather"`):              false,
		with("name", `"a b"`):                         false,
		with("name", `"`+strings.Repeat("a", 65)+`"`): false,
		with("version", ""):                           false,
		with("version", `""`):                         false,
		with("version", `"1\n2"`):                     false,
		with("kind", `"model"`):                       false,
		with("kind", ""):                              false,
		with("command", ""):                           false,
		with("command", "[]"):                         false,
		with("command", `"run"`):                      false,
		with("command", `[""]`):                       false,
		with("command", `["/bin/sh"]`):                false,
		with("command", `["../run"]`):                 false,
		with("command", `["./../run"]`):               false,
		with("command", `["./a/../run"]`):             false,
		with("command", `["./a//run"]`):               false,
		with("command", `["bin/run"]`):                false,
		with("env", `["A=B"]`):                        false,
		with("env", `"A"`):                            false,
		with("scripts", `{"install":"x"}`):            false,
		with("description", `"two\nlines"`):           false,
		`[]`:                                          false,
		`"x"`:                                         false,
	} {
		_, err := plugins.ParseManifest([]byte(text))
		if (err == nil) != ok {
			t.Errorf("%s: %v, want valid: %v", text, err, ok)
		}
		v, jerr := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if jerr != nil {
			t.Fatal(jerr)
		}
		if err := schema.Validate(v); (err == nil) != ok {
			t.Errorf("%s: the schema says %v, want valid: %v", text, err, ok)
		}
	}
	for _, text := range []string{"", "{", manifest + "{}", manifest + "x", strings.Repeat(" ", 70_000) + manifest, "{\"name\":\"\xff\"}"} {
		if _, err := plugins.ParseManifest([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), plugins.ManifestFile+": ") {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// The examples in the repository are valid plugins.
func TestExamples(t *testing.T) {
	all, err := filepath.Glob("../../../examples/plugins/*/" + plugins.ManifestFile)
	if err != nil || len(all) < 3 {
		t.Fatalf("%q, %v", all, err)
	}
	for _, file := range all {
		dir, err := filepath.Abs(filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		p := newHarness(t).must(plugins.Request{Folder: dir})
		if _, err := os.Stat(filepath.Join(p.Dir, p.Manifest.Command[1])); err != nil {
			t.Error(err)
		}
	}
}

// A manifest whose program isn't among the files is refused.
func TestProgramMissing(t *testing.T) {
	h := newHarness(t)
	h.failed(plugins.Request{Folder: folder(t, map[string]string{plugins.ManifestFile: manifest})}, "validating", "./run is not among the plugin's files")
	h.failed(plugins.Request{Folder: folder(t, map[string]string{plugins.ManifestFile: manifest, "run/x": ""})}, "validating", "./run is not a regular file")
}
