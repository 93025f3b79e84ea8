// Answers that the provider computes without a connection. They are resumed after a cut and after a restart of the gateway.

package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// backgroundState is the position in a background response. It is the turn's state in the journal.
type backgroundState struct {
	ID          string          `json:"id"`
	Seq         int64           `json:"seq"`
	Decoder     json.RawMessage `json:"decoder"`
	Answers     int             `json:"answers,omitempty"` // number of responses before this one whose approvals or calls were answered
	AnswersSent bool            `json:"sent,omitempty"`    // the answers to its approvals may have been sent
	Tools       toolState       `json:"tools,omitzero"`
}

// path returns the path of the stream after the position. starting_after excludes the event with that number.
func (f *backgroundState) path() string {
	return "/responses/" + url.PathEscape(f.ID) + "?stream=true&starting_after=" + strconv.FormatInt(f.Seq, 10)
}

// positioned is a decoder that knows the id of its response and the number of the last event.
type positioned interface {
	Position() (id string, seq int64)
}

// follow returns events together with the new position, so that both are committed at once: after a crash the
// log then has exactly the events up to the stored position. When the response gets its id, it also adds an
// event that names the upstream run.
//
// It is called with the emitter locked, for each step of the decoder, also for steps without events: a position
// without events must be stored too, so that a reconnection doesn't receive the same events again.
func (t *attempt) follow(ops []event.Event, d *dialect.Stream) ([]event.Event, json.RawMessage, error) {
	p, ok := d.Decoder().(positioned)
	if !ok {
		return ops, nil, nil
	}
	id, seq := p.Position()
	sameResponse := t.from != nil && t.from.ID == id
	// The position changes only with an id and a new event.
	if id == "" || sameResponse && t.from.Seq == seq {
		return ops, nil, nil
	}
	if t.reply != nil {
		t.tools.Calls = t.reply.calls()
	}
	decoder, err := d.Decoder().State()
	if err != nil {
		return ops, nil, fmt.Errorf("state of decoder: %w", err)
	}
	if !sameResponse {
		t.a.responseIDs.Store(t.in.Turn, id)
		ops = append([]event.Event{{Type: event.TurnUpdate, Body: &event.Body{Upstream: &event.Upstream{Run: id}}}}, ops...)
	}
	t.from = &backgroundState{ID: id, Seq: seq, Decoder: decoder, Answers: t.answers, Tools: t.tools}
	state, err := json.Marshal(t.from)
	return ops, state, err
}

// backgroundAgent is an agent of the Responses API whose responses continue without their connection. It is a
// separate type, because the gateway finds abilities with type assertions: other agents of this package must
// not look as if they could resume a turn.
type backgroundAgent struct{ *modelAgent }

var (
	_ agent.Resumer = backgroundAgent{}
	_ agent.Stopper = backgroundAgent{}
	_ agent.Checker = backgroundAgent{}
	_ agent.Prober  = backgroundAgent{}
)

// Resume implements [agent.Resumer]. It follows the response from the stored position. If the process ended before the response
// had an id, the turn ends as interrupted: the request may have arrived, so sending it again could answer twice.
func (b backgroundAgent) Resume(ctx context.Context, in agent.Input, state json.RawMessage, emitter *agent.Emitter) error {
	if len(state) == 0 {
		return emitter.End(event.Interrupted, "the gateway was restarted before the provider returned the id of the response", nil)
	}
	var from backgroundState
	if err := json.Unmarshal(state, &from); err != nil {
		return fmt.Errorf("stored state: %w", err)
	}
	b.responseIDs.Store(in.Turn, from.ID)
	return b.run(ctx, in, &from, emitter)
}

// Stop implements [agent.Stopper]. It cancels the turn's response at the provider, which would otherwise
// continue and be charged. The id is known from the first event on, or from the stored state.
func (b backgroundAgent) Stop(ctx context.Context, in agent.Input) error {
	id, ok := b.responseIDs.LoadAndDelete(in.Turn)
	if !ok {
		return nil
	}
	res, err := b.do(ctx, http.MethodPost, "/responses/"+url.PathEscape(id.(string))+"/cancel", "", nil)
	if err != nil {
		return fmt.Errorf("%s can't be reached to cancel the response", b.name)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return b.statusFailure(res)
	}
	return nil
}

// Probe implements [agent.Prober]. It returns nil if the provider still works on the response of a silent turn.
// If the response has ended, it returns an error: the stream should have ended as well, so waiting longer is
// useless.
func (b backgroundAgent) Probe(ctx context.Context, in agent.Input) error {
	id, ok := b.responseIDs.Load(in.Turn)
	if !ok {
		return errors.New("the provider hasn't returned the id of a response")
	}
	var r struct {
		Status string `json:"status"`
	}
	if err := b.fetch(ctx, http.MethodGet, "/responses/"+url.PathEscape(id.(string)), nil, &r, "status of the response"); err != nil {
		return err
	}
	// Any other status means that the stream should have ended: waiting longer is useless.
	if r.Status != "queued" && r.Status != "in_progress" {
		return fmt.Errorf("the response is %q", r.Status)
	}
	return nil
}
