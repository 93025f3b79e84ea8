package openclaw

import (
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

// turn is one that runs here. All but its queue belongs to the goroutine of its Run, or to whoever holds the emitter's lock.
type turn struct {
	*queue
	a               *gatewayAgent
	in              agent.Input
	emitter         *agent.Emitter
	session         string
	children        []string      // sessions that its runs spawned; guarded by the agent's lock
	finished        chan struct{} // closed when it runs no more
	begins          chan struct{} // closed when it has begun, see [Agent.beginning]
	hasBegunMessage atomic.Bool
	hasLostRun      bool // one of its runs vanished

	dec       dialect.Decoder
	st        turnState
	isEnded   bool
	lastHeard time.Time // when the gateway last said something of the turn
	unsure    bool      // it is not known what becomes of a run
	batch     []item    // taken from the queue, to be handled
	lateEnds  []item    // of runs whose history is still to be read, because the connection was lost
	// observed says that another client began the turn's run, see Observe.
	isObserved bool
	strayRuns
	approvals map[string]*pendingApproval
	tasks     sync.WaitGroup
}

// turnState is what goes with every commit, for Resume.
type turnState struct {
	Session string          `json:"session,omitempty"` // of an observed run
	Runs    []*run          `json:"runs"`
	Decoder json.RawMessage `json:"decoder,omitempty"`
	Media   []*mediaPart    `json:"media,omitempty"`
	// Size is how much the turn has said, in bytes. Frames repeat their texts, so that theirs would say nothing.
	Size int `json:"size,omitempty"`
	// Result is how the run ended that ended last.
	Result *event.Body `json:"result,omitempty"`
}

// run is one of the gateway's runs that together answer the turn.
type run struct {
	ID         string         `json:"id"`
	Message    *agent.Message `json:"message,omitempty"` // that was steered in; nil for the turn's own
	IsSent     bool           `json:"sent,omitempty"`    // chat.send may have been called
	SentAt     int64          `json:"at,omitempty"`      // when, in epoch milliseconds
	PromptedAt int64          `json:"asked,omitempty"`   // when the message was sent that an adopted run answers; 0 means At
	IsAccepted bool           `json:"taken,omitempty"`   // the gateway has it
	HasMessage bool           `json:"begun,omitempty"`   // it has said something
	IsLive     bool           `json:"live,omitempty"`    // it runs, under this id
	// Queued says that the gateway ended the run without a word, because another client's run has the session. It answers the
	// message later, in a run of another id.
	IsQueued bool `json:"queued,omitempty"`
	IsOver   bool `json:"over,omitempty"`

	missingSince time.Time // since when the gateway does not know it
	// blind says that frames of the run went by before it was followed, so that a text may have ended that its history did not have yet.
	mayLackText bool
	// recalled are the texts that histories have.
	recalledTexts []string
	link          *connection // over which it was sent; nil after a restart, and for a run that was adopted
}

// asked returns when the message was sent that the run answers.
func (r *run) promptedAt() time.Time {
	if r.PromptedAt != 0 {
		return time.UnixMilli(r.PromptedAt)
	}
	return time.UnixMilli(r.SentAt)
}

// deaf reports whether the gateway sends no tools of the run over l: before protocol 4 only the connection gets them that the
// message was sent over.
func (r *run) lacksTools(conn *connection) bool {
	return conn.protocol() < numberedProtocol && r.link != conn
}

func (a *gatewayAgent) newTurn(in agent.Input, emitter *agent.Emitter) *turn {
	return &turn{queue: newQueue(), a: a, in: in, emitter: emitter, dec: a.config.Dialect.Decoder(), approvals: map[string]*pendingApproval{}, finished: make(chan struct{}), strayRuns: strayRuns{foreign: map[string]bool{}}}
}

// open returns the runs that have not ended.
func (t *turn) openRuns() []*run {
	var open []*run
	for _, r := range t.st.Runs {
		if !r.IsOver {
			open = append(open, r)
		}
	}
	return open
}

// find returns the run of an id, nil where it is none of the turn's.
func (t *turn) findRun(id string) *run {
	for _, r := range t.st.Runs {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// state is what Resume gets. The emitter's lock is held.
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

// step emits operations together with the state after them. Once no run is open the turn ends with them.
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

// size is how many bytes of text operations hold.
func textSize(ops []event.Event) (n int) {
	for i := range ops {
		n += len(ops[i].Text)
		for _, p := range ops[i].Get().Parts {
			n += len(p.Text)
		}
	}
	return n
}

// decode takes a frame.
func (t *turn) decode(raw []byte) error {
	return t.emitter.WithLargeFrame(len(raw), func() error {
		return t.step(func() ([]event.Event, error) {
			ops, err := t.dec.Decode(dialect.Frame{Data: raw})
			return t.translate(ops), err
		})
	})
}

// emit emits operations that are the turn's own, and takes note of a file, which may be nil.
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

// save makes the state durable.
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

// end is the turn's end: that of the run that ended last.
func (t *turn) endEvent() event.Event {
	b := t.st.Result
	if b == nil {
		b = &event.Body{Outcome: event.Completed}
	}
	return event.Event{Type: event.TurnEnd, Turn: t.in.Key, Body: b}
}

// held is what the decoder holds back when the turn ends. The emitter's lock is held, but it may not be the turn's own
// goroutine that holds it: of the turn's notes only those are read that are written under that lock.
func (t *turn) flushDecoder() []event.Event {
	ops, _ := t.dec.Close() // that runs are open is no news
	for i, op := range ops {
		if op.Turn == "" || t.findRun(op.Turn) != nil {
			ops[i].Turn = t.in.Key
		}
		ops[i], _ = withoutPath(ops[i])
	}
	return ops
}

// translate makes the operations of the turn's runs the turn's own, and takes note of what they say. Runs that those have
// spawned stay turns inside this one.
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
			continue // which run it is was said before it was asked for
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

// over notes how a run ended. One that was steered into another, and so had nothing to say itself, does not count.
func (t *turn) noteEnd(r *run, b *event.Body) {
	r.IsOver = true
	if r.Message == nil || r.HasMessage || b.Outcome != event.Completed {
		t.st.Result = b
	}
}

// lose ends a run that vanished.
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

// frame takes a frame of a run: the turn's own, or one that they spawned.
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

// isInjected reports whether a run is a message that was put into the session.
func isInjected(id string) bool { return len(id) > 7 && id[:7] == "inject-" }

// phase says what the turn waits for.
func (t *turn) showPhase(ctx context.Context, phase string) {
	if err := t.emitter.Phase(phase); err != nil && ctx.Err() == nil {
		t.emitter.Log().Warn("phase not shown", "phase", phase, "error", err)
	}
}
