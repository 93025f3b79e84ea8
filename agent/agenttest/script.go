package agenttest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// Script is what an agent says, in order. Its end is the end of the turn.
type Script []Step

// Step is one thing that an agent says.
type Step struct {
	Kind  Kind
	Text  string
	Merge dialect.Merge // Callback
}

// Kind is what a step is.
type Kind int

// The kinds of steps.
const (
	Chunk    Kind = iota // text that the model streams
	Callback             // a status
	Fail                 // the end, with Text as the error's message; only as the last step
)

// Say streams text.
func Text(text string) Step { return Step{Kind: Chunk, Text: text} }

// Tell gives a status that takes the place of the one before.
func Status(text string) Step { return Step{Kind: Callback, Text: text} }

// Extend gives a status that extends the one before.
func AppendStatus(text string) Step { return Step{Kind: Callback, Text: text, Merge: dialect.Append} }

// Failing reports whether the script ends with an error.
func (s Script) Fails() bool { return len(s) > 0 && s[len(s)-1].Kind == Fail }

// Agent returns an agent in Go that plays the script. before, which may be nil, is called before each step and once before
// the end, with the number of steps played.
func (s Script) Agent(before func(ctx context.Context, n int) error) agent.Agent {
	return player{s, before}
}

type player struct {
	script Script
	before func(context.Context, int) error
}

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

// Actions returns the script as lines of the dialect eliza-actions, each with its line feed, the end among them.
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
