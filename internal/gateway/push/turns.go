package push

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// Journal reads what is stored of pushed turns. The gateway writes it.
type Journal interface {
	// Get returns the value of a key. If there is none, the error is journal.ErrNotFound.
	Get(ctx context.Context, key string) ([]byte, error)
}

// Config describes Turns. Journal and Dialects are required.
type Config struct {
	Journal  Journal // the gateway's
	Dialects dialect.Registry
	Log      *slog.Logger     // if it is nil, nothing is logged
	Metrics  *gateway.Metrics // if it is nil, nothing is counted
	// URL is where agents reach the native surface, without a slash at its end. Agents that push their turns later get it.
	URL string
}

// Turns are the pushed turns of a gateway that are open. It implements [gateway.Pusher].
type Turns struct {
	cfg    Config
	ctx    context.Context // done when the gateway stops
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu     sync.Mutex
	lease  time.Duration
	open   map[string]*turn
	closed bool
}

var _ gateway.Pusher = (*Turns)(nil)

// NewTurns returns the pushed turns of a gateway that is about to be made.
func NewTurns(c Config) *Turns {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = gateway.NewMetrics()
	}
	t := &Turns{cfg: c, open: map[string]*turn{}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// SetLease implements [gateway.Pusher].
func (t *Turns) SetLease(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lease = d
}

// tokenPrefix begins the token of a turn, which is <prefix><turn>.<secret>.
const tokenPrefix = "leat-turn."

// Ingest implements [gateway.Pusher].
func (t *Turns) Ingest(turn string) (*agent.Ingest, []byte) {
	token := tokenPrefix + turn + "." + rand.Text()
	digest := sha256.Sum256([]byte(token))
	return &agent.Ingest{URL: t.cfg.URL + "/api/turns/" + turn + "/ingest", Token: token}, digest[:]
}

// NewState implements [gateway.Pusher].
func (t *Turns) NewState(name string) (json.RawMessage, error) {
	d, err := t.cfg.Dialects.Lookup(name)
	if err != nil {
		return nil, err
	}
	return (&state{Dialect: d.Name}).appendJSON(nil), nil
}

// Run implements [gateway.Pusher].
func (t *Turns) Run(ctx context.Context, of gateway.PushedTurn) error {
	var st state
	if err := json.Unmarshal(of.State, &st); err != nil {
		return fmt.Errorf("state of pushed turn: %w", err)
	}
	d, err := t.cfg.Dialects.Lookup(st.Dialect)
	if err != nil {
		return err
	}
	stream, err := st.restore(d)
	if err != nil {
		return err
	}
	of.Emitter.Body(d.Name)
	p := t.turn(of.ID)
	if !p.start(of, d, stream, st) {
		// The run before this one was given up and has not returned yet.
		t.end(p)
		p = t.turn(of.ID)
		p.start(of, d, stream, st)
	}
	of.Emitter.OnEnd(func() []event.Event {
		p.mu.Lock()
		defer p.mu.Unlock()
		ops, _ := p.stream.Close() // the turn ends, whether or not the stream is complete
		return ops
	})
	select {
	case err := <-p.result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Release implements [gateway.Pusher].
func (t *Turns) Release(id string, emitter *agent.Emitter) {
	t.mu.Lock()
	p := t.open[id]
	t.mu.Unlock()
	if p != nil && p.isRunOf(emitter) {
		t.end(p)
	}
}

// TurnEnded implements [gateway.Pusher].
func (t *Turns) TurnEnded(id string) {
	t.mu.Lock()
	p := t.open[id]
	t.mu.Unlock()
	if p != nil {
		t.end(p)
	}
}

// Answer implements [gateway.Pusher].
func (t *Turns) Answer(id string, a event.Answer) {
	t.mu.Lock()
	p := t.open[id]
	t.mu.Unlock()
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.addAnswer(a)
	}
}

// Close implements [gateway.Pusher].
func (t *Turns) Close() {
	t.mu.Lock()
	t.closed = true
	open := slices.Collect(maps.Values(t.open))
	t.mu.Unlock()
	for _, p := range open {
		p.stopLease()
	}
	t.cancel()
	t.tasks.Wait()
}

// spawn runs fn in a goroutine that Close waits for. After Close it does nothing and returns false.
func (t *Turns) spawn(fn func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.tasks.Go(fn)
	}
	return !t.closed
}

// turn returns an open turn, which it adds if it isn't known yet.
func (t *Turns) turn(id string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.open[id]
	if p == nil {
		p = &turn{turns: t, id: id, runStarted: make(chan struct{}), finished: make(chan struct{}), result: make(chan error, 1), answersChanged: make(chan struct{})}
		t.open[id] = p
	}
	return p
}

// end forgets a turn that has ended or is left to another process, and disconnects its producer. A second call does nothing.
func (t *Turns) end(p *turn) {
	t.mu.Lock()
	if t.open[p.id] == p {
		delete(t.open, p.id)
	}
	t.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isFinished {
		return
	}
	p.isFinished = true
	p.memory.Release()
	if p.lease != nil {
		p.lease.Stop()
	}
	close(p.finished)
}
