package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/feed"
	"github.com/leat-dev/leat/journal"
)

// Gateway runs turns and keeps conversations. Make one with New, start it with Start, end it with Shutdown.
// All methods may be called from several goroutines.
type Gateway struct {
	cfg     Config
	log     *slog.Logger
	journal journal.Journal
	feeds   *feed.Registry

	life   context.Context // ends when the gateway has drained
	end    context.CancelFunc
	tasks  sync.WaitGroup // every goroutine of the gateway
	settle *settler
	reopen *reopener

	mu       sync.Mutex
	owners   map[string]*owner
	opening  map[string]*opening
	pushes   map[string]*push // pushed turns that are open, by turn
	draining bool
	closed   bool
}

type opening struct {
	done  chan struct{}
	owner *owner
	err   error
}

// New returns a gateway that has not started.
func New(cfg Config) (*Gateway, error) {
	cfg.setDefaults()
	if cfg.Journal == nil {
		return nil, errors.New("gateway: a journal is needed")
	}
	if cfg.DefaultAgent != "" {
		if _, ok := cfg.Agents[cfg.DefaultAgent]; !ok {
			return nil, fmt.Errorf("gateway: the default agent %q is not among the agents", cfg.DefaultAgent)
		}
	}
	g := &Gateway{
		cfg: cfg, log: cfg.Log, journal: cfg.Journal,
		feeds:   feed.NewRegistry(feedLog{cfg.Journal}, feed.Config{}),
		owners:  map[string]*owner{},
		opening: map[string]*opening{},
		pushes:  map[string]*push{},
	}
	g.life, g.end = context.WithCancel(context.Background())
	g.settle, g.reopen = newSettler(g), newReopener(g)
	return g, nil
}

// Start takes up what the last run left open: queued turns go on waiting, resumable ones are resumed, pushed ones wait
// for their producer, and the rest end as interrupted.
func (g *Gateway) Start(ctx context.Context) error {
	half, err := g.journal.Keys(ctx, deletingKey(""))
	if err != nil {
		return fmt.Errorf("gateway: list unfinished deletes: %w", err)
	}
	for _, kv := range half {
		if err := g.journal.Delete(ctx, strings.TrimPrefix(kv.Key, deletingKey(""))); err != nil {
			return fmt.Errorf("gateway: finish delete: %w", err)
		}
	}
	open, err := g.journal.Conversations(ctx, journal.Query{Unfinished: true})
	if err != nil {
		return fmt.Errorf("gateway: list unfinished turns: %w", err)
	}
	g.tasks.Go(g.settle.run)
	g.tasks.Go(g.reopen.run)
	for _, s := range open {
		o, err := g.owner(ctx, s.ID)
		if err != nil {
			g.log.Error("recover conversation", "conversation", s.ID, "err", err)
			g.reopen.add(s.ID)
			continue
		}
		o.release()
	}
	return nil
}

// Shutdown refuses new turns and gives the running ones the drain time. What a Resumer runs is then left detached,
// pushed turns to their lease, and only the rest end as interrupted. It returns when every goroutine has ended.
func (g *Gateway) Shutdown(ctx context.Context) error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil
	}
	g.draining = true
	owners := make([]*owner, 0, len(g.owners))
	for _, o := range g.owners {
		owners = append(owners, o)
	}
	g.mu.Unlock()

	drain, cancel := context.WithTimeout(ctx, g.cfg.Drain)
	defer cancel()
	for _, o := range owners {
		o.hush()
	}
	for _, o := range owners {
		o.drain(drain)
	}
	for _, o := range owners {
		o.leave()
	}
	// What is queued is committed before the writers are told to stop trying.
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), returnLimit)
	defer cancelLast()
	for _, o := range owners {
		if err := o.idle(last); err != nil {
			g.log.Error("shutdown: conversation did not come to rest", "conversation", o.id, "err", err)
		}
	}
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.end()
	g.feeds.Close()
	done := make(chan struct{})
	go func() { g.tasks.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-time.After(returnLimit):
		return errors.New("gateway: an agent did not return; its goroutine is left behind")
	}
}

