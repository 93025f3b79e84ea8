package durable

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
)

var example = regexp.MustCompile("(?s)```sh\n(.*?)```\n```text\n(.*?)```")

// The examples of docs/outputs/durable-streams.md run unchanged, except for the address and the token.
func TestDocumentation(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: curl is not installed; install it to have the examples of docs/outputs/durable-streams.md run (apt install curl)")
	}
	doc, err := os.ReadFile("../../../docs/outputs/durable-streams.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := example.FindAllStringSubmatch(string(doc), -1)
	if n := strings.Count(string(doc), "```sh"); n != len(examples) || n == 0 {
		t.Fatalf("%d examples, of which %d have an output", n, len(examples))
	}
	h := newHarness(t, echo, quota.Limits{})
	h.answered(gateway.Principal{Admin: true}, "demo", "Hello")
	for _, e := range examples {
		command := strings.ReplaceAll(e[1], "curl ", "curl -H 'Authorization: Bearer "+secret+"' ")
		out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, "http://127.0.0.1:31337", h.url)).Output()
		if err != nil {
			t.Fatalf("%s: %v", e[1], err)
		}
		if got, want := strings.TrimSpace(string(out)), strings.TrimSpace(e[2]); got != want {
			t.Errorf("%s\ngot\n%s\nwant\n%s", e[1], got, want)
		}
	}
}
