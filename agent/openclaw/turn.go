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
	a        *Agent
	in       agent.Input
	out      *agent.Emitter
	session  string
	children []string      // sessions that its runs spawned; guarded by the agent's lock
	gone     chan struct{} // closed when it runs no more
	begins   chan struct{} // closed when it has begun, see [Agent.beginning]
	begun    atomic.Bool
	lost     bool // one of its runs vanished

	dec    dialect.Decoder
	st     turnState
	ended  bool
	heard  time.Time // when the gateway last said something of the turn
	unsure bool      // it is not known what becomes of a run
	batch  []item    // taken from the queue, to be handled
	ends   []item    // of runs whose history is still to be read, because the connection was lost
	// observed says that another client began the turn's run, see Observe.
	observed bool
	others
	asked map[string]*asking
	tasks sync.WaitGroup
}

// turnState is what goes with every commit, for Resume.
type turnState struct {
	Session string          `json:"session,omitempty"` // of an observed run
	Runs    []*run          `json:"runs"`
	Decoder json.RawMessage `json:"decoder,omitempty"`
	Media   []*media        `json:"media,omitempty"`
	// Size is how much the turn has said, in bytes. Frames repeat their texts, so that theirs would say nothing.
	Size int `json:"size,omitempty"`
	// Result is how the run ended that ended last.
	Result *event.Body `json:"result,omitempty"`
}

// run is one of the gateway's runs that together answer the turn.
type run struct {
	ID      string         `json:"id"`
	Message *agent.Message `json:"message,omitempty"` // that was steered in; nil for the turn's own
	Sent    bool           `json:"sent,omitempty"`    // chat.send may have been called
	At      int64          `json:"at,omitempty"`      // when, in epoch milliseconds
	Asked   int64          `json:"asked,omitempty"`   // when the message was sent that an adopted run answers; 0 means At
	Taken   bool           `json:"taken,omitempty"`   // the gateway has it
	Begun   bool           `json:"begun,omitempty"`   // it has said something
	Live    bool           `json:"live,omitempty"`    // it runs, under this id
	// Queued says that the gateway ended the run without a word, because another client's run has the session. It answers the
	// message later, in a run of another id.
	Queued bool `json:"queued,omitempty"`
	Over   bool `json:"over,omitempty"`

	missing time.Time // since when the gateway does not know it
	// blind says that frames of the run went by before it was followed, so that a text may have ended that its history did not have yet.
	blind bool
	// recalled are the texts that histories have.
	recalled []string
	link     *link // over which it was sent; nil after a restart, and for a run that was adopted
}

// asked returns when the message was sent that the run answers.
func (r *run) asked() time.Time {
	if r.Asked != 0 {
		return time.UnixMilli(r.Asked)
	}
	return time.UnixMilli(r.At)
}

// deaf reports whether the gateway sends no tools of the run over l: before protocol 4 only the connection gets them that the
// message was sent over.
func (r *run) deaf(l *link) bool { return l.protocol() < numbered && r.link != l }

func (a *Agent) newTurn(in agent.Input, out *agent.Emitter) *turn {
	return &turn{queue: newQueue(), a: a, in: in, out: out, dec: a.cfg.Dialect.Decoder(), asked: map[string]*asking{}, gone: make(chan struct{}), others: others{foreign: map[string]bool{}}}
}

// open returns the runs that have not ended.
func (t *turn) open() []*run {
	var open []*run
	for _, r := range t.st.Runs {
		if !r.Over {
			open = append(open, r)
		}
	}
	return open
}

