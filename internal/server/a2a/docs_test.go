package a2a

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/service/quota"
)

var (
	example = regexp.MustCompile("(?s)```sh\n(.*?)```\n```text\n(.*?)```")
	ids     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|2[0-9-]{9}T[0-9:.]+Z`)
)

// The examples of docs/outputs/a2a.md run unchanged, except for the address and the token.
//
// They build on each other: the second one repeats the message of the first one, and gets the same task.
func TestDocumentation(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: curl is not installed; install it to have the examples of docs/outputs/a2a.md run (apt install curl)")
	}
	doc, err := os.ReadFile("../../../docs/outputs/a2a.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := example.FindAllStringSubmatch(string(doc), -1)
	if n := strings.Count(string(doc), "```sh"); n != len(examples) || n == 0 {
		t.Fatalf("%d examples, of which %d have an output", n, len(examples))
	}
	h := newHarness(t, echo, quota.Limits{})
	for _, e := range examples {
		command := strings.ReplaceAll(e[1], "curl ", "curl -H 'Authorization: Bearer "+secret+"' ")
		out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, "http://127.0.0.1:31337", h.url)).Output()
		if err != nil {
			t.Fatalf("%s: %v", e[1], err)
		}
		normal := func(s string) string { return ids.ReplaceAllString(strings.TrimSpace(s), "ID") }
		if got, want := normal(string(out)), normal(e[2]); got != want {
			t.Errorf("%s\ngot\n%s\nwant\n%s", e[1], got, want)
		}
	}
}
