// The pushed turns of the gateway: each waits for its producer, up to the lease, and is found by its id.

package push

import (
	"cmp"
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

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// Journal reads what is stored of pushed turns. The gateway writes it.
type Journal interface {
	// Get returns the value of a key. If the key doesn't exist, the error is journal.ErrNotFound.
	Get(ctx context.Context, key string) ([]byte, error)
}

// Config configures NewTurns. Journal and Dialects are required.
type Config struct {
	Journal  Journal // the gateway's
	Dialects dialect.Registry
	Log      *slog.Logger     // if it is nil, nothing is logged
	Metrics  *gateway.Metrics // if it is nil, nothing is counted
	// URL is the address at which agents reach the native surface, without a slash at its end. An agent that may push its turn's stream
	// later gets it with the turn's token.
	URL string
}

// openTurns are the pushed turns of a gateway that have not ended. It implements [gateway.Pusher].
type openTurns struct {
	journal  Journal
	dialects dialect.Registry
	log      *slog.Logger
	leases   prometheus.Counter // leases that expired
	url      string

	ctx    context.Context // done when the gateway stops
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu     sync.Mutex
	lease  time.Duration
	open   map[string]*turn
	closed bool
}

var _ gateway.Pusher = (*openTurns)(nil)

// NewTurns returns the pushed turns of a gateway that is about to be made.
func NewTurns(c Config) *openTurns {
	c.Log, c.Metrics = cmp.Or(c.Log, slog.New(slog.DiscardHandler)), cmp.Or(c.Metrics, gateway.NewMetrics())
	t := &openTurns{journal: c.Journal, dialects: c.Dialects, log: c.Log, leases: c.Metrics.Leases, url: c.URL, open: map[string]*turn{}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// SetLease implements [gateway.Pusher].
func (t *openTurns) SetLease(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lease = d
}

// tokenPrefix begins the token of a turn, which is <prefix><turn>.<secret>.
const tokenPrefix = "leat-turn."

// Ingest implements [gateway.Pusher].
func (t *openTurns) Ingest(turn string) (*agent.Ingest, []byte) {
	token := tokenPrefix + turn + "." + rand.Text()
	digest := sha256.Sum256([]byte(token))
	return &agent.Ingest{URL: t.url + "/api/turns/" + turn + "/ingest", Token: token}, digest[:]
}

// NewState implements [gateway.Pusher].
func (t *openTurns) NewState(name string) (json.RawMessage, error) {
	d, err := t.dialects.Lookup(name)
	if err != nil {
		return nil, err
	}
	return (&state{Dialect: d.Name}).appendJSON(nil), nil
}

// Run implements [gateway.Pusher]. It restores the stream from the stored state and waits for the result, while the connections decode and
// emit. If the turn still has the run of an earlier call, which a conversation's writer gave up, that run's connection is disconnected
// first. When the turn ends, the stream is closed, and its last events are emitted.
func (t *openTurns) Run(ctx context.Context, of gateway.PushedTurn) error {
	p, err := t.begin(of)
	if err != nil {
		return err
	}
	select {
	case err := <-p.result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin starts the run of a turn.
func (t *openTurns) begin(of gateway.PushedTurn) (*turn, error) {
	var st state
	if err := json.Unmarshal(of.State, &st); err != nil {
		return nil, fmt.Errorf("state of pushed turn: %w", err)
	}
	d, err := t.dialects.Lookup(st.Dialect)
	if err != nil {
		return nil, err
	}
	stream, err := st.restore(d)
	if err != nil {
		return nil, err
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
	return p, nil
}

// find returns an open turn, or nil if the turn is not open.
func (t *openTurns) find(id string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[id]
}

// Release implements [gateway.Pusher].
func (t *openTurns) Release(id string, emitter *agent.Emitter) {
	if p := t.find(id); p != nil && p.isRunOf(emitter) {
		t.end(p)
	}
}

// TurnEnded implements [gateway.Pusher].
func (t *openTurns) TurnEnded(id string) {
	if p := t.find(id); p != nil {
		t.end(p)
	}
}

// Answer implements [gateway.Pusher].
func (t *openTurns) Answer(id string, a event.Answer) {
	if p := t.find(id); p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.addAnswer(a)
	}
}

// Close implements [gateway.Pusher].
func (t *openTurns) Close() {
	t.mu.Lock()
	t.closed = true
	open := slices.Collect(maps.Values(t.open))
	t.mu.Unlock()
	for _, p := range open {
		p.mu.Lock()
		p.stopLease()
		p.mu.Unlock()
	}
	t.cancel()
	t.tasks.Wait()
}

// spawn runs fn in a goroutine that Close waits for. After Close it does nothing and returns false. The check and the start are under one
// lock, so that no goroutine starts while Close waits.
func (t *openTurns) spawn(fn func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.tasks.Go(fn)
	}
	return !t.closed
}

// turn returns an open turn, and adds it if necessary.
func (t *openTurns) turn(id string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.open[id]
	if p == nil {
		p = &turn{turns: t, id: id, runStarted: make(chan struct{}), finished: make(chan struct{}), result: make(chan error, 1), answersChanged: make(chan struct{})}
		t.open[id] = p
	}
	return p
}

// end removes a turn that has ended, or that this process stops running, and disconnects its producer. A second call has no effect.
func (t *openTurns) end(p *turn) {
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
	p.stopLease()
	close(p.finished)
}
