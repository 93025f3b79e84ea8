package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// PushAgent is the name of the agent of pushed turns: a producer outside brings the stream in.
const PushAgent = "push"

// pushState is what is stored of a pushed turn with each commit.
type pushState struct {
	Dialect string          `json:"dialect"`
	Offset  int64           `json:"offset"` // bytes of the body up to the end of the last frame whose events are committed
	Stream  json.RawMessage `json:"stream,omitempty"`
}

// appendJSON is what encoding/json makes of it. It is written with nearly every commit, and Stream is JSON as it is.
func (s *pushState) appendJSON(b []byte) []byte {
	b = event.AppendString(append(b, `{"dialect":`...), s.Dialect)
	b = strconv.AppendInt(append(b, `,"offset":`...), s.Offset, 10)
	if len(s.Stream) > 0 {
		b = append(append(b, `,"stream":`...), s.Stream...)
	}
	return append(b, '}')
}

// push is a pushed turn that is open, with its producer's stream.
type push struct {
	g    *Gateway
	turn string

	started chan struct{} // closed when the turn runs
	over    chan struct{} // closed when the turn runs here no more, or never will

	mu     sync.Mutex
	ended  bool // over is closed
	run    *run // nil while the turn is queued; d and stream come with it
	d      dialect.Dialect
	stream *dialect.Stream
	hold   agent.Hold // of what stream holds
	state  pushState  // after the last frame handed on
	owner  int        // generation of the attached connection; 0 is nobody
	lease  *time.Timer
	done   chan error

	answers  []event.Answer // that people gave, for the producer to be told
	answered chan struct{}  // closed and replaced when one comes
}

// PushOptions describe a pushed turn.
type PushOptions struct {
	Dialect string
	Answers string // id of the message that it answers; may be empty
	Key     string // makes a repeat harmless: it attaches to the turn of the first
}

// Push makes a turn whose stream the caller brings, and attaches to it. Where other turns are unfinished it waits in
// the queue, and Write with it.
func (g *Gateway) Push(ctx context.Context, p Principal, conversation string, opt PushOptions) (*Producer, Ack, error) {
	d, err := g.cfg.Dialects.Lookup(opt.Dialect)
	if err != nil {
		return nil, Ack{}, reject(ReasonDialect, "%v", err)
	}
	if g.Draining() {
		return nil, Ack{}, reject(ReasonDraining, "the gateway is stopping; try again in a moment")
	}
	for name, v := range map[string]string{"key": opt.Key, "answers": opt.Answers} {
		if err := event.CheckID(name, v); err != nil {
			return nil, Ack{}, reject(ReasonInvalid, "%v", err)
		}
	}
	w, err := g.writer(ctx, conversation)
	if err != nil {
		return nil, Ack{}, err
	}
	defer w.release()
	s := w.info()
	if err := Decide(p, ActionAgent, &s); err != nil {
		return nil, Ack{}, err
	}
	state, err := json.Marshal(pushState{Dialect: d.Name})
	if err != nil {
		return nil, Ack{}, err
	}
	c := Command{Type: "push", Key: opt.Key, Agent: d.Name, After: opt.Answers, by: by(ctx, p)}
	ack, err := w.keyed(ctx, c, func(t *tx) (Ack, error) {
		if n := len(w.inQueue(w.summary.Open)); n > g.settings().MaxQueued {
			return Ack{}, reject(ReasonFull, "%d turns wait already", n-1)
		}
		if opt.Answers != "" && w.isNewMessageID(opt.Answers) {
			return Ack{}, reject(ReasonUnknown, "no message %q here", opt.Answers)
		}
		turn := newID()
		if err := t.reserve(p, quota.Need{Turn: turn, Message: true, Bytes: g.sizeOf()}); err != nil {
			return Ack{}, err
		}
		ack := Ack{Turn: turn}
		a, _ := g.agent(PushAgent, behalf(p))
		ack.State, ack.Seq = w.begin(t, turn, PushAgent, a, opt.Answers, p, state)
		return ack, nil
	})
	if err != nil {
		return nil, ack, err
	}
	pr, err := g.attach(ctx, conversation, ack.Turn)
	return pr, ack, err
}

