package openclaw

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// turn is a turn in progress, started by Leat or observed. Except for its queue, it belongs to the goroutine of Run, Resume or
// Observe; fields that step reads are also guarded by the emitter's lock, because the emitter flushes the decoder from another
// goroutine.
type turn struct {
	*queue
	a               *gatewayAgent
	in              agent.Input
	emitter         *agent.Emitter
	session         string
	children        []string      // sessions that its runs spawned; guarded by the agent's mu
	finished        chan struct{} // closed by unregister
	begins          chan struct{} // closed when its first message is durable, see [gatewayAgent.beginning]
	hasBegunMessage atomic.Bool
	hasLostRun      bool // one of its runs has disappeared

	dec       dialect.Decoder
	st        turnState
	isEnded   bool
	lastHeard time.Time // when the gateway last sent anything about the turn
	unsure    bool      // the state of a run is unknown: look it up again within unsureCheck
	batch     []item    // items taken from the queue and not handled yet
	lateEnds  []item    // end frames that are shown after the history is read; the connection was lost before
	// isObserved is true if another client started the run, see Observe.
	isObserved bool
	strayRuns
	approvals map[string]*pendingApproval
	tasks     sync.WaitGroup
}

// turnState is stored with every commit and passed to Resume after a restart of Leat. Its JSON is a stored format: names may be
// added, not changed.
type turnState struct {
	Session string          `json:"session,omitempty"` // set for an observed run only
	Runs    []*run          `json:"runs"`
	Decoder json.RawMessage `json:"decoder,omitempty"`
	Media   []*mediaPart    `json:"media,omitempty"`
	// Size is the text of the turn so far, in bytes.
	Size int `json:"size,omitempty"`
	// Result is the outcome of the run that ended last, or nil.
	Result *event.Body `json:"result,omitempty"`
}

// run is one of the gateway's runs that together answer the turn. The exported fields are stored.
type run struct {
	ID         string         `json:"id"`
	Message    *agent.Message `json:"message,omitempty"` // the steered message; nil if the run answers the turn's own
	IsSent     bool           `json:"sent,omitempty"`    // chat.send may have reached the gateway
	SentAt     int64          `json:"at,omitempty"`      // when it was sent, in epoch milliseconds
	PromptedAt int64          `json:"asked,omitempty"`   // of an adopted run: when its message was sent; 0 means SentAt
	IsAccepted bool           `json:"taken,omitempty"`   // the gateway has the message
	HasMessage bool           `json:"begun,omitempty"`   // it has begun a message
	IsLive     bool           `json:"live,omitempty"`    // the gateway runs it under this id
	// IsQueued is true if the gateway ended the run without an answer, because another client's run occupies the session. The
	// message is answered later by a run with another id.
	IsQueued bool `json:"queued,omitempty"`
	IsOver   bool `json:"over,omitempty"`

	missingSince time.Time // since when no history shows it; zero if one does
	// mayLackText is true if frames of the run were missed before it was followed: a text may have ended meanwhile that the
	// history did not contain yet.
	mayLackText bool
	// recalledTexts are the texts of the run that the last history contained.
	recalledTexts []string
	link          *connection // the connection that sent it; nil after a restart and for an adopted run
}

// promptedAt returns when the message that the run answers was sent.
func (r *run) promptedAt() time.Time {
	if r.PromptedAt != 0 {
		return time.UnixMilli(r.PromptedAt)
	}
	return time.UnixMilli(r.SentAt)
}

// lacksTools reports whether the gateway sends no tool frames of the run over c. Before protocol 4 only the connection that
// sent the message gets them.
func (r *run) lacksTools(conn *connection) bool {
	return conn.protocol() < numberedProtocol && r.link != conn
}

// newTurn returns a turn that is not registered yet.
func (a *gatewayAgent) newTurn(in agent.Input, emitter *agent.Emitter) *turn {
	return &turn{queue: newQueue(), a: a, in: in, emitter: emitter, dec: a.config.Dialect.Decoder(), approvals: map[string]*pendingApproval{}, finished: make(chan struct{}), strayRuns: strayRuns{foreign: map[string]bool{}}}
}

// openRuns returns the runs that have not ended.
func (t *turn) openRuns() []*run {
	var open []*run
	for _, r := range t.st.Runs {
		if !r.IsOver {
			open = append(open, r)
		}
	}
	return open
}

