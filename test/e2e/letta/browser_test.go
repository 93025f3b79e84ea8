//go:build e2e

package letta

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leat-dev/leat/test/e2e/internal/harness"
)

// browses adds the model's scripts for the browser test: a turn of three steps, each with reasoning, the first two with a tool; with
// and without pauses.
func browses(scripts map[string][]harness.Reply) {
	groups := func(wait string, last []string) []harness.Reply {
		pause := 15 * time.Millisecond
		return []harness.Reply{
			{Reasoning: harness.Words("A block is wanted, so I look for one first. "), Words: harness.Words("Let me look at what is there. "), Calls: []harness.Call{bash("echo found nothing;" + wait + " echo looked everywhere")}, Pause: pause},
			{Reasoning: harness.Words("Nothing is there, so I make one. "), Words: harness.Words("Now I make it. "), Calls: []harness.Call{bash("echo the block was made")}, Pause: pause},
			{Reasoning: harness.Words("It is there. "), Words: last, Pause: pause},
		}
	}
	scripts["GROUPS"] = groups("", harness.Words("The memory block **cameron** is there now, and it is empty."))
	scripts["HELD"] = groups(" while [ ! -e go ]; do sleep 0.1; done;", harness.GatedWords("The memory block **cameron** is there now, ", "and it is empty."))
}

// browser checks in a browser the interface problems that were reported for Letta.
func (s *stage) browser(t *testing.T) {
	gate := filepath.Join(s.work, "go")
	harness.RunBrowser(t, "letta.mjs", map[string]any{"url": s.leat.URL, "hello": hello}, map[string]harness.Action{
		"gate/close": harness.ActionOf(s.model.CloseGate), "gate/open": harness.ActionOf(s.model.OpenGate),
		"tool/wait": func(context.Context) (any, error) {
			if err := os.Remove(gate); err != nil && !os.IsNotExist(err) {
				return nil, err
			}
			return nil, nil
		},
		"tool/go": func(context.Context) (any, error) { return nil, os.WriteFile(gate, nil, 0o600) },
	})
}
