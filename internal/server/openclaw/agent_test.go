package openclaw

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// agentFunc is an agent that runs a function.
type agentFunc func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (f agentFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}

// gate lets the agent continue when the test sends.
type gate chan struct{}

func (g gate) wait(ctx context.Context) error {
	select {
	case <-g:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// scripts is an agent that does what a message says. At each step of some scripts it waits at the gate.
func scripts(g gate) agent.Agent {
	return agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		seen := func(err error) error { return errors.Join(err, out.Flush()) }
		script, argument, _ := strings.Cut(in.Message.Text, " ")
		switch script {
		case "slow":
			return errors.Join(seen(out.Text("one ")), g.wait(ctx), seen(out.Text("two ")), g.wait(ctx), seen(out.Text("three")))
		case "tool":
			if err := errors.Join(seen(out.Reasoning("I think.")), seen(out.Text("Before."))); err != nil {
				return err
			}
			tool, err := out.Tool("clock", "call-1")
			if err != nil {
				return err
			}
			err = errors.Join(seen(tool.Input(`{"zone":"UTC"}`)), seen(tool.Output("noon")), seen(tool.Done()), seen(out.Text("After.")))
			if err != nil {
				return err
			}
			return out.End(event.Completed, "", &event.Usage{Input: 7, Output: 5})
		case "ask":
			a, err := out.Ask(ctx, event.Request{ID: "ask", Kind: event.RequestApproval, Tool: "shell", Prompt: "May I?"})
			if err != nil {
				return err
			}
			return out.Text("decision: " + string(a.Decision))
		case "question", "question,":
			a, err := out.Ask(ctx, event.Request{ID: "q", Kind: event.RequestInput, Prompt: "Which?", Options: []string{"red", "blue", "grey", "pink", "cyan", "teal"}})
			if err != nil {
				return err
			}
			if argument != "" {
				err = g.wait(ctx)
			}
			return errors.Join(err, out.Text("answer: "+string(a.Decision)+a.Text))
		case "fail":
			return errors.Join(seen(out.Text("so far")), &agent.Error{Code: "rate_limit_error", Message: "the model is busy"})
		case "status":
			return errors.Join(seen(out.Status("Looking…", dialect.Replace)), g.wait(ctx), seen(out.Status("Found", dialect.Replace)))
		case "words":
			return writeWords(out, 0, 400)
		case "steps":
			for step := range steps {
				if err := errors.Join(g.wait(ctx), writeWords(out, step*wordsPerStep, wordsPerStep)); err != nil {
					return err
				}
			}
			return nil
		case "blocks":
			for range blocks {
				if err := errors.Join(g.wait(ctx), seen(out.Text(aBlock))); err != nil {
					return err
				}
			}
			return nil
		case "parts":
			var kinds []string
			for _, p := range in.Message.Parts {
				kinds = append(kinds, string(p.Kind))
			}
			return out.Text(strings.Join(kinds, ","))
		}
		return out.Text("re: " + script + argument)
	})
}

const (
	// steps is how often the script "steps" waits at the gate.
	steps        = 20
	wordsPerStep = 20
	// blocks is how often the script "blocks" waits at the gate.
	blocks = 16
)

// aBlock is what "blocks" writes in a step.
var aBlock = strings.Repeat("sixteen bytes.  ", 1<<10)

// writeWords writes words one after the other.
func writeWords(out *agent.Emitter, first, n int) error {
	for i := first; i < first+n; i++ {
		if err := errors.Join(out.Text(fmt.Sprintf("word%d ", i)), out.Flush()); err != nil {
			return err
		}
	}
	return nil
}
