package outputtest

import (
	"context"
	"encoding/json"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// AgentFunc is an agent that runs a function.
type AgentFunc func(ctx context.Context, in agent.Input, e *agent.Emitter) error

// Run implements [agent.Agent].
func (f AgentFunc) Run(ctx context.Context, in agent.Input, e *agent.Emitter) error {
	return f(ctx, in, e)
}

// Echo is an agent that repeats the message.
var Echo = AgentFunc(func(_ context.Context, in agent.Input, e *agent.Emitter) error {
	return e.Text("re: " + in.Message.Text)
})

// AskPermission is an agent that asks for a permission.
var AskPermission = AgentFunc(func(ctx context.Context, _ agent.Input, e *agent.Emitter) error {
	a, err := e.Ask(ctx, event.Request{ID: "ask", Kind: event.RequestApproval, Tool: "shell", Prompt: "May I?"})
	if err != nil {
		return err
	}
	return e.Text("the answer is " + string(a.Decision))
})

// ListTools is an agent that answers with the tools that the client offers, as JSON.
var ListTools = AgentFunc(func(_ context.Context, in agent.Input, e *agent.Emitter) error {
	b, err := json.Marshal(in.Tools)
	if err != nil {
		return err
	}
	return e.Text(string(b))
})
