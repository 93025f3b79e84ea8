//go:build e2e

package openclaw

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/leat-dev/leat/test/e2e/internal/harness"
)

// The growing text in the page: blocks that are complete when the gate is reached, and one that is not.
const (
	firstHalf  = "## Rivers\n\nA river is *water* that goes somewhere.\n\n- the Elbe\n- the Oder\n\nThe longest "
	secondHalf = "of them is the **Nile**, or the Amazon; nobody knows.\n\n1. It begins.\n2. It ends.\n"
)

// browses adds the scripts that are played for a browser.
func (s *stage) browses(t *testing.T, scripts map[string][]harness.Reply) {
	t.Helper()
	picture := filepath.Join(s.workspace, "pic.png")
	scripts["GROW"] = []harness.Reply{{Words: harness.GatedWords(firstHalf, secondHalf), Pause: 20 * time.Millisecond}}
	// The pieces are further apart than the gateway's coalescing delay, so each is shown separately.
	scripts["SHOW"] = []harness.Reply{{Words: pieces("Here is the picture.\n\nMEDIA:"+picture+"\n\nThat was it.", 9), Pause: 90 * time.Millisecond}}
	scripts["SHOWLAST"] = []harness.Reply{{Words: pieces("At the end.\n\nMEDIA:"+picture, 9), Pause: 90 * time.Millisecond}}
	waits := harness.NewCall("exec", map[string]any{"command": "echo begun; while [ ! -e go ]; do sleep 0.1; done; echo over", "yieldMs": 120_000})
	scripts["WORK"] = []harness.Reply{
		{Words: harness.Words("I begin with this. "), Calls: []harness.Call{waits}},
		{Words: harness.Words("And now what fails. "), Calls: []harness.Call{command("echo oh no >&2; exit 3"), harness.NewCall("read", map[string]any{"path": "no/such/file"})}},
		{Words: harness.Words("That was all.")},
	}
}

// pieces cuts a text every n bytes.
func pieces(text string, n int) (all []string) {
	for b := range slices.Chunk([]byte(text), n) {
		all = append(all, string(b))
	}
	return all
}

// browser has the seed's five cases looked at in a browser.
func (s *stage) browser(t *testing.T) {
	mine := drawing(t, 48)
	file := filepath.Join(t.TempDir(), "mine.png")
	if err := os.WriteFile(file, mine, 0o600); err != nil {
		t.Fatal(err)
	}
	harness.RunBrowser(t, "openclaw.mjs", map[string]any{
		"url": s.leat.URL, "hello": hello, "slowly": slowly, "slow": slow, "firstHalf": firstHalf, "secondHalf": secondHalf,
		"mine": file, "picture": filepath.Join(s.workspace, "pic.png"),
	}, map[string]harness.Action{
		"gate/close": harness.ActionOf(s.model.CloseGate), "gate/open": harness.ActionOf(s.model.OpenGate),
		"leat/kill": s.leat.KillAction(), "leat/start": s.leat.StartAction(),
		"openclaw/kill": s.claw.KillAction(), "openclaw/start": s.claw.StartAction(),
		"tool/go": func(context.Context) (any, error) {
			return nil, os.WriteFile(filepath.Join(s.workspace, "go"), nil, 0o600)
		},
		"model/saw": func(context.Context) (any, error) {
			return slices.ContainsFunc(s.model.Images(), func(b []byte) bool { return alike(b, mine) }), nil
		},
	})
}
