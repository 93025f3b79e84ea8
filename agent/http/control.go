package http

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/event"
)

// controlled is an [Agent] with a control URL. It posts users' answers to the agent's requests there, and
// messages that they send while a turn runs. docs/agents.md describes the requests. It is a separate type,
// because the gateway finds out with type assertions whether an agent accepts messages during a turn, and an
// agent without a control URL must not look as if it did.
type controlled struct {
	*Agent
	control *url.URL
}

var (
	_ agent.Answerer = (*controlled)(nil)
	_ agent.Steerer  = (*controlled)(nil)
)

// newControlled returns an agent with the given control URL. Errors name the option that is wrong.
func newControlled(c Config, control string) (*controlled, error) {
	u, err := call.Address("control", control)
	if err != nil {
		return nil, err
	}
	a, err := New(c)
	if err != nil {
		return nil, err
	}
	return &controlled{a, u}, nil
}

// notice is the body of a request to the control URL.
type notice struct {
	// Type is "answer" for an answer to the agent's request, or "steer" for a message that was sent during the turn.
	Type string `json:"type"`
	// Conversation, Turn and Key are those of the input, so that the program finds the turn that it runs. tell sets
	// them.
	Conversation string `json:"conversation"`
	Turn         string `json:"turn"`
	Key          string `json:"key"`
	// Type says which of Answer and Message is set.
	Answer  *event.Answer  `json:"answer,omitempty"`
	Message *agent.Message `json:"message,omitempty"`
}

// Answer implements [agent.Answerer]. A 4xx other than 408, 425 and 429 fails the turn, because the program
// would reject the same answer again. After any other failure the gateway retries, so the program must accept
// an answer that arrives twice.
func (c *controlled) Answer(ctx context.Context, in agent.Input, a event.Answer) error {
	status, err := c.tell(ctx, in, notice{Type: "answer", Answer: &a})
	switch {
	case err != nil:
		return err
	case status/100 == 2:
		return nil
	case status/100 == 4 && status != http.StatusRequestTimeout && status != http.StatusTooEarly && status != http.StatusTooManyRequests:
		return &agent.Error{Code: codeControl, Message: fmt.Sprintf("the agent rejected the answer: its control URL answered %d %s", status, http.StatusText(status))}
	}
	return fmt.Errorf("the control URL answered %d %s", status, http.StatusText(status))
}

// Steer implements [agent.Steerer]. A 2xx means that the agent accepted the message; otherwise the gateway queues it
// as a turn. Every error wraps [agent.ErrNotSteered], so no message is lost. But if only the response is lost, the
// program gets the message a second time, as a turn.
func (c *controlled) Steer(ctx context.Context, in agent.Input, m agent.Message) error {
	status, err := c.tell(ctx, in, notice{Type: "steer", Message: &m})
	if err != nil {
		return fmt.Errorf("%w: %w", agent.ErrNotSteered, err)
	}
	if status/100 != 2 {
		return fmt.Errorf("%w: the control URL answered %d %s", agent.ErrNotSteered, status, http.StatusText(status))
	}
	return nil
}

// tell posts a notice with the ids of the turn to the control URL.
func (c *controlled) tell(ctx context.Context, in agent.Input, n notice) (status int, err error) {
	n.Conversation, n.Turn, n.Key = in.Conversation, in.Turn, in.Key
	return c.notify(ctx, "control", c.control, in, n)
}

// codeControl is the code of the error of a turn whose agent rejected an answer.
const codeControl = "agent_control"
