package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// followed is where a response in the background stands. It is the turn's state.
type backgroundState struct {
	ID          string          `json:"id"`
	Seq         int64           `json:"seq"`
	Decoder     json.RawMessage `json:"decoder"`
	Answers     int             `json:"answers,omitempty"` // how many responses before it were answered
	AnswersSent bool            `json:"sent,omitempty"`    // the answers to its questions are on their way
}

// path is where the response goes on.
func (f *backgroundState) path() string {
	return "/responses/" + url.PathEscape(f.ID) + "?stream=true&starting_after=" + strconv.FormatInt(f.Seq, 10)
}

// positioned is a decoder that says what it reads, and how far it has come.
type positioned interface {
	Position() (id string, seq int64)
}

// follow notes how far the response has come, as the turn's state after what is said.
func (t *attempt) follow(ops []event.Event, d *dialect.Stream) ([]event.Event, json.RawMessage, error) {
	p, ok := d.Decoder().(positioned)
	if !ok {
		return ops, nil, nil
	}
	id, seq := p.Position()
	sameResponse := t.from != nil && t.from.ID == id
	if id == "" || sameResponse && t.from.Seq == seq {
		return ops, nil, nil
	}
	decoder, err := d.Decoder().State()
	if err != nil {
		return ops, nil, fmt.Errorf("state of decoder: %w", err)
	}
	if !sameResponse {
		t.a.remember(t.in.Turn, id)
		ops = append([]event.Event{{Type: event.TurnUpdate, Body: &event.Body{Upstream: &event.Upstream{Run: id}}}}, ops...)
	}
	t.from = &backgroundState{ID: id, Seq: seq, Decoder: decoder, Answers: t.answers}
	state, err := json.Marshal(t.from)
	return ops, state, err
}

// Background is an agent whose responses go on without it.
type backgroundAgent struct{ *modelAgent }

var (
	_ agent.Resumer = backgroundAgent{}
	_ agent.Stopper = backgroundAgent{}
	_ agent.Checker = backgroundAgent{}
	_ agent.Prober  = backgroundAgent{}
)

// Resume follows the response that the turn had begun. Where none was known yet, nothing is sent again: whether the provider
// works at it can't be told.
func (b backgroundAgent) Resume(ctx context.Context, in agent.Input, state json.RawMessage, emitter *agent.Emitter) error {
	if len(state) == 0 {
		return emitter.End(event.Interrupted, "the gateway was restarted before the provider had named the response", nil)
	}
	var from backgroundState
	if err := json.Unmarshal(state, &from); err != nil {
		return fmt.Errorf("stored state: %w", err)
	}
	b.remember(in.Turn, from.ID)
	return b.run(ctx, in, &from, emitter)
}

// Stop implements [agent.Stopper]: the response of a turn that was stopped is cancelled.
func (b backgroundAgent) Stop(ctx context.Context, in agent.Input) error {
	id := b.forget(in.Turn)
	if id == "" {
		return nil
	}
	res, err := b.do(ctx, http.MethodPost, "/responses/"+url.PathEscape(id)+"/cancel", "", nil)
	if err != nil {
		return fmt.Errorf("%s can't be told that the response is cancelled", b.name)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return b.statusFailure(res)
	}
	return nil
}

// Probe implements [agent.Prober].
func (b backgroundAgent) Probe(ctx context.Context, in agent.Input) error {
	b.mu.Lock()
	id := b.responseIDs[in.Turn]
	b.mu.Unlock()
	if id == "" {
		return errors.New("the provider has named no response")
	}
	res, err := b.do(ctx, http.MethodGet, "/responses/"+url.PathEscape(id), "", nil)
	if err != nil {
		return b.unreachable(err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return b.statusFailure(res)
	}
	var r struct {
		Status string `json:"status"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, agent.MaxStream)).Decode(&r); err != nil {
		return fmt.Errorf("status of the response: %w", err)
	}
	if r.Status != "queued" && r.Status != "in_progress" {
		return fmt.Errorf("the response is %q", r.Status)
	}
	return nil
}

func (a *modelAgent) remember(turn, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.responseIDs[turn] = id
}

func (a *modelAgent) forget(turn string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := a.responseIDs[turn]
	delete(a.responseIDs, turn)
	return id
}
