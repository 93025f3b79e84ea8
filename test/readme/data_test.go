package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The commands of docs/data.md run unchanged, in order, and print the documented output.
func TestDataCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it compiles and starts the program; run it without -short")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("SKIPPED: bash is not installed; install it to have the commands of docs/data.md run (apt-get install bash)")
	}
	b, err := os.ReadFile("../../docs/data.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	all := snippet.FindAllStringSubmatch(text, -1)
	if n := strings.Count(text, "```sh"); n != len(all) || n < 5 {
		t.Fatalf("%d snippets, %d of them understood", n, len(all))
	}
	for _, m := range links.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join("../../docs", m[1])); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
	prepare := "export LEAT_URL=" + serve(t) + " PATH=" + filepath.Dir(program(t)) + ":$PATH; cd " + t.TempDir() + "; "
	run(t, prepare+"leat chat --tenant acme --subject alice hello", nil)
	for _, m := range all {
		out := run(t, prepare+m[1], nil)
		if want := m[2]; want != "" {
			if d := cmp.Diff(strings.TrimSpace(want), steady(out)); d != "" {
				t.Errorf("%s(-docs/data.md +printed)\n%s", m[1], d)
			}
		}
	}
}
