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
	in      agent.Input
	emitter *agent.Emitter

	requests chan event.Request // that the stream has brought

	isRejected bool // V1: the last request was, so that nothing runs for it; of the turn's own goroutine

	mu           sync.Mutex      // taken within the emitter's lock
	decoder      dialect.Decoder // decodes and counts them
	lettaDecoder *letta.Decoder  // the same without the counting
	saved        state
	isLost       bool // the turn was ended as lost

	streamRun    string                  // V1: the run of the stream at hand; empty until the server has named it
	cancelStream context.CancelCauseFunc // V1: breaks off the stream at hand
	otherAnswers chan continuation       // V1: answers of another client to what the turn waits for
	isObserved   bool                    // V1: another client has begun the run
	isSilent     bool                    // V1: the turn ends because the run said nothing
	awaitsRun    bool                    // V1: the server may have begun a run for the last request
	rereadAt     string                  // the cursor at which the stream was broken off because the run has ended
}

// state lies in the journal, together with what led to it.
type state struct {
	Session session `json:"session"`
	// SendCount counts what was sent: the message, and answers to approvals. It is noted before it is done.
	SendCount int `json:"sent,omitempty"`
	// Answer is what was sent last, where that is not the message; After is the run that was the last one then, so that as
	// long as none comes after it nobody knows whether it has arrived.
	Answer   *approvalMessage `json:"answer,omitempty"`
	AfterRun string           `json:"after,omitempty"`
	Decoder  json.RawMessage  `json:"decoder,omitempty"`
	// RefusedCalls are the calls of a question that an earlier turn has left open: the message is sent with a refusal of them.
	RefusedCalls []string `json:"refused,omitempty"`
	// ObservedMessage and Row are, of a run that is observed, the client_message_id of the message that began it, and the key of its row.
	ObservedMessage string `json:"message,omitempty"`
	ObservedRow     string `json:"row,omitempty"`
	// NextRun is the V1 run that the turn shows next from its start, though Leat has not sent what began it.
	NextRun string `json:"run,omitempty"`
}

func newTurn(in agent.Input, emitter *agent.Emitter, d dialect.Dialect) *turn {
	frames := d.Decoder()
	t := &turn{in: in, emitter: emitter, decoder: frames, lettaDecoder: dialect.Unwrap(frames).(*letta.Decoder), requests: make(chan event.Request, maxAsks), otherAnswers: make(chan continuation, 1)}
	emitter.OnEnd(func() []event.Event {
		// That the stream was not at its end is no news: the turn has ended before it.
		return t.flushDecoder()
	})
	return t
}

// maxAsks is how many requests may be on their way to being asked: a step has no more calls.
const maxAsks = 2048

func (t *turn) restore(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil // nothing was done
	}
	if err := json.Unmarshal(raw, &t.saved); err != nil {
		return fmt.Errorf("state of the turn: %w", err)
	}
	if len(t.saved.Decoder) > 0 {
		if err := t.decoder.Restore(t.saved.Decoder); err != nil {
			return fmt.Errorf("state of the turn: %w", err)
		}
	}
	return nil
}

// decode hands a frame on.
func (t *turn) decode(f dialect.Frame) error {
	err := t.emitter.Large(len(f.Data), func() error { return t.emitter.Decode(t.decodeStep(f)) })
	if errors.Is(err, agent.ErrTurnOver) && t.isFinished() {
		return nil
	}
	return err
}

// decodeStep returns the step that decodes a frame.
func (t *turn) decodeStep(f dialect.Frame) func() ([]event.Event, json.RawMessage, error) {
	return func() ([]event.Event, json.RawMessage, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		ops, err := t.decoder.Decode(f)
		if len(ops) == 0 {
			return nil, nil, err // the state, of which the cursor is no worse for being old
		}
		for i := range ops {
			if ops[i].Type == event.TurnWait {
				t.requests <- *ops[i].Body.Request
			}
			ops[i].Turn = "" // the runs that the server needed are all of this turn
		}
		raw, serr := t.encodeState()
		return ops, raw, errors.Join(err, serr)
	}
}

// flushDecoder is what the decoder holds back.
func (t *turn) flushDecoder() []event.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	ops, _ := t.lettaDecoder.Close()
	for i := range ops {
		ops[i].Turn = ""
	}
	return ops
}

// encodeState is the state as it is stored. t.mu is held.
func (t *turn) encodeState() (json.RawMessage, error) {
	dec, err := t.lettaDecoder.State()
	if err != nil {
		return nil, err
	}
	t.saved.Decoder = dec
	return json.Marshal(&t.saved)
}

// update changes the state, durably, and emits what the change returns.
func (t *turn) update(change func() []event.Event) error {
	err := t.emitter.Decode(func() ([]event.Event, json.RawMessage, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		ops := change()
		for i := range ops {
			ops[i].Turn = ""
		}
		raw, err := t.encodeState()
		return ops, raw, err
	})
	if err != nil {
		return err
	}
	return t.emitter.Flush()
}

func (t *turn) isFinished() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isLost || t.lettaDecoder.IsFinished()
}

// hasStopReason reports whether a stop reason has come: what its stream owes beyond that may be left out.
func (t *turn) hasStopReason() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lettaDecoder.HasStopReason()
}

// hasContent reports whether anything was said.
func (t *turn) hasContent() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lettaDecoder.IsOpen()
}

// hasOpenTool reports whether a tool runs, or waits to be allowed.
func (t *turn) hasOpenTool() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lettaDecoder.HasOpenTool()
}

func (t *turn) cursor() (run string, seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lettaDecoder.Cursor()
}

func (t *turn) approvals() []letta.Approval {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lettaDecoder.PendingApprovals()
}

// snapshot returns a copy of what was noted.
func (t *turn) snapshot() state {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.saved
}

// awaitsRunOfLastSend reports whether nothing has come yet of what was sent last.
func (t *turn) awaitsRunOfLastSend() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	run, _ := t.lettaDecoder.Cursor()
	return run == t.saved.AfterRun
}

// asker waits for answers in goroutines of its own, since the stream is read meanwhile.
type asker struct {
	tasks   sync.WaitGroup
	answers chan event.Answer
}

func newAsker() *asker { return &asker{answers: make(chan event.Answer, maxAsks)} }

// ask opens a request, unless it is open already, and waits for its answer.
func (a *asker) ask(ctx context.Context, t *turn, r event.Request) {
	a.tasks.Go(func() {
		answer, err := t.emitter.Ask(ctx, r)
		if err == nil {
			a.answers <- answer
		} else if ctx.Err() == nil {
			t.emitter.Log().Warn("request not asked", "request", r.ID, "error", err)
		}
	})
}

// endLost ends the turn of which nobody knows how it would have gone on.
func (t *turn) endLost(code, message string) error {
	t.mu.Lock()
	t.isLost = true
	t.mu.Unlock()
	err := t.emitter.Decode(func() ([]event.Event, json.RawMessage, error) {
		return append(t.flushDecoder(), event.Event{Type: event.TurnEnd, Body: &event.Body{
			Outcome: event.Interrupted, Reason: code,
			Error: &event.Error{Code: code, Message: message, Retryable: true},
		}}), nil, nil
	})
	if errors.Is(err, agent.ErrTurnOver) {
		return nil
	}
	return err
}