// PushStatus tells how far a pushed turn has come: the committed offset and whether the turn has ended.
func (g *Gateway) PushStatus(ctx context.Context, p Principal, turn string) (offset int64, ended bool, err error) {
	conversation, t, err := g.Turn(ctx, p, ActionAgent, turn)
	if err != nil {
		return 0, false, err
	}
	if may, err := g.mayPush(ctx, conversation, turn, t.Agent); err != nil || !may {
		return 0, false, cmp.Or(err, ErrNotFound)
	}
	if t.Unfinished() {
		// What was handed on but waits for its commit counts once it is committed.
		if w, err := g.writer(ctx, conversation); err == nil {
			err = w.submit(ctx, false, func(*tx) error { return nil })
			w.release()
			if err != nil {
				return 0, false, err
			}
		}
	}
	st, err := g.pushState(ctx, turn)
	if errors.Is(err, journal.ErrNotFound) {
		if t.Unfinished() && t.Agent != PushAgent {
			return 0, false, nil // it is not handed on yet
		}
		return 0, true, ErrTurnOver // the state goes with the end, which may have come just now
	}
	return st.Offset, !t.Unfinished(), err
}

// Attach goes on with a pushed turn. A connection that was attached before is cut off.
func (g *Gateway) Attach(ctx context.Context, p Principal, turn string) (*Producer, error) {
	conversation, t, err := g.Turn(ctx, p, ActionAgent, turn)
	if err != nil {
		return nil, err
	}
	if may, err := g.mayPush(ctx, conversation, turn, t.Agent); err != nil || !may {
		return nil, cmp.Or(err, ErrNotFound)
	}
	if !t.Unfinished() {
		return nil, ErrTurnOver
	}
	return g.attach(ctx, conversation, turn)
}

func (g *Gateway) attach(ctx context.Context, conversation, turn string) (*Producer, error) {
	w, err := g.writer(ctx, conversation)
	if err != nil {
		return nil, err
	}
	p := g.push(turn)
	// An end that is committed from here on finds p and closes it; one from before may have been missed.
	if !slices.Contains(w.info().Open, turn) {
		g.endPush(p)
		w.release()
		return nil, ErrTurnOver
	}
	// Read once p is there: where it has no run yet nothing has been written since.
	st, err := g.pushState(ctx, turn)
	if err != nil && !errors.Is(err, journal.ErrNotFound) { // which says that its agent has not handed it on yet
		w.release()
		return nil, JournalError("state of pushed turn", err)
	}
	given, err := g.undeliveredAnswers(ctx, turn)
	if err != nil {
		w.release()
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range given {
		p.tell(a)
	}
	if p.run == nil {
		p.state = st
	} else if p.stream, err = restored(p.d, p.state); err != nil { // half a frame may be left of the connection before
		w.release()
		return nil, err
	}
	if p.lease != nil {
		p.lease.Stop()
		p.lease = nil
	}
	p.owner++
	return &Producer{Turn: turn, Conversation: conversation, p: p, writer: w, generation: p.owner, acks: make(chan PushAck, 1)}, nil
}

func (g *Gateway) pushState(ctx context.Context, turn string) (st pushState, err error) {
	v, err := g.journal.Get(ctx, journalkey.TurnState(turn))
	if err != nil {
		return st, err
	}
	return st, json.Unmarshal(v, &st)
}

// push returns the open pushed turn, which it makes where it is not known yet.
func (g *Gateway) push(turn string) *push {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.pushes[turn]
	if p == nil {
		p = &push{g: g, turn: turn, started: make(chan struct{}), over: make(chan struct{}), done: make(chan error, 1), answered: make(chan struct{})}
		g.pushes[turn] = p
	}
	return p
}

// endTurnPush ends what is open of a pushed turn that has ended.
func (g *Gateway) endTurnPush(turn string) {
	g.mu.Lock()
	p := g.pushes[turn]
	g.mu.Unlock()
	if p != nil {
		g.endPush(p)
	}
}

// endPush forgets a pushed turn that has ended or is left to another process, and tells its producer. A second call does nothing.
func (g *Gateway) endPush(p *push) {
	g.mu.Lock()
	if g.pushes[p.turn] == p {
		delete(g.pushes, p.turn)
	}
	g.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	p.hold.Release()
	if p.lease != nil {
		p.lease.Stop()
	}
	close(p.over)
}

// saved returns the operations with the state after them. p.mu is held.
func (p *push) saved(ops []event.Event) ([]event.Event, json.RawMessage, error) {
	st, err := p.stream.State()
	if err != nil {
		return ops, nil, err
	}
	p.state = pushState{Dialect: p.d.Name, Offset: p.stream.Offset(), Stream: st}
	return ops, p.state.appendJSON(nil), nil
}

// finish lets Run return.
func (p *push) finish(err error) {
	select {
	case p.done <- err:
	default: // it is on its way already
	}
}

// tell notes an answer for the producer. p.mu is held.
func (p *push) tell(a event.Answer) {
	if slices.ContainsFunc(p.answers, func(known event.Answer) bool { return known.ID == a.ID }) {
		return
	}
	p.answers = append(p.answers, a)
	close(p.answered)
	p.answered = make(chan struct{})
}
