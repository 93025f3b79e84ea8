package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/journal"
)

// PushAgent is the name of the agent of pushed turns: a producer outside brings the stream in.
const PushAgent = "push"

// errTaken says that another connection of the producer has taken over.
var errTaken = fmt.Errorf("%w: another connection has taken over", ErrTurnOver)

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
	d    dialect.Dialect

	mu      sync.Mutex
	started chan struct{} // closed when the turn runs
	over    chan struct{} // closed when the turn runs here no more, or never will
	run     *run
	stream  *dialect.Stream
	state   pushState // after the last frame handed on
	owner   int       // generation of the attached connection; 0 is nobody
	lease   *time.Timer
	done    chan error
}

// Producer is one connection that brings a pushed turn's stream in. Its methods are called from one goroutine, which
// calls Close in the end.
type Producer struct {
	Turn         string
	Conversation string
	p            *push
	o            *owner // held until Close
	closed       sync.Once
	generation   int
	acks         chan PushAck
}

// PushAck says up to which byte of the body everything is committed, and at which seq.
type PushAck struct {
	Offset int64 `json:"offset"`
	Seq    int64 `json:"seq"`
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
	o, err := g.owner(ctx, conversation)
	if err != nil {
		return nil, Ack{}, err
	}
	defer o.release()
	s := o.info()
	if err := Decide(p, ActionAgent, &s); err != nil {
		return nil, Ack{}, err
	}
	state, err := json.Marshal(pushState{Dialect: d.Name})
	if err != nil {
		return nil, Ack{}, err
	}
	c := Command{Type: "push", Key: opt.Key, Agent: d.Name, After: opt.Answers}
	ack, err := o.keyed(ctx, c, func(t *tx) (Ack, error) {
		if len(o.summary.Open) > g.cfg.MaxQueued {
			return Ack{}, reject(ReasonFull, "%d turns wait already", len(o.summary.Open)-1)
		}
		if opt.Answers != "" && o.free(opt.Answers) {
			return Ack{}, reject(ReasonUnknown, "no message %q here", opt.Answers)
		}
		turn := newID()
		ack := Ack{Turn: turn}
		a, _ := g.agent(PushAgent)
		ack.State, ack.Seq = o.begin(t, turn, PushAgent, a, opt.Answers, p, state)
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
	if t.Agent != PushAgent {
		return 0, false, ErrNotFound
	}
	if t.Unfinished() {
		// What was handed on but waits for its commit counts once it is committed.
		if o, err := g.owner(ctx, conversation); err == nil {
			err = o.submit(ctx, false, func(*tx) error { return nil })
			o.release()
			if err != nil {
				return 0, false, err
			}
		}
	}
	st, err := g.pushState(ctx, turn)
	if errors.Is(err, journal.ErrNotFound) {
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
	if t.Agent != PushAgent {
		return nil, ErrNotFound
	}
	if !t.Unfinished() {
		return nil, ErrTurnOver
	}
	return g.attach(ctx, conversation, turn)
}

func (g *Gateway) attach(ctx context.Context, conversation, turn string) (*Producer, error) {
	st, err := g.pushState(ctx, turn)
	if err != nil {
		return nil, journalError("state of pushed turn", err)
	}
	d, err := g.cfg.Dialects.Lookup(st.Dialect)
	if err != nil {
		return nil, fmt.Errorf("pushed turn %s: %w", turn, err)
	}
	o, err := g.owner(ctx, conversation)
	if err != nil {
		return nil, err
	}
	p := g.push(turn, d)
	// An end that is committed from here on finds p and closes it; one from before may have been missed.
	if !slices.Contains(o.info().Open, turn) {
		g.endPush(turn)
		o.release()
		return nil, ErrTurnOver
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lease != nil {
		p.lease.Stop()
		p.lease = nil
	}
	p.owner++
	if p.stream != nil {
		// The connection before may have left half a frame behind.
		if p.stream, err = restored(p.d, p.state); err != nil {
			o.release()
			return nil, err
		}
	}
	return &Producer{Turn: turn, Conversation: conversation, p: p, o: o, generation: p.owner, acks: make(chan PushAck, 1)}, nil
}

func (g *Gateway) pushState(ctx context.Context, turn string) (st pushState, err error) {
	v, err := g.journal.Get(ctx, stateKey(turn))
	if err != nil {
		return st, err
	}
	return st, json.Unmarshal(v, &st)
}

// push returns the open pushed turn, which it makes where it is not known yet.
func (g *Gateway) push(turn string, d dialect.Dialect) *push {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.pushes[turn]
	if p == nil {
		p = &push{g: g, turn: turn, d: d, started: make(chan struct{}), over: make(chan struct{}), done: make(chan error, 1)}
		g.pushes[turn] = p
	}
	return p
}

func restored(d dialect.Dialect, st pushState) (*dialect.Stream, error) {
	s := dialect.NewStream(d)
	if st.Stream == nil {
		return s, nil
	}
	return s, s.Restore(st.Stream)
}

// pushAgent runs pushed turns. It can be resumed: the producer comes back.
type pushAgent struct{ g *Gateway }

func (a pushAgent) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	v, err := a.g.journal.Get(ctx, stateKey(in.Turn))
	if err != nil {
		return fmt.Errorf("state of pushed turn: %w", err)
	}
	return a.Resume(ctx, in, v, out)
}

func (a pushAgent) Resume(ctx context.Context, in agent.Input, state json.RawMessage, out *agent.Emitter) error {
	var st pushState
	if err := json.Unmarshal(state, &st); err != nil {
		return fmt.Errorf("state of pushed turn: %w", err)
	}
	d, err := a.g.cfg.Dialects.Lookup(st.Dialect)
	if err != nil {
		return err
	}
	p := a.g.push(in.Turn, d)
	defer a.g.endPush(in.Turn)
	o, err := a.g.owner(ctx, in.Conversation)
	if err != nil {
		return err
	}
	defer o.release()
	o.mu.Lock()
	r := o.current
	o.mu.Unlock()

	p.mu.Lock()
	p.run, p.state = r, st
	if p.stream, err = restored(d, st); err != nil {
		p.mu.Unlock()
		return err
	}
	if p.owner == 0 {
		p.arm()
	}
	close(p.started)
	p.mu.Unlock()
	out.OnEnd(func() []event.Event {
		p.mu.Lock()
		defer p.mu.Unlock()
		// The turn ends whatever the stream says of its own end.
		ops, _ := p.stream.Close()
		return ops
	})
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endPush forgets a pushed turn that has ended or is left to another process, and tells its producer.
func (g *Gateway) endPush(turn string) {
	g.mu.Lock()
	p := g.pushes[turn]
	delete(g.pushes, turn)
	g.mu.Unlock()
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lease != nil {
		p.lease.Stop()
	}
	close(p.over) // once: only who took p out of the table comes here
}

// arm starts the lease, unless the turn is over. p.mu is held.
func (p *push) arm() {
	if p.lease != nil {
		p.lease.Stop()
	}
	select {
	case <-p.over:
		return
	default:
	}
	p.lease = time.AfterFunc(p.g.cfg.Lease, p.expire)
}

// expire ends a turn whose producer stayed away, unless a person is being waited for.
func (p *push) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lease == nil {
		return // attached again
	}
	if p.run != nil && p.run.busy() {
		p.arm()
		return
	}
	p.g.cfg.Metrics.Leases.Inc()
	err := &agent.Error{Code: codeLease, Message: "the agent's connection was lost and did not come back", Retryable: true}
	if p.run != nil {
		p.finish(err)
		return
	}
	// It waits in the queue still.
	p.g.mu.Lock()
	delete(p.g.pushes, p.turn)
	p.g.mu.Unlock()
	p.g.tasks.Go(func() {
		if err := p.g.endQueued(p.turn, (*event.Error)(err)); err != nil {
			p.g.log.Warn("queued turn not ended", "turn", p.turn, "err", err)
		}
	})
}

// endQueued fails a turn that waits in the queue.
func (g *Gateway) endQueued(turn string, e *event.Error) error {
	v, err := g.journal.Get(g.life, turnKey(turn))
	if err != nil {
		return err
	}
	o, err := g.owner(g.life, string(v))
	if err != nil {
		return err
	}
	defer o.release()
	return o.await(g.life, true, func(t *tx) error {
		if o.current != nil && o.current.id == turn || !o.openTurn(t, turn) {
			return nil
		}
		t.add(event.Event{Type: event.TurnEnd, Turn: turn, Body: &event.Body{Outcome: event.Failed, Error: e}})
		o.closeTurn(t, turn)
		return nil
	})
}

// Offset returns where the producer has to go on: the end of the last frame that was taken. It waits until the turn runs.
func (pr *Producer) Offset(ctx context.Context) (int64, error) {
	if err := pr.ready(ctx); err != nil {
		return 0, err
	}
	pr.p.mu.Lock()
	defer pr.p.mu.Unlock()
	return pr.p.state.Offset, nil
}

func (pr *Producer) ready(ctx context.Context) error {
	select {
	case <-pr.p.started:
		return nil
	default:
	}
	select {
	case <-pr.p.started:
		return nil
	case <-pr.p.over:
		return ErrTurnOver // it was stopped while it waited in the queue
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Write takes the next bytes of the body. It blocks while the turn is queued or the log can't take more. After the
// turn's end it returns ErrTurnOver; an error that wraps *dialect.Error has failed the turn.
func (pr *Producer) Write(ctx context.Context, b []byte) error {
	if err := pr.ready(ctx); err != nil {
		return err
	}
	p := pr.p
	p.mu.Lock()
	r, gone := p.run, p.owner != pr.generation
	p.mu.Unlock()
	if gone {
		return errTaken
	}
	var offset int64
	err := r.out.Decode(func() ([]event.Event, json.RawMessage, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.owner != pr.generation {
			return nil, nil, errTaken
		}
		before := p.stream.Offset()
		ops, err := p.stream.Write(b)
		offset = p.stream.Offset()
		if err != nil || offset == before {
			return ops, nil, err
		}
		return p.saved(ops)
	})
	if err != nil {
		return pr.failed(err)
	}
	return pr.ack(ctx, offset)
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

func (pr *Producer) failed(err error) error {
	if errors.Is(err, agent.ErrTurnOver) {
		return ErrTurnOver
	}
	var bad *dialect.Error
	if errors.As(err, &bad) {
		pr.p.finish(err)
	}
	return err
}

// finish lets Run return.
func (p *push) finish(err error) {
	select {
	case p.done <- err:
	default: // it is on its way already
	}
}

// ack sends an acknowledgement once what was handed on is committed; a newer one takes the place of one not yet read.
func (pr *Producer) ack(ctx context.Context, offset int64) error {
	return pr.o.feedIn(ctx, 0, func(t *tx) error {
		seq := pr.o.head + int64(len(t.events))
		t.then(func() {
			select {
			case <-pr.acks:
			default:
			}
			pr.acks <- PushAck{Offset: offset, Seq: seq}
		})
		return nil
	})
}

// Over is closed when the turn has ended, and is shown so, or when this process has given it up, as at a shutdown.
func (pr *Producer) Over() <-chan struct{} { return pr.p.over }

// Acks delivers acknowledgements, the newest only.
func (pr *Producer) Acks() <-chan PushAck { return pr.acks }

// Close says that the connection is gone. whole is true where the body ended as bodies do. Where the dialect's own end
// was seen the turn has ended; where the dialect takes the end of the body for its end it ends now; and otherwise, since
// a cut body is not an end, the lease runs.
func (pr *Producer) Close(whole bool) error {
	defer pr.closed.Do(pr.o.release)
	p := pr.p
	p.mu.Lock()
	if p.owner != pr.generation {
		p.mu.Unlock()
		return nil
	}
	p.arm()
	r := p.run
	p.mu.Unlock()
	if !whole || r == nil {
		return nil
	}
	ended := false
	err := r.out.Decode(func() ([]event.Event, json.RawMessage, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		st, err := p.stream.State()
		if err != nil {
			return nil, nil, err
		}
		// A last line without its end, and a decoder's verdict, are tried on a copy: the body may yet go on.
		probe, err := restored(p.d, pushState{Stream: st})
		if err != nil {
			return nil, nil, err
		}
		if _, err = probe.Write(p.stream.Pending()); err == nil {
			_, err = probe.Close()
		}
		if err != nil {
			return nil, nil, nil // not an end
		}
		ended = true
		ops, err := p.stream.Close()
		if err != nil {
			return ops, nil, err
		}
		return p.saved(ops)
	})
	if err != nil && !errors.Is(err, agent.ErrTurnOver) {
		return pr.failed(err)
	}
	if ended {
		p.finish(nil)
	}
	return nil
}
