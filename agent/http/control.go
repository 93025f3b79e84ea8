package http

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/event"
)

// Controlled is an [Agent] with a control URL. It posts users' answers to the agent's requests there, and messages that they send
// while a turn runs. docs/agents.md describes the requests.
type Controlled struct {
	*Agent
	control *url.URL
}

var (
	_ agent.Answerer = (*Controlled)(nil)
	_ agent.Steerer  = (*Controlled)(nil)
)

// NewControlled returns an agent with the given control URL.
func NewControlled(c Config, control string) (*Controlled, error) {
	u, err := call.Address("control", control)
	if err != nil {
		return nil, err
	}
	a, err := New(c)
	if err != nil {
		return nil, err
	}
	return &Controlled{a, u}, nil
}

// notice is the body of a request to the control URL.
type notice struct {
	Type         string         `json:"type"` // answer or steer
	Conversation string         `json:"conversation"`
	Turn         string         `json:"turn"`
	Key          string         `json:"key"`
	Answer       *event.Answer  `json:"answer,omitempty"`
	Message      *agent.Message `json:"message,omitempty"`
}

// Answer implements [agent.Answerer]. A 4xx other than 408, 425 and 429 fails the turn; after any other failure the gateway retries.
func (c *Controlled) Answer(ctx context.Context, in agent.Input, a event.Answer) error {
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

// Steer implements [agent.Steerer]. A 2xx means that the agent accepted the message; otherwise the gateway queues it as a turn.
func (c *Controlled) Steer(ctx context.Context, in agent.Input, m agent.Message) error {
	status, err := c.tell(ctx, in, notice{Type: "steer", Message: &m})
	if err != nil {
		return fmt.Errorf("%w: %w", agent.ErrNotSteered, err)
	}
	if status/100 != 2 {
		return fmt.Errorf("%w: the control URL answered %d %s", agent.ErrNotSteered, status, http.StatusText(status))
	}
	return nil
}

func (c *Controlled) tell(ctx context.Context, in agent.Input, t notice) (status int, err error) {
	t.Conversation, t.Turn, t.Key = in.Conversation, in.Turn, in.Key
	body, err := json.Marshal(t)
	if err != nil {
		return 0, err
	}
	res, err := c.post(ctx, c.control, in, body)
	if err != nil {
		return 0, errors.New("the control URL can't be reached: " + call.Reason(err))
	}
	return res.StatusCode, res.Body.Close()
}

// codeControl is the code of the error of a turn whose agent rejected an answer.
const codeControl = "agent_control"
