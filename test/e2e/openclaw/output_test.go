//go:build e2e

package openclaw

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/test/e2e/internal/harness"
	"github.com/leat-dev/leat/transcript"
)

// previous is the newest version of the minor version before newest.
var previous = release{version: "2026.8.2", protocol: 4}

// outputLimit is how long a client may take for one answer.
const outputLimit = 2 * time.Minute

// TestOutput has the unchanged clients of OpenClaw use Leat as their gateway. The texts that they show are compared with Leat's log.
func TestOutput(t *testing.T) {
	for _, r := range []release{newest, previous} {
		t.Run(r.version, func(t *testing.T) {
			node, script := r.install(t)
			page := filepath.Join(filepath.Dir(script), "dist", "control-ui")
			question, err := filepath.Abs("testdata/question.mjs")
			if err != nil {
				t.Fatal(err)
			}
			leat := harness.Leat(t, []string{"LEAT_OUTPUTS_OPENCLAW=true", "LEAT_OUTPUTS_OPENCLAW_UI=" + page, "LEAT_API_TOKEN=" + token}, "--agent", "demo",
				"--agent", fmt.Sprintf("quiz=plugin:%s %s", node, question))
			leat.Start(t)
			o := &output{leat: leat, home: t.TempDir(), client: harness.NewClient(leat.URL)}
			o.client.Token = token
			// The commands of the documentation begin with npx, which would look for the package in the folder of the user.
			npx := fmt.Sprintf("#!/bin/sh\nshift\nexec '%s' '%s' \"$@\"\n", node, script)
			for name, content := range map[string]string{"openclaw.json": `{"gateway":{"mode":"remote"}}`, "npx": npx} {
				if err := os.WriteFile(filepath.Join(o.home, name), []byte(content), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			t.Run("ACP bridge", o.bridge)
			t.Run("terminal", o.terminal)
			t.Run("Control UI", func(t *testing.T) {
				harness.RunBrowser(t, "openclaw-output.mjs", map[string]any{
					"url": leat.URL, "token": token, "picture": base64.StdEncoding.EncodeToString(drawing(t, 32)),
				}, map[string]harness.Action{"leat/kill": leat.KillAction(), "leat/start": leat.StartAction()})
			})
		})
	}
}

// output is Leat as a gateway, with a folder for the programs that use it.
type output struct {
	leat   *harness.Program
	home   string
	client *harness.Client
}

// commandOf returns the command of the documentation for a client of OpenClaw, for a shell. Only the address is another one.
func (o *output) commandOf(t *testing.T, name string) string {
	t.Helper()
	doc, err := os.ReadFile("../../../docs/outputs/openclaw.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^npx openclaw ` + name + ` .*$`).FindString(string(doc))
	if line == "" {
		t.Fatalf("the documentation has no command %s", name)
	}
	return "exec " + strings.Replace(line, "127.0.0.1:31337", strings.TrimPrefix(o.leat.URL, "http://"), 1)
}

// run sets the environment of a command.
func (o *output) run(c *exec.Cmd) *exec.Cmd {
	c.Dir = o.home
	c.Env = []string{
		"PATH=" + o.home + ":" + os.Getenv("PATH"), "HOME=" + o.home, "OPENCLAW_STATE_DIR=" + filepath.Join(o.home, "state"),
		"OPENCLAW_CONFIG_PATH=" + filepath.Join(o.home, "openclaw.json"), "OPENCLAW_NO_RESPAWN=1", "TERM=xterm-256color", "LEAT_API_TOKEN=" + token,
	}
	return c
}

// visible returns the visible text of the newest turn of a session.
func (o *output) visible(t *testing.T, key string) (text string, tools int) {
	t.Helper()
	conversations, err := o.client.Conversations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range conversations {
		if string(c.Metadata["openclaw_key"]) != `"`+key+`"` {
			continue
		}
		tr := o.client.FullTranscript(t, c.ID)
		turn := tr.Turns[len(tr.Turns)-1]
		for _, m := range tr.Messages {
			for _, p := range m.Parts {
				if m.Turn == turn.ID && p.Kind == event.KindTool {
					tools++
				}
			}
		}
		if turn.State != transcript.TurnEnded || turn.Outcome != event.Completed {
			t.Errorf("the turn is %s, %s", turn.State, turn.Outcome)
		}
		return tr.Visible(turn.ID), tools
	}
	t.Fatalf("no conversation has the key %s", key)
	return "", 0
}
