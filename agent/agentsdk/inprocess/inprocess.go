package inprocess

import (
	"cmp"
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

// DefaultSession is the default template of session ids: one session for each conversation.
const DefaultSession = "leat-{conversation}"

// Runtime is the part of *api.Runtime that the agent uses.
type Runtime interface {
	RunStream(ctx context.Context, req api.Request) (<-chan api.StreamEvent, error)
}

var _ Runtime = (*api.Runtime)(nil)

// Agent answers turns with a runtime.
type Agent struct {
	runtime Runtime
	session string
}

var _ agent.Agent = (*Agent)(nil)

// New returns an agent that answers with a runtime. session is the template of the runtime's session ids, with {tenant}, {subject} and
// {conversation}. If it is empty, [DefaultSession] is used.
func New(r Runtime, session string) (*Agent, error) {
	session = cmp.Or(session, DefaultSession)
	if _, err := agent.Expand(session, agent.Input{}); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return &Agent{r, session}, nil
}

// Run implements [agent.Agent]. It sends the message to the runtime and emits its events. The runtime's session
// has the history. The channel of events is read to its end, also after the turn has ended, because the runtime
// blocks on it otherwise.
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
	out.CloseOnEnd(t.dec)
	var failed error
	for e := range events {
		// After the turn has ended, further events are only drained.
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

// blocks returns the images and documents of a message.
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

// turn decodes and emits the events of one run.
type turn struct {
	out   *agent.Emitter
	ended bool

	dec dialect.Decoder // guarded by the emitter's lock
}

// hear captures, decodes and emits one event. The event is encoded as JSON first, since the dialect decodes the
// form of the HTTP server.
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
