package compat

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/quota"
)

var example = regexp.MustCompile("(?s)```sh\n(.*?)```\n```text\n(.*?)```")

// The examples of docs/models.md run unchanged, except for the address and the token.
func TestDocumentation(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: curl is not installed; install it to have the examples of docs/models.md run (apt install curl)")
	}
	doc, err := os.ReadFile("../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := example.FindAllStringSubmatch(string(doc), -1)
	if n := strings.Count(string(doc), "```sh"); n != len(examples) || n == 0 {
		t.Fatalf("%d examples, of which %d have an output", n, len(examples))
	}
	seen := make(chan string, 1)
	h := newHarness(t, one(agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		// each step waits until the previous one was shown
		step := func(err error) error {
			if err = errors.Join(err, out.Flush()); err != nil {
				return err
			}
			select {
			case <-seen:
			case <-ctx.Done():
			}
			return nil
		}
		if err := errors.Join(step(out.Reasoning("A greeting.")), step(out.Text("Hello ")), out.Text("there.")); err != nil {
			return err
		}
		return out.End(event.Completed, "", &event.Usage{Input: 5, Output: 4})
	})), quota.Limits{})
	for _, e := range examples {
		command := strings.ReplaceAll(e[1], "curl ", "curl -H 'X-Api-Key: "+secret+"' ")
		command = strings.ReplaceAll(command, "http://127.0.0.1:31337", h.url)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		c := exec.CommandContext(ctx, "sh", "-c", command)
		var out watched
		out.seen = seen
		c.Stdout = &out
		err := c.Run()
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", e[1], err)
		}
		got := regexp.MustCompile("event: ping\ndata: .*\n\n|: ping\n\n").ReplaceAllString(out.String(), "")
		want := e[2]
		if got, want := ids.ReplaceAllString(strings.TrimSpace(got), "ID"), ids.ReplaceAllString(strings.TrimSpace(want), "ID"); got != want {
			t.Errorf("%s\ngot\n%s\nwant\n%s", e[1], got, want)
		}
	}
}

// watched signals when text of the agent arrives.
type watched struct {
	strings.Builder
	seen chan<- string
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.Builder.Write(b)
	for _, step := range []string{"A greeting.", "Hello \""} {
		if strings.Contains(string(b), step) {
			w.seen <- step
		}
	}
	return n, err
}
