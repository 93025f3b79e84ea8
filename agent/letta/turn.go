// What the turns of both interfaces share: the decoder, the stored state, and the output to the emitter.

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

// turn is a running turn of either agent: its decoder, and the state that the journal stores for a restart.
//
// Frames are decoded within Emitter.Decode, which commits the events and the new state in one write. So mu is always locked after the
// emitter's lock; code that has locked mu must not call the emitter.
type turn struct {
	in      agent.Input
	emitter *agent.Emitter

	requests chan event.Request // approvals that the stream asked for; the goroutine that runs the turn shows them to users

	isRejected bool // V1: the server rejected the last request (4xx), so it started no run; used by the turn's goroutine only

	mu           sync.Mutex
	decoder      dialect.Decoder // decodes frames, and counts unknown ones for the metrics
	lettaDecoder *letta.Decoder  // the same decoder without the counting, for its state
	saved        state
	isLost       bool // the turn was ended by endLost

	streamRun    string                  // V1: run of the open stream; empty until the server has named it
	cancelStream context.CancelCauseFunc // V1: ends the open stream; nil if none is open
	otherAnswers chan continuation       // V1: approvals that another client gave for this turn
	isObserved   bool                    // V1: another client started the run
	isSilent     bool                    // V1: Probe has ended the turn because its run is silent
	awaitsRun    bool                    // V1: the last request may have started a run
	rereadAt     string                  // V1: run and seq at which restartStream was last called, so that it isn't called twice there
}

// state is the part of a turn that the journal stores, together with the events that led to it. Its JSON names are a file format.
type state struct {
	Session session `json:"session"`
	// SendCount is the number of requests sent: the message, then one for each set of approvals. It is stored before the request is
	// sent, so 0 proves that the server has received nothing.
	SendCount int `json:"sent,omitempty"`
	// Answer is the last request if it was a set of approvals. AfterRun is the turn's newest run at that time. While it still is
	// the newest, Leat can't know whether the approvals have arrived, and sends them again.
	Answer   *approvalMessage `json:"answer,omitempty"`
	AfterRun string           `json:"after,omitempty"`
	Decoder  json.RawMessage  `json:"decoder,omitempty"`
	// RefusedCalls are tool calls that an earlier turn has left without an answer. The message is sent together with their refusal.
	RefusedCalls []string `json:"refused,omitempty"`
	// ObservedMessage and ObservedRow identify the run of another client: the client_message_id of the message that started it, and
	// the key of that message's row in the history (App Server).
	ObservedMessage string `json:"message,omitempty"`
	ObservedRow     string `json:"row,omitempty"`
	// NextRun is the run that the turn reads next, from its start, although Leat has not sent the request that started it (V1).
	NextRun string `json:"run,omitempty"`
}

// newTurn returns a turn without state; restore adds the state of a turn that was interrupted. If the turn is ended from
// outside, such as by a stop, the text that the decoder still buffers is emitted before the end.
func newTurn(in agent.Input, emitter *agent.Emitter, d dialect.Dialect) *turn {
	frames := d.Decoder()
	t := &turn{in: in, emitter: emitter, decoder: frames, lettaDecoder: dialect.Unwrap(frames).(*letta.Decoder), requests: make(chan event.Request, maxAsks), otherAnswers: make(chan continuation, 1)}
	emitter.OnEnd(t.flushDecoder)
	return t
}

// maxAsks is the capacity of the channels for requests and answers. The decoder limits a step to as many tool calls, so sending
// never blocks.
const maxAsks = 2048

