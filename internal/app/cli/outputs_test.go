package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/app/outputs"
	"github.com/leat-dev/leat/internal/server"
)

// The key of an output in the configuration switches its routes on and off.
func TestOutputSwitches(t *testing.T) {
	for _, isFlipped := range []bool{false, true} {
		keys := ""
		for _, o := range outputs.List(outputs.Options{}) {
			if o.Name != "" && isFlipped {
				keys += fmt.Sprintf("%s: %v, ", o.Name, !o.Default)
			}
		}
		f := serveFile(t, "{agents: {main: {kind: demo, speed: 0}}, outputs: {"+keys+"}}")
		for _, o := range outputs.List(outputs.Options{}) {
			srv := server.New(server.Options{})
			general := len(srv.Routes())
			o.Register(srv, nil)
			route := srv.Routes()[general]
			srv.Close()
			// A path that has routes refuses unknown methods, and other paths don't exist.
			path := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(route.Pattern, "x")
			code, body := f.ask("TRACE", path, "")
			isOn := code == http.StatusMethodNotAllowed
			if want := o.Default != (isFlipped && o.Name != ""); isOn != want || !isOn && code != http.StatusNotFound {
				t.Errorf("output %q, flipped: %v: TRACE %s gets %d %s", o.Name, isFlipped, path, code, body)
			}
		}
	}
}

var docExample = regexp.MustCompile("(?s)```sh\n(.*?)```\n```text\n(.*?)```")

// The examples of commands that other programs start print what their pages say, and the settings there start the commands.
func TestDocumentedOutputs(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("SKIPPED: the examples are shell commands; install /bin/sh")
	}
	f := serveFile(t, `{agents: {main: {kind: demo, speed: 0}}}`)
	for _, page := range []string{"acp", "mcp"} {
		b, err := os.ReadFile("../../../docs/outputs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		examples := docExample.FindAllStringSubmatch(string(b), -1)
		if n := strings.Count(string(b), "```sh"); n != len(examples) || n == 0 {
			t.Fatalf("%s: %d examples, of which %d have an output", page, n, len(examples))
		}
		for _, e := range examples {
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", e[1])
			cmd.Env = append(os.Environ(), "LEAT_URL="+f.URL)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v", e[1], err)
			}
			version := regexp.MustCompile(`"version":"[^"]*"`)
			normal := func(s string) string { return version.ReplaceAllString(strings.TrimSpace(s), `"version":""`) }
			if got, want := normal(string(out)), normal(e[2]); got != want {
				t.Errorf("%s\ngot\n%s\nwant\n%s", e[1], got, want)
			}
		}
		checkSettings(t, string(b))
	}
}

// checkSettings checks that each setting with a command is a command line of the program.
func checkSettings(t *testing.T, page string) {
	t.Helper()
	n := 0
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(page, -1) {
		var all map[string]map[string]struct {
			Command string
			Args    []string
		}
		if err := json.Unmarshal([]byte(block[1]), &all); err != nil {
			t.Errorf("%v: %s", err, block[1])
		}
		for _, servers := range all {
			for name, s := range servers {
				n++
				if out, err := exec.CommandContext(t.Context(), s.Command, append(s.Args, "--help")...).CombinedOutput(); s.Command != "leat" || err != nil {
					t.Errorf("%s: %v\n%s", name, err, out)
				}
			}
		}
	}
	if n == 0 {
		t.Error("the page has no settings")
	}
}
