package inprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cexll/agentsdk-go/pkg/api"
	"github.com/cexll/agentsdk-go/pkg/model"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/agentsdk"
	"github.com/leat-dev/leat/event"
)

// DefaultSession is the template of sessions where none is given.
const DefaultSession = "leat-{conversation}"

// Runtime is what the agent needs of an *api.Runtime.
type Runtime interface {
	RunStream(ctx context.Context, req api.Request) (<-chan api.StreamEvent, error)
}

var _ Runtime = (*api.Runtime)(nil)

// Agent has a runtime answer turns.
type Agent struct {
	runtime Runtime
	session string
}

var _ agent.Agent = (*Agent)(nil)

// New returns the agent of a runtime. session is the template of the runtime's sessions, with {tenant}, {subject} and
// {conversation}; empty is [DefaultSession].
func New(r Runtime, session string) (*Agent, error) {
	if session == "" {
		session = DefaultSession
	}
	if _, err := agent.Expand(session, agent.Input{}); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return &Agent{r, session}, nil
}

// Run has the runtime answer the message; what was said before is in its session.
func (a *Agent) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	session, err := agent.Expand(a.session, in)
	if err != nil {
		return err
	}
	if in, err = out.Inline(ctx, in); err != nil {
		return err
	}
	events, err := a.runtime.RunStream(ctx, api.Request{Prompt: in.Message.Text, SessionID: session, ContentBlocks: blocks(in.Message)})
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	t := &turn{out: out, dec: agentsdk.Dialect().Decoder()}
	out.OnEnd(t.held)
	var failed error
	for e := range events {
		// Once somebody has ended the turn, what the runtime says of it is not news.
		if failed == nil && !t.ended && ctx.Err() == nil {
			failed = t.hear(e)
		}
	}
	switch {
	case failed != nil:
		return failed
	case t.ended:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return dialect.ErrCutShort
}

// blocks are the pictures and documents of a message.
func blocks(m agent.Message) (all []model.ContentBlock) {
	for _, p := range m.Parts {
		if p.Media == nil {
			continue
		}
		b := model.ContentBlock{Type: model.ContentBlockDocument, MediaType: p.Media.MIME, URL: p.Media.URL}
		if strings.HasPrefix(p.Media.MIME, "image/") {
			b.Type = model.ContentBlockImage
		}
		if head, data, ok := strings.Cut(p.Media.URL, ";base64,"); ok && strings.HasPrefix(head, "data:") {
			b.URL, b.Data = "", data
		}
		all = append(all, b)
	}
	return all
}

// turn is a stream of events on its way to the readers.
type turn struct {
	out   *agent.Emitter
	ended bool

	// Guarded by the emitter's lock.
	dec    dialect.Decoder
	closed bool
}

func (t *turn) hear(e api.StreamEvent) error {
	b, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("event of the runtime: %w", err)
	}
	t.out.CaptureReceived(append(b, '\n'))
	err = t.out.Decode(func() ([]event.Event, json.RawMessage, error) {
		ops, err := t.dec.Decode(dialect.Frame{Data: b})
		for i := range ops {
			t.ended = t.ended || ops[i].Type == event.TurnEnd
		}
		return ops, nil, err
	})
	if t.ended && errors.Is(err, agent.ErrTurnOver) {
		return nil
	}
	return err
}

// held releases what the decoder holds back when the turn ends.
func (t *turn) held() []event.Event {
	if t.closed {
		return nil
	}
	t.closed = true
	ops, _ := t.dec.Close() // that the stream was not at its end is no news: the turn has ended before it
	return ops
}