// restore loads the state that an earlier process has stored. raw is empty if the turn had not reached its first request.
func (t *turn) restore(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
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

// decode decodes a frame and emits its events. A large frame waits for a share of the gateway's memory budget. If the turn has
// ended meanwhile, the error is nil if the turn's own last event was the reason.
func (t *turn) decode(f dialect.Frame) error {
	err := t.emitter.WithLargeFrame(len(f.Data), func() error { return t.emitter.Decode(t.decodeStep(f)) })
	if errors.Is(err, agent.ErrTurnOver) && t.isFinished() {
		return nil
	}
	return err
}

// decodeStep returns the function that Emitter.Decode calls: it decodes the frame and encodes the resulting state. If a frame
// has no events it returns no state either: an older cursor is safe, because the server repeats the chunks after it and the
// decoder drops those it has seen.
func (t *turn) decodeStep(f dialect.Frame) func() ([]event.Event, json.RawMessage, error) {
	return func() ([]event.Event, json.RawMessage, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		ops, err := t.decoder.Decode(f)
		if len(ops) == 0 {
			return nil, nil, err
		}
		for i := range ops {
			if ops[i].Type == event.TurnWait {
				t.requests <- *ops[i].Body.Request
			}
			ops[i].Turn = "" // one turn of Leat may take several runs of the server
		}
		raw, serr := t.encodeState()
		return ops, raw, errors.Join(err, serr)
	}
}

// flushDecoder returns events for the text that the decoder still buffers.
func (t *turn) flushDecoder() []event.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	ops, _ := t.lettaDecoder.Close() // an error for an incomplete stream is expected, since the turn was ended before it
	for i := range ops {
		ops[i].Turn = ""
	}
	return ops
}

// encodeState returns the state as the journal stores it. t.mu is locked.
func (t *turn) encodeState() (json.RawMessage, error) {
	dec, err := t.lettaDecoder.State()
	if err != nil {
		return nil, err
	}
	t.saved.Decoder = dec
	return json.Marshal(&t.saved)
}

// update changes the saved state and emits the events that change returns. When it returns nil both are durable, so the caller
// may send the request that the state announces. change runs with t.mu locked.
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

// isFinished reports whether the turn has ended, at the server or as lost.
func (t *turn) isFinished() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isLost || t.lettaDecoder.IsFinished()
}

// hasStopReason reports whether the stream has sent a stop reason. What follows it, usage and [DONE], is optional.
func (t *turn) hasStopReason() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lettaDecoder.HasStopReason()
}

// hasContent reports whether the server has begun the turn, so that the decoder has an open turn to add to.
func (t *turn) hasContent() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lettaDecoder.IsOpen()
}

// hasOpenTool reports whether a tool is running or waiting for approval.
func (t *turn) hasOpenTool() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lettaDecoder.HasOpenTool()
}

// cursor returns the run and the seq_id of the last chunk that was decoded.
func (t *turn) cursor() (run string, seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lettaDecoder.Cursor()
}

// approvals returns the tool calls that wait for a user's approval.
func (t *turn) approvals() []letta.Approval {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lettaDecoder.PendingApprovals()
}

// snapshot returns a copy of the saved state.
func (t *turn) snapshot() state {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.saved
}

// awaitsRunOfLastSend reports whether the server has streamed nothing yet for the last request.
func (t *turn) awaitsRunOfLastSend() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	run, _ := t.lettaDecoder.Cursor()
	return run == t.saved.AfterRun
}

// asker waits for users' answers in one goroutine per request, so that the stream is read meanwhile. The caller cancels the context
// of ask and then waits for tasks.
type asker struct {
	tasks   sync.WaitGroup
	answers chan event.Answer
}

// newAsker returns an asker whose answers have room for all requests of a turn.
func newAsker() *asker { return &asker{answers: make(chan event.Answer, maxAsks)} }

// ask opens a request for approval, unless it is open already, and sends its answer to a.answers.
func (a *asker) ask(ctx context.Context, t *turn, r event.Request) {
	a.tasks.Go(func() {
		answer, err := t.emitter.Ask(ctx, r)
		if err == nil {
			a.answers <- answer
		} else if ctx.Err() == nil {
			t.emitter.Log().Warn("a request for approval could not be opened", "request", r.ID, "error", err)
		}
	})
}

// endLost ends the turn as interrupted, with a retryable error, if the rest of the answer can't be read any more. The text that
// was buffered is emitted first. A turn that has ended already stays as it is.
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
