package outputs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/app/outputs"
)

// Every output has a page, which names the key that switches it; leat.example.yaml names the page and the environment variable.
func TestDocumented(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile("../../../" + name)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	example := read("leat.example.yaml")
	seen := map[string]bool{}
	for _, o := range outputs.List(outputs.Options{}) {
		if seen[o.Name] {
			t.Errorf("two outputs have the name %q", o.Name)
		}
		seen[o.Name] = true
		page := read("docs/" + o.Doc)
		if o.Name == "" {
			continue
		}
		if !strings.Contains(page, "outputs."+o.Name) && !strings.Contains(page, "outputs:\n  "+o.Name+": ") {
			t.Errorf("docs/%s does not name outputs.%s", o.Doc, o.Name)
		}
		if want := "see docs/" + o.Doc + ". LEAT_OUTPUTS_" + strings.ToUpper(o.Name) + "."; !strings.Contains(example, want) {
			t.Errorf("leat.example.yaml does not contain %q", want)
		}
	}
}
