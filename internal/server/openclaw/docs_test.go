package openclaw

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The addresses, the names of methods and the environment variables in the documentation are those of this package.
func TestDocumentation(t *testing.T) {
	b, err := os.ReadFile("../../../docs/outputs/openclaw.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for _, url := range regexp.MustCompile(`ws://[A-Z0-9.:]+(/\w+)`).FindAllStringSubmatch(doc, -1) {
		if url[1] != path {
			t.Errorf("the documentation names the path %s", url[1])
		}
	}
	h := newHarness(t)
	c := h.connect("ui")
	for _, key := range regexp.MustCompile(`--session (\S+)`).FindAllStringSubmatch(doc, -1) {
		key := strings.Replace(key[1], "agent:demo:", "agent:eliza:", 1)
		c.send(key, "run of the documentation", "hello")
		text := ""
		if c.finish("run of the documentation", &text); text != "re: hello" {
			t.Errorf("%s: %q", key, text)
		}
	}
}