// find returns the run of an id, nil where it is none of the turn's.
func (t *turn) find(id string) *run {
	for _, r := range t.st.Runs {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// state is what Resume gets. The emitter's lock is held.
func (t *turn) state() (json.RawMessage, error) {
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
	if t.ended {
		return nil
	}
	begun := false
	err := t.out.Decode(func() ([]event.Event, json.RawMessage, error) {
		ops, derr := make()
		if t.st.Size += size(ops); derr == nil && t.st.Size > t.a.cfg.limit {
			ops, derr = nil, &agent.Error{Code: codeFlood, Message: agent.ErrTooLarge.Error()}
		}
		if derr == nil && len(t.st.Runs) > 0 && len(t.open()) == 0 {
			t.ended = true
			ops = append(ops, t.end())
		}
		begun = t.ended || t.hasBegun()
		if len(ops) == 0 {
			return nil, nil, derr
		}
		st, err := t.state()
		return ops, st, errors.Join(derr, err)
	})
	if t.ended && errors.Is(err, agent.ErrTurnOver) {
		err = nil
	}
	if !begun || err != nil {
		return err
	}
	return t.recordBegun()
}

// size is how many bytes of text operations hold.
func size(ops []event.Event) (n int) {
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
	return t.out.Large(len(raw), func() error {
		return t.step(func() ([]event.Event, error) {
			ops, err := t.dec.Decode(dialect.Frame{Data: raw})
			return t.translate(ops), err
		})
	})
}

// emit emits operations that are the turn's own, and takes note of a file, which may be nil.
func (t *turn) emit(m *media, ops []event.Event) error {
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
	err := t.out.Decode(func() ([]event.Event, json.RawMessage, error) {
		st, err := t.state()
		return nil, st, err
	})
	if err != nil {
		return err
	}
	return t.out.Flush()
}

// end is the turn's end: that of the run that ended last.
func (t *turn) end() event.Event {
	b := t.st.Result
	if b == nil {
		b = &event.Body{Outcome: event.Completed}
	}
	return event.Event{Type: event.TurnEnd, Turn: t.in.Key, Body: b}
}

// held is what the decoder holds back when the turn ends. The emitter's lock is held, but it may not be the turn's own
// goroutine that holds it: of the turn's notes only those are read that are written under that lock.
func (t *turn) held() []event.Event {
	ops, _ := t.dec.Close() // that runs are open is no news
	for i, op := range ops {
		if op.Turn == "" || t.find(op.Turn) != nil {
			ops[i].Turn = t.in.Key
		}
		ops[i], _ = mediaStarts(ops[i])
	}
	return ops
}

// translate makes the operations of the turn's runs the turn's own, and takes note of what they say. Runs that those have
// spawned stay turns inside this one.
func (t *turn) translate(ops []event.Event) []event.Event {
	out := ops[:0]
	for _, op := range ops {
		r := t.find(op.Turn)
		if r != nil || op.Turn == "" {
			op.Turn = t.in.Key
		}
		op, m := mediaStarts(op)
		if m != nil {
			t.st.Media = append(t.st.Media, m)
		}
		switch {
		case r == nil:
		case op.Type == event.TurnUpdate && op.Get().Upstream != nil:
			r.Taken = true
			continue // which run it is was said before it was asked for
		case op.Type == event.MessageStart:
			r.Begun = true
		case op.Type == event.TurnEnd:
			t.over(r, op.Body)
			continue
		}
		out = append(out, op)
	}
	return out
}

// over notes how a run ended. One that was steered into another, and so had nothing to say itself, does not count.
func (t *turn) over(r *run, b *event.Body) {
	r.Over = true
	if r.Message == nil || r.Begun || b.Outcome != event.Completed {
		t.st.Result = b
	}
}

// lose ends a run that vanished.
func (t *turn) lose(r *run, why string) error {
	t.lost = true
	return t.step(func() ([]event.Event, error) {
		t.over(r, &event.Body{Outcome: event.Interrupted, Reason: codeLost, Error: &event.Error{
			Code: codeLost, Message: why, Retryable: true,
		}})
		if len(t.open()) > 0 {
			return nil, nil
		}
		return t.held(), nil
	})
}

// frame takes a frame of a run: the turn's own, or one that they spawned.
func (t *turn) frame(i item) error {
	r := t.find(i.run.Run)
	if r == nil && i.run.Session == t.session && !isInjected(i.run.Run) {
		t.stray(i)
		return nil
	}
	if r != nil && r.Over {
		return nil
	}
	if r != nil {
		r.missing = time.Time{}
		r.Live = true
	}
	t.heard = time.Now()
	t.out.Received(i.raw)
	return t.decode(i.raw)
}

// isInjected reports whether a run is a message that was put into the session.
func isInjected(id string) bool { return len(id) > 7 && id[:7] == "inject-" }

// phase says what the turn waits for.
func (t *turn) phase(ctx context.Context, phase string) {
	if err := t.out.Phase(phase); err != nil && ctx.Err() == nil {
		t.out.Log().Warn("phase not shown", "phase", phase, "error", err)
	}
}
