package plugins_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/service/plugins"
)

// fakeNPM puts a program named npm first in PATH. It knows @scope/weather 1.2.0 and records its arguments.
func fakeNPM(t *testing.T) (asked func() string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: its npm is a shell script; run it on another system than Windows")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "package.tgz"), tarball(t,
		entry("package/"+plugins.ManifestFile, manifest), entry("package/run", ""),
		entry("package/package.json", `{"name":"@scope/weather","version":"1.2.0","scripts":{"install":"touch ran"},"dependencies":{"a":"^1.0.0"}}`),
	), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `#!/bin/sh
here=$(dirname "$0")
echo "$@" >> "$here/asked"
env | grep -E 'LEAT_|ignore_scripts' >> "$here/asked"
case "$1 $*" in
view*missing*) echo '{"error":{"code":"E404","summary":"not in this registry"}}'; exit 1;;
view*) echo '"1.2.0"';;
pack*broken*) echo "npm error the disk is full" >&2; exit 1;;
pack*) for a in "$@"; do case "$a" in --pack-destination=*) cp "$here/package.tgz" "${a#*=}/scope-weather-1.2.0.tgz";; esac; done; echo '[]';;
install*) mkdir -p node_modules/a && echo x > node_modules/a/index.js; [ ! -e "$here/link" ] || ln -s /etc node_modules/b; [ ! -e "$here/fail" ] || exit 7; echo '{}';;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "npm"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("LEAT_API_TOKEN", "s3cret")
	t.Setenv("npm_config_ignore_scripts", "false")
	t.Setenv("FAKE_NPM", dir)
	return func() string {
		b, err := os.ReadFile(filepath.Join(dir, "asked"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

func TestPackage(t *testing.T) {
	asked := fakeNPM(t)
	h := newHarness(t)
	p := h.must(plugins.Request{Name: "@scope/weather"})
	if got := h.phases(); !slices.Equal(got, all) {
		t.Errorf("phases %v", got)
	}
	if h.told[1].Plugin != "@scope/weather" || h.told[1].Message != "Downloading @scope/weather@1.2.0..." {
		t.Errorf("%+v", h.told[1])
	}
	if p.Origin != "npm:@scope/weather@1.2.0" || len(p.SHA256) != 64 {
		t.Errorf("%+v", p)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "node_modules/a/index.js")); err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(asked()) {
		words := strings.Fields(line)
		switch {
		case strings.Contains(line, "LEAT_"):
			t.Errorf("npm got the gateway's variables: %s", line)
		case words[0] == "npm_config_ignore_scripts=true":
		case !slices.Contains([]string{"view", "pack", "install"}, words[0]):
			t.Errorf("npm was called with %q", line)
		case words[0] != "view" && !slices.Contains(words, "--ignore-scripts"):
			t.Errorf("scripts may run: %q", line)
		}
	}
	for _, f := range h.contents() {
		if strings.HasSuffix(f, "archive") || strings.HasSuffix(f, "work") {
			t.Errorf("%s remains", f)
		}
	}
}

func TestPackageFails(t *testing.T) {
	fakeNPM(t)
	dir := os.Getenv("FAKE_NPM")
	h := newHarness(t)
	h.failed(plugins.Request{Name: "missing"}, "resolving", "not in this registry")
	h.failed(plugins.Request{Name: "broken"}, "downloading", "the disk is full")
	for mark, reason := range map[string]string{"fail": "exit status 7", "link": "b is neither a file nor a folder"} {
		if err := os.WriteFile(filepath.Join(dir, mark), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		h.failed(plugins.Request{Name: "@scope/weather", Version: "1.2.0"}, "installing-deps", reason)
		if err := os.Remove(filepath.Join(dir, mark)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	h.failed(plugins.Request{Name: "@scope/weather"}, "resolving", "without npm")
}

// Everything that would make npm fetch from elsewhere or run something is refused before npm is called.
func TestDependencies(t *testing.T) {
	asked := fakeNPM(t)
	h := newHarness(t)
	h.must(plugins.Request{Name: "@scope/weather"}) // so that it has been asked
	before := asked()
	for deps, reason := range map[string]string{
		`{"dependencies":{"a":"file:../../etc"}}`:                "only versions",
		`{"dependencies":{"a":"git+ssh://evil.example/a"}}`:      "only versions",
		`{"dependencies":{"a":"http://127.0.0.1/a.tgz"}}`:        "only versions",
		`{"dependencies":{"a":"someone/repository"}}`:            "only versions",
		`{"optionalDependencies":{"a":"link:../x"}}`:             "only versions",
		`{"peerDependencies":{"a":"npm:../x"}}`:                  "only versions",
		`{"dependencies":{"a":"1"},"overrides":{"a":"file:/x"}}`: "overrides and workspaces",
		`{"dependencies":{"a":"1"},"workspaces":["../x"]}`:       "overrides and workspaces",
		`{"dependencies":{"a":1}}`:                               "package.json",
	} {
		h.failed(plugins.Request{Folder: folder(t, map[string]string{plugins.ManifestFile: manifest, "run": "", "package.json": deps})}, "installing-deps", reason)
	}
	h.failed(plugins.Request{Folder: folder(t, map[string]string{
		plugins.ManifestFile: manifest, "run": "", "package.json": `{"dependencies":{"a":"1"}}`, ".npmrc": "node-options=--require ./evil.js",
	})}, "installing-deps", ".npmrc is not supported")
	if asked() != before {
		t.Error("npm was called")
	}
}

// The real npm with a local registry: no script of a package runs.
func TestRealNPMFull(t *testing.T) {
	full(t)
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("SKIPPED: npm is not installed; install it to have this run (apt-get install npm)")
	}
	ran := filepath.Join(t.TempDir(), "ran")
	scripts := fmt.Sprintf(`"scripts":{"preinstall":"touch %[1]s","install":"touch %[1]s","postinstall":"touch %[1]s","prepare":"touch %[1]s","prepack":"touch %[1]s"}`, ran)
	tarballs := map[string][]byte{
		"leat-weather": tarball(t, entry("package/"+plugins.ManifestFile, manifest), entry("package/run", ""),
			entry("package/package.json", `{"name":"leat-weather","version":"1.2.0",`+scripts+`,"dependencies":{"leat-clouds":"^1.0.0"}}`)),
		"leat-clouds": tarball(t, entry("package/package.json", `{"name":"leat-clouds","version":"1.2.0",`+scripts+`}`), entry("package/index.js", "")),
	}
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if file, ok := strings.CutSuffix(name, ".tgz"); ok {
			_, _ = w.Write(tarballs[file])
			return
		}
		if tarballs[name] == nil {
			http.NotFound(w, r)
			return
		}
		version := map[string]any{"name": name, "version": "1.2.0", "dist": map[string]string{"tarball": srv.URL + "/" + name + ".tgz"}, "hasInstallScript": true}
		if name == "leat-weather" {
			version["dependencies"] = map[string]string{"leat-clouds": "^1.0.0"}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "dist-tags": map[string]string{"latest": "1.2.0"}, "versions": map[string]any{"1.2.0": version}})
	}))
	defer srv.Close()
	t.Setenv("npm_config_registry", srv.URL+"/")
	t.Setenv("npm_config_cache", t.TempDir())
	h := newHarness(t)
	p := h.must(plugins.Request{Name: "leat-weather"})
	if _, err := os.Stat(filepath.Join(p.Dir, "node_modules/leat-clouds/index.js")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a script was run")
	}
	h.failed(plugins.Request{Name: "leat-none"}, "resolving", "npm: ")
	h.failed(plugins.Request{Name: "leat-weather", Version: "9.9.9"}, "resolving", "npm")
}