// Draining reports whether Shutdown has begun.
func (g *Gateway) Draining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

// Healthy returns nil, or why the gateway can't take anything new.
func (g *Gateway) Healthy() error {
	if g.Draining() {
		return fmt.Errorf("%w: shutting down", ErrUnavailable)
	}
	return g.journal.Healthy()
}

// owner returns the conversation's owner, which it opens if nobody has. The caller releases it.
func (g *Gateway) owner(ctx context.Context, id string) (*owner, error) {
	for {
		g.mu.Lock()
		if g.closed {
			g.mu.Unlock()
			return nil, ErrClosed
		}
		if o := g.owners[id]; o != nil {
			o.refs++
			g.mu.Unlock()
			return o, nil
		}
		op := g.opening[id]
		if op == nil {
			op = &opening{done: make(chan struct{})}
			g.opening[id] = op
			g.mu.Unlock()
			op.owner, op.err = g.open(ctx, id)
			g.mu.Lock()
			delete(g.opening, id)
			if op.err == nil {
				op.owner.refs++
				g.owners[id] = op.owner
				g.cfg.Metrics.Owners.Set(float64(len(g.owners)))
			}
			g.mu.Unlock()
			close(op.done)
			if op.err != nil {
				return nil, op.err
			}
			op.owner.adopt()
			return op.owner, nil
		}
		g.mu.Unlock()
		select {
		case <-op.done:
			// The opener may have failed for its own context's sake: look again.
			if op.err != nil && ctx.Err() == nil && !errors.Is(op.err, context.Canceled) && !errors.Is(op.err, context.DeadlineExceeded) {
				return nil, op.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (g *Gateway) open(ctx context.Context, id string) (*owner, error) {
	s, err := g.journal.Conversation(ctx, id)
	if err != nil {
		return nil, journalError("open conversation", err)
	}
	if _, err := g.journal.Get(ctx, deletingKey(id)); err == nil {
		return nil, ErrNotFound
	}
	f, err := g.feeds.Acquire(ctx, id)
	if err != nil {
		return nil, journalError("open conversation", err)
	}
	o := newOwner(g, s, f)
	o.left = g.Draining()
	return o, nil
}

// forget drops an owner from the gateway's table, if it is still the one there.
func (g *Gateway) forget(o *owner) {
	g.mu.Lock()
	if g.owners[o.id] == o {
		delete(g.owners, o.id)
		g.cfg.Metrics.Owners.Set(float64(len(g.owners)))
	}
	g.mu.Unlock()
}

// journalError translates what surfaces need to tell apart.
func journalError(op string, err error) error {
	switch {
	case errors.Is(err, journal.ErrNotFound), errors.Is(err, journal.ErrDeleted):
		return ErrNotFound
	case errors.Is(err, journal.ErrExists):
		return ErrExists
	case errors.Is(err, journal.ErrFull), errors.Is(err, journal.ErrFenced), errors.Is(err, journal.ErrUnknown), errors.Is(err, journal.ErrClosed):
		return fmt.Errorf("%w: %s: %w", ErrUnavailable, op, err)
	}
	return fmt.Errorf("gateway: %s: %w", op, err)
}

// newID returns a UUIDv7.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

func now() int64 { return time.Now().UnixMilli() }

// feedLog adapts the journal to what a feed reads.
type feedLog struct{ j journal.Journal }

func (l feedLog) Read(ctx context.Context, conversation string, after int64, limit int) (feed.Stretch, error) {
	s, err := l.j.Conversation(ctx, conversation)
	if err != nil {
		return feed.Stretch{}, err
	}
	r, err := l.j.Read(ctx, conversation, after, limit)
	if err != nil {
		return feed.Stretch{}, err
	}
	return feed.Stretch{Epoch: r.Epoch, Head: r.Head, Settled: r.Settled, Trimmed: r.Trimmed, Truncated: s.Truncated, Events: r.Events, More: r.More}, nil
}
