package langgraph

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var (
	example = regexp.MustCompile("(?s)```sh\n(.*?)```\n```text\n(.*?)```")
	// What differs from one run to the next: ids and times.
	changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|"timestamp":\d+|\d{4}-\d\d-\d\dT[\d:.+]+`)
)

// The examples of docs/outputs/langgraph.md run unchanged, except for the address and the token. They build on each other.
func TestDocumentation(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: curl is not installed; install it to have the examples of docs/outputs/langgraph.md run (apt install curl)")
	}
	doc, err := os.ReadFile("../../../docs/outputs/langgraph.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := example.FindAllStringSubmatch(string(doc), -1)
	if n := strings.Count(string(doc), "```sh"); n != len(examples) || n == 0 {
		t.Fatalf("%d examples, of which %d have an output", n, len(examples))
	}
	h := newHarness(t, echo)
	for _, e := range examples {
		command := strings.ReplaceAll(e[1], "curl ", "curl -H 'Authorization: Bearer "+secret+"' ")
		out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, "http://127.0.0.1:31337", h.url)).Output()
		if err != nil {
			t.Fatalf("%s: %v", e[1], err)
		}
		normal := func(s string) string { return changing.ReplaceAllString(strings.TrimSpace(s), "X") }
		if got, want := normal(string(out)), normal(e[2]); got != want {
			t.Errorf("%s\ngot\n%s\nwant\n%s", e[1], out, want)
		}
	}
}