// findRun returns the turn's run with that id, or nil.
func (t *turn) findRun(id string) *run {
	for _, r := range t.st.Runs {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// encodeState encodes the state for Resume. The caller holds the emitter's lock.
func (t *turn) encodeState() (json.RawMessage, error) {
	var err error
	if t.st.Decoder, err = t.dec.State(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(&t.st)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	return b, nil
}

// step commits events together with the state after them, so that Resume never sees one without the other. make is called under
// the emitter's lock and may change the turn's state. If no run is open afterwards, the turn's end is part of the same commit.
// A turn above the size limit fails with codeFlood.
func (t *turn) step(make func() ([]event.Event, error)) error {
	if t.isEnded {
		return nil
	}
	hasStarted := false
	err := t.emitter.Decode(func() ([]event.Event, json.RawMessage, error) {
		ops, derr := make()
		if t.st.Size += textSize(ops); derr == nil && t.st.Size > t.a.config.limit {
			ops, derr = nil, &agent.Error{Code: codeFlood, Message: agent.ErrTooLarge.Error()}
		}
		if derr == nil && len(t.st.Runs) > 0 && len(t.openRuns()) == 0 {
			t.isEnded = true
			ops = append(ops, t.endEvent())
		}
		hasStarted = t.isEnded || t.hasBegun()
		if len(ops) == 0 {
			return nil, nil, derr
		}
		st, err := t.encodeState()
		return ops, st, errors.Join(derr, err)
	})
	if t.isEnded && errors.Is(err, agent.ErrTurnOver) {
		err = nil
	}
	if !hasStarted || err != nil {
		return err
	}
	return t.recordBegun()
}

// textSize returns how many bytes of text the events contain. Frames can't be counted instead, because each repeats the text so
// far.
func textSize(ops []event.Event) (n int) {
	for i := range ops {
		n += len(ops[i].Text)
		for _, p := range ops[i].Get().Parts {
			n += len(p.Text)
		}
	}
	return n
}

// decode decodes a frame and commits the result. It waits for room in the budget for large frames.
func (t *turn) decode(raw []byte) error {
	return t.emitter.WithLargeFrame(len(raw), func() error {
		return t.step(func() ([]event.Event, error) {
			ops, err := t.dec.Decode(dialect.Frame{Data: raw})
			return t.translate(ops), err
		})
	})
}

// emit commits events that the decoder did not make, as events of the turn itself. If m is not nil, it is recorded as a file of
// the turn in the same commit.
func (t *turn) emit(m *mediaPart, ops []event.Event) error {
	return t.step(func() ([]event.Event, error) {
		if m != nil {
			t.st.Media = append(t.st.Media, m)
		}
		for i := range ops {
			ops[i].Turn = t.in.Key
		}
		return ops, nil
	})
}

// save makes the state durable, even if there is no event to commit with it.
func (t *turn) save() error {
	err := t.emitter.Decode(func() ([]event.Event, json.RawMessage, error) {
		st, err := t.encodeState()
		return nil, st, err
	})
	if err != nil {
		return err
	}
	return t.emitter.Flush()
}

// endEvent returns the event that ends the turn, with the outcome of the run that ended last. A turn whose runs were all taken
// into other runs is completed.
func (t *turn) endEvent() event.Event {
	b := cmp.Or(t.st.Result, &event.Body{Outcome: event.Completed})
	return event.Event{Type: event.TurnEnd, Turn: t.in.Key, Body: b}
}

// flushDecoder returns the events that the decoder has buffered; the emitter calls it when the turn ends. The caller holds the
// emitter's lock, but may run on another goroutine, so it reads only fields that step writes.
func (t *turn) flushDecoder() []event.Event {
	ops, _ := t.dec.Close() // the error only reports that runs are open
	for i, op := range ops {
		if op.Turn == "" || t.findRun(op.Turn) != nil {
			ops[i].Turn = t.in.Key
		}
		ops[i], _ = withoutPath(ops[i])
	}
	return ops
}

// translate turns the decoder's events, which belong to runs, into events of the turn, and updates the runs. Events of spawned
// runs keep their own turn, nested in this one. Run updates and run ends are left out: step adds the turn's own end.
func (t *turn) translate(ops []event.Event) []event.Event {
	translated := ops[:0]
	for _, op := range ops {
		r := t.findRun(op.Turn)
		if r != nil || op.Turn == "" {
			op.Turn = t.in.Key
		}
		op, m := withoutPath(op)
		if m != nil {
			t.st.Media = append(t.st.Media, m)
		}
		switch {
		case r == nil:
		case op.Type == event.TurnUpdate && op.Get().Upstream != nil:
			r.IsAccepted = true
			continue // send has already reported the run's id
		case op.Type == event.MessageStart:
			r.HasMessage = true
		case op.Type == event.TurnEnd:
			t.noteEnd(r, op.Body)
			continue
		}
		translated = append(translated, op)
	}
	return translated
}

// noteEnd records the end of a run. A steered message whose run completed without a message was answered by the run that took
// it in, so its outcome is not the turn's.
func (t *turn) noteEnd(r *run, b *event.Body) {
	r.IsOver = true
	if r.Message == nil || r.HasMessage || b.Outcome != event.Completed {
		t.st.Result = b
	}
}

// lose ends a run that has disappeared as interrupted, with reason as the message. If it was the last open run, buffered text
// is shown first.
func (t *turn) lose(r *run, reason string) error {
	t.hasLostRun = true
	return t.step(func() ([]event.Event, error) {
		t.noteEnd(r, &event.Body{Outcome: event.Interrupted, Reason: codeLost, Error: &event.Error{
			Code: codeLost, Message: reason, Retryable: true,
		}})
		if len(t.openRuns()) > 0 {
			return nil, nil
		}
		return t.flushDecoder(), nil
	})
}

// handleFrame decodes a frame of one of the turn's runs, or of a run that one of them spawned. Frames of other runs in the
// session go to addStray; frames of runs that have ended are dropped.
func (t *turn) handleFrame(i item) error {
	r := t.findRun(i.run.Run)
	if r == nil && i.run.Session == t.session && !isInjected(i.run.Run) {
		t.addStray(i)
		return nil
	}
	if r != nil && r.IsOver {
		return nil
	}
	if r != nil {
		r.missingSince = time.Time{}
		r.IsLive = true
	}
	t.lastHeard = time.Now()
	t.emitter.CaptureReceived(i.raw)
	return t.decode(i.raw)
}

// isInjected reports whether the id is that of a message that was inserted into the session without a run.
func isInjected(id string) bool { return len(id) > 7 && id[:7] == "inject-" }

// showPhase shows viewers what the turn waits for. A failure is only logged: the phase is a hint.
func (t *turn) showPhase(ctx context.Context, phase string) {
	if err := t.emitter.Phase(phase); err != nil && ctx.Err() == nil {
		t.emitter.Log().Warn("phase not shown", "phase", phase, "error", err)
	}
}
