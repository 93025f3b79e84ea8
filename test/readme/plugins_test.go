package readme

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	agents "github.com/leat-dev/leat/agent/all"
	leat "github.com/leat-dev/leat/clients/go"
	dialects "github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// The command of docs/plugins.md serves the unchanged example, also to readers that reconnect in the middle.
func TestPluginOfTheDocs(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it compiles and starts the program; run it without -short")
	}
	needs(t, "python3", "python3")
	b := &bench{t, t.TempDir(), program(t)}
	code, err := os.ReadFile("../../examples/plugins/python/plugin.py")
	if err != nil {
		t.Fatal(err)
	}
	b.write("plugin.py", string(code))
	url := b.serve(command(t, "docs/plugins.md", "plugin:python3")...)
	wantAnswer(t, url, "Thinking…\n\n"+answered)
	wantStopped(t, &leat.Client{URL: url})
}

// wantStopped stops a turn in the middle, and has the next one answered.
func wantStopped(t *testing.T, c *leat.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conv, err := c.Create(ctx, leat.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ack, err := c.Send(ctx, conv.ID, strings.Repeat("word ", 500))
	if err != nil {
		t.Fatal(err)
	}
	var turn transcript.Turn
	err = c.Follow(ctx, conv.ID, func(u leat.Update) error {
		if one := u.Transcript.Turn(ack.Turn); one != nil && !one.Unfinished() {
			turn = *one
			return leat.ErrStop
		}
		if !strings.Contains(u.Transcript.Visible(ack.Turn), "word") {
			return nil
		}
		_, err := c.Stop(ctx, conv.ID, ack.Turn)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if turn.Outcome != event.Cancelled {
		t.Errorf("the stopped turn is %s: %v", turn.Outcome, turn.Error)
	}
	if turn := askOnce(t, c); turn.Outcome != event.Completed {
		t.Errorf("the next turn is %s: %v", turn.Outcome, turn.Error)
	}
}

// Each line of the protocol of agents that docs/plugins.md shows is one: those of the plugin end a turn, as a program that writes
// them. Those of channels are played in gateway/host.
func TestLinesOfTheProtocol(t *testing.T) {
	b, err := os.ReadFile("../../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _, ok := strings.Cut(string(b), "\n## 5. Channels")
	if !ok {
		t.Fatal("the section on channels is missing")
	}
	var script strings.Builder
	n := 0
	for _, m := range regexp.MustCompile(`(?m)^(→|←) (\{.*\})$`).FindAllStringSubmatch(text, -1) {
		n++
		if !json.Valid([]byte(m[2])) {
			t.Errorf("no JSON: %s", m[2])
		}
		if m[1] == "→" {
			script.WriteString("read -r line\n")
		} else {
			script.WriteString("echo '" + m[2] + "'\n")
		}
	}
	if n < 7 {
		t.Fatalf("%d lines are shown", n)
	}
	for _, m := range regexp.MustCompile(`(?m)^leat serve --agent '(.*)'$`).FindAllStringSubmatch(text, -1) {
		spec, err := agent.ParseSpec(m[1])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := agents.Kinds(dialects.Registry()).Check(spec); err != nil {
			t.Error(err)
		}
	}
	if testing.Short() {
		t.Skip("SKIPPED: it compiles and starts the program; run it without -short")
	}
	needs(t, "bash", "bash")
	be := &bench{t, t.TempDir(), program(t)}
	// The turn's id is the gateway's.
	be.write("plugin.sh", strings.Replace(strings.ReplaceAll(script.String(), `"turn":"T"`, `"turn":"'$turn'"`),
		"read -r line\necho '{\"type\":\"callback\"", "read -r line\nturn=${line#*\\\"turn\\\":\\\"}; turn=${turn%%\\\"*}\necho '{\"type\":\"callback\"", 1)+"read -r line\n")
	turn, said := askTo(t, &leat.Client{URL: be.serve("serve", "--agent", "plugin:bash "+filepath.Join(be.dir, "plugin.sh"))})
	if turn.Outcome != event.Completed || said != "Looking up…\n\nHello to you." {
		t.Errorf("the turn is %s (%v): %q", turn.Outcome, turn.Error, said)
	}
}

// askTo asks and returns the turn and what it shows when it has ended.
func askTo(t *testing.T, c *leat.Client) (turn transcript.Turn, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conv, err := c.Create(ctx, leat.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ack, err := c.Send(ctx, conv.ID, "hello")
	if err != nil {
		t.Fatal(err)
	}
	err = c.Follow(ctx, conv.ID, func(u leat.Update) error {
		one := u.Transcript.Turn(ack.Turn)
		if one == nil || one.Unfinished() {
			return nil
		}
		turn, text = *one, u.Transcript.Visible(ack.Turn)
		return leat.ErrStop
	})
	if err != nil {
		t.Fatal(err)
	}
	return turn, text
}

// asking is a plugin that asks a question, accepts messages during its turn, and ends when it gets the answer.
const asking = `
import json, sys
def send(**line): print(json.dumps(line), flush=True)
for line in sys.stdin:
    told = json.loads(line)
    if told["type"] == "hello":
        send(type="ready", protocol=1, steer=True)
    elif told["type"] == "turn":
        send(type="turn.wait", turn=told["turn"], request={"id": "q", "kind": "approval", "prompt": "Really?"})
    elif told["type"] == "steer":
        send(type="steered", turn=told["turn"], message=told["message"]["id"], taken=True)
        send(type="text", turn=told["turn"], text=told["message"]["text"] + ": ")
    elif told["type"] == "answer":
        send(type="text", turn=told["turn"], text=told["answer"]["decision"])
        send(type="turn.end", turn=told["turn"], outcome="completed")
`

// A plugin gets answers and messages for the turn that runs, as docs/plugins.md says, from a gateway that runs.
func TestPluginIsSteeredAndAnswered(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it compiles and starts the program; run it without -short")
	}
	needs(t, "python3", "python3")
	b := &bench{t, t.TempDir(), program(t)}
	b.write("asking.py", asking)
	c := &leat.Client{URL: b.serve("serve", "--agent", "plugin:python3 asking.py")}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conv, err := c.Create(ctx, leat.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ack, err := c.Send(ctx, conv.ID, "hello")
	if err != nil {
		t.Fatal(err)
	}
	var turn transcript.Turn
	text, steered, told := "", false, false
	err = c.Follow(ctx, conv.ID, func(u leat.Update) error {
		one := u.Transcript.Turn(ack.Turn)
		switch text = u.Transcript.Visible(ack.Turn); {
		case one == nil:
		case !one.Unfinished():
			turn = *one
			return leat.ErrStop
		case len(one.Requests) == 1 && !steered:
			steered = true
			more, err := c.Send(ctx, conv.ID, "more")
			if err == nil && (more.State != event.MessageSteered || more.Turn != ack.Turn) {
				t.Errorf("the message is %s, of turn %s", more.State, more.Turn)
			}
			return err
		case len(one.Requests) == 1 && text != "" && !told:
			told = true
			_, err := c.Answer(ctx, conv.ID, ack.Turn, "q", event.Approve, "")
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if turn.Outcome != event.Completed || text != "more: approve" {
		t.Errorf("the turn is %s (%v): %q", turn.Outcome, turn.Error, text)
	}
}
