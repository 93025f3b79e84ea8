package outputtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var example = regexp.MustCompile("(?s)```sh\n(.*?)```\n```text\n(.*?)```")

// UUIDs is a pattern of the ids of conversations, messages and turns, for Except.
const UUIDs = `[0-9a-f]{8}-[0-9a-f-]{27}`

// Except returns a function that replaces what matches a pattern, because it differs from one run to the next.
func Except(pattern string) func(string) string {
	expression := regexp.MustCompile(pattern)
	return func(s string) string { return expression.ReplaceAllString(s, "X") }
}

// RunExamples runs the examples of a file in docs/outputs unchanged, except for the address and the token, in their order: they may build on
// each other. Each has an output. Both outputs are passed through normal, unless it is nil, before they are compared without the space around them.
func (h *Harness) RunExamples(file string, normal func(string) string) {
	h.T.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		h.T.Skipf("SKIPPED: curl is not installed; install it to have the examples of docs/outputs/%s run (apt install curl)", file)
	}
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "outputs", file))
	if err != nil {
		h.T.Fatal(err)
	}
	examples := example.FindAllStringSubmatch(string(doc), -1)
	if n := strings.Count(string(doc), "```sh"); n != len(examples) || n == 0 {
		h.T.Fatalf("%d examples, of which %d have an output", n, len(examples))
	}
	if normal == nil {
		normal = func(s string) string { return s }
	}
	for _, e := range examples {
		command := strings.ReplaceAll(e[1], "curl ", "curl -H 'Authorization: Bearer "+Secret+"' ")
		output, err := exec.CommandContext(h.T.Context(), "sh", "-c", strings.ReplaceAll(command, "http://127.0.0.1:31337", h.URL)).Output()
		if err != nil {
			h.T.Fatalf("%s: %v", e[1], err)
		}
		if got, want := strings.TrimSpace(normal(string(output))), strings.TrimSpace(normal(e[2])); got != want {
			h.T.Errorf("%s\ngot\n%s\nwant\n%s", e[1], got, want)
		}
	}
}
