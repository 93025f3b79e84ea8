package letta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/event"
)

// turn is a turn as both agents run it: its decoder, and its state in the journal.
type turn struct {
	in  agent.Input
	out *agent.Emitter

	asks chan event.Request // that the stream has brought

	refused bool // V1: the last request was, so that nothing runs for it; of the turn's own goroutine

	mu     sync.Mutex      // taken within the emitter's lock
	frames dialect.Decoder // decodes and counts them
	dec    *letta.Decoder  // the same without the counting
	st     state
	gone   bool // the turn was ended as lost

	running   string                  // V1: the run of the stream at hand; empty until the server has named it
	cut       context.CancelCauseFunc // V1: breaks off the stream at hand
	elsewhere chan continuation       // V1: answers of another client to what the turn waits for
	observed  bool                    // V1: another client has begun the run
	silent    bool                    // V1: the turn ends because the run said nothing
	request   bool                    // V1: the server may have begun a run for the last request
	rereadAt  string                  // the cursor at which the stream was broken off because the run has ended
}

// state lies in the journal, together with what led to it.
type state struct {
	Session session `json:"session"`
	// Sent counts what was sent: the message, and answers to approvals. It is noted before it is done.
	Sent int `json:"sent,omitempty"`
	// Answer is what was sent last, where that is not the message; After is the run that was the last one then, so that as
	// long as none comes after it nobody knows whether it has arrived.
	Answer  *approvalMessage `json:"answer,omitempty"`
	After   string           `json:"after,omitempty"`
	Decoder json.RawMessage  `json:"decoder,omitempty"`
	// Refused are the calls of a question that an earlier turn has left open: the message is sent with a refusal of them.
	Refused []string `json:"refused,omitempty"`
	// Message and Row are, of a run that is observed, the client_message_id of the message that began it, and the key of its row.
	Message string `json:"message,omitempty"`
	Row     string `json:"row,omitempty"`
	// Run is the V1 run that the turn shows next from its start, though Leat has not sent what began it.
	Run string `json:"run,omitempty"`
}

func newTurn(in agent.Input, out *agent.Emitter, d dialect.Dialect) *turn {
	frames := d.Decoder()
	t := &turn{in: in, out: out, frames: frames, dec: dialect.Unwrap(frames).(*letta.Decoder), asks: make(chan event.Request, maxAsks), elsewhere: make(chan continuation, 1)}
	out.OnEnd(func() []event.Event {
		// That the stream was not at its end is no news: the turn has ended before it.
		return t.held()
	})
	return t
}

// maxAsks is how many requests may be on their way to being asked: a step has no more calls.
const maxAsks = 2048

func (t *turn) restore(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil // nothing was done
	}
	if err := json.Unmarshal(raw, &t.st); err != nil {
		return fmt.Errorf("state of the turn: %w", err)
	}
	if len(t.st.Decoder) > 0 {
		if err := t.frames.Restore(t.st.Decoder); err != nil {
			return fmt.Errorf("state of the turn: %w", err)
		}
	}
	return nil
}

// decode hands a frame on.
func (t *turn) decode(f dialect.Frame) error {
	err := t.out.Large(len(f.Data), func() error { return t.out.Decode(t.reading(f)) })
	if errors.Is(err, agent.ErrTurnOver) && t.finished() {
		return nil
	}
	return err
}

// reading returns the step that decodes a frame.
func (t *turn) reading(f dialect.Frame) func() ([]event.Event, json.RawMessage, error) {
	return func() ([]event.Event, json.RawMessage, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		ops, err := t.frames.Decode(f)
		if len(ops) == 0 {
			return nil, nil, err // the state, of which the cursor is no worse for being old
		}
		for i := range ops {
			if ops[i].Type == event.TurnWait {
				t.asks <- *ops[i].Body.Request
			}
			ops[i].Turn = "" // the runs that the server needed are all of this turn
		}
		raw, serr := t.state()
		return ops, raw, errors.Join(err, serr)
	}
}

// held is what the decoder holds back.
func (t *turn) held() []event.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	ops, _ := t.dec.Close()
	for i := range ops {
		ops[i].Turn = ""
	}
	return ops
}

// state is the state as it is stored. t.mu is held.
func (t *turn) state() (json.RawMessage, error) {
	dec, err := t.dec.State()
	if err != nil {
		return nil, err
	}
	t.st.Decoder = dec
	return json.Marshal(&t.st)
}

// note changes the state, durably, and emits what the change returns.
func (t *turn) note(change func() []event.Event) error {
	err := t.out.Decode(func() ([]event.Event, json.RawMessage, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		ops := change()
		for i := range ops {
			ops[i].Turn = ""
		}
		raw, err := t.state()
		return ops, raw, err
	})
	if err != nil {
		return err
	}
	return t.out.Flush()
}

func (t *turn) finished() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gone || t.dec.Finished()
}

// stopSeen reports whether a stop reason has come: what its stream owes beyond that may be left out.
func (t *turn) stopSeen() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dec.Stopped()
}

// begun reports whether anything was said.
func (t *turn) begun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dec.Open()
}

// busy reports whether a tool runs, or waits to be allowed.
func (t *turn) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dec.Busy()
}

func (t *turn) cursor() (run string, seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dec.Cursor()
}

func (t *turn) waiting() []letta.Approval {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dec.Waiting()
}

// noted returns a copy of what was noted.
func (t *turn) noted() state {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.st
}

// unheard reports whether nothing has come yet of what was sent last.
func (t *turn) unheard() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	run, _ := t.dec.Cursor()
	return run == t.st.After
}

// asker waits for answers in goroutines of its own, since the stream is read meanwhile.
type asker struct {
	wait    sync.WaitGroup
	answers chan event.Answer
}

func newAsker() *asker { return &asker{answers: make(chan event.Answer, maxAsks)} }

// ask opens a request, unless it is open already, and waits for its answer.
func (a *asker) ask(ctx context.Context, t *turn, r event.Request) {
	a.wait.Go(func() {
		answer, err := t.out.Ask(ctx, r)
		if err == nil {
			a.answers <- answer
		} else if ctx.Err() == nil {
			t.out.Log().Warn("request not asked", "request", r.ID, "error", err)
		}
	})
}

// lost ends the turn of which nobody knows how it would have gone on.
func (t *turn) lost(code, message string) error {
	t.mu.Lock()
	t.gone = true
	t.mu.Unlock()
	err := t.out.Decode(func() ([]event.Event, json.RawMessage, error) {
		return append(t.held(), event.Event{Type: event.TurnEnd, Body: &event.Body{
			Outcome: event.Interrupted, Reason: code,
			Error: &event.Error{Code: code, Message: message, Retryable: true},
		}}), nil, nil
	})
	if errors.Is(err, agent.ErrTurnOver) {
		return nil
	}
	return err
}
