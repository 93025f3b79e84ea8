package agenttest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// Script is the output of an agent in one turn. The turn completes after the last step, unless that step is a Fail.
type Script []Step

// Step is one output of an agent. [Text], [Status] and [AppendStatus] make the usual ones.
type Step struct {
	Kind  Kind
	Text  string
	Merge dialect.Merge // only of a Callback; empty replaces the previous status
}

// Kind is the type of a step. A new kind needs a case in Script.Agent, in Script.Actions and in the tests of
// the paths that play scripts in another form.
type Kind int

// The kinds of steps.
const (
	Chunk    Kind = iota // streamed text of the answer
	Callback             // a status
	Fail                 // an error with Text as its message; only valid as the last step
)

// Text returns a step that streams text.
func Text(text string) Step { return Step{Kind: Chunk, Text: text} }

// Status returns a step that replaces the previous status.
func Status(text string) Step { return Step{Kind: Callback, Text: text} }

// AppendStatus returns a step that appends to the previous status.
func AppendStatus(text string) Step { return Step{Kind: Callback, Text: text, Merge: dialect.Append} }

// Fails reports whether the script ends with an error.
func (s Script) Fails() bool { return len(s) > 0 && s[len(s)-1].Kind == Fail }

// Agent returns an agent that plays the script with an emitter. If before isn't nil, it is called before each step and before the
// end, with the number of steps played so far. It can block, to let a test act between two steps.
func (s Script) Agent(before func(ctx context.Context, n int) error) agent.Agent {
	return player{s, before}
}

// player is the agent of a script. before may be nil.
type player struct {
	script Script
	before func(context.Context, int) error
}

// Run implements [agent.Agent]. It ignores the message.
func (p player) Run(ctx context.Context, _ agent.Input, emitter *agent.Emitter) error {
	wait := func(n int) error {
		if p.before == nil {
			return nil
		}
		return p.before(ctx, n)
	}
	for i, step := range p.script {
		if err := wait(i); err != nil {
			return err
		}
		var err error
		switch step.Kind {
		case Chunk:
			err = emitter.Text(step.Text)
		case Callback:
			err = emitter.Status(step.Text, step.Merge)
		case Fail:
			return &agent.Error{Code: "agent_error", Message: step.Text}
		}
		if err != nil {
			return err
		}
	}
	return wait(len(p.script))
}

// Actions returns the script as lines of the dialect eliza-actions, each with a line feed, including the line
// that ends the turn. It serves paths that start with an upstream's bytes rather than with an emitter.
func (s Script) Actions(t testing.TB) [][]byte {
	t.Helper()
	var lines [][]byte
	line := func(v map[string]string) {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, append(b, '\n'))
	}
	for _, step := range s {
		switch step.Kind {
		case Chunk:
			line(map[string]string{"type": "chunk", "text": step.Text})
		case Callback:
			v := map[string]string{"type": "callback", "text": step.Text, "source": "client_chat"}
			if step.Merge != "" {
				v["merge"] = string(step.Merge)
			}
			line(v)
		case Fail:
			line(map[string]string{"type": "error", "message": step.Text})
		}
	}
	if !s.Fails() {
		line(map[string]string{"type": "done"})
	}
	return lines
}
