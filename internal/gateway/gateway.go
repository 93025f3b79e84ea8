package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/service/usage"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Gateway runs turns and keeps conversations. Make one with New, start it with Start, end it with Shutdown.
// All methods may be called from several goroutines.
type Gateway struct {
	cfg     Config // what it was made of; what may have changed since is in live
	live    atomic.Pointer[Settings]
	log     *slog.Logger
	journal journal.Journal
	feeds   *feed.Registry

	life  context.Context // ends when the gateway has drained
	end   context.CancelFunc
	tasks sync.WaitGroup // every goroutine of the gateway
	// positions tells readers of what they have read and have not.
	positions   positions
	compactor   *compactor
	reopen      *reopener
	follows     *follows
	audit       *audit.Log
	holds       *Holds
	quota       *quota.Quota
	limits      limits
	removals    *removals
	metrics     *Metrics
	ledger      *usage.Ledger
	attachments Attachments
	pusher      Pusher
	creating    turnstile // by idempotency key

	mu       sync.Mutex
	writers  map[string]*writer
	opening  map[string]*opening
	draining bool
	closed   bool
}

type opening struct {
	done   chan struct{}
	writer *writer
	err    error
}

// New returns a gateway that has not started.
func New(cfg Config) (*Gateway, error) {
	cfg.setDefaults()
	if cfg.Journal == nil {
		return nil, errors.New("gateway: a journal is needed")
	}
	if cfg.DefaultAgent != "" {
		if _, ok := cfg.Agents.Agent(cfg.DefaultAgent, agent.Principal{}); !ok {
			return nil, fmt.Errorf("gateway: the default agent %q is not among the agents", cfg.DefaultAgent)
		}
	}
	g := &Gateway{
		cfg: cfg, log: cfg.Log, journal: cfg.Journal, attachments: cfg.Attachments, pusher: cfg.Pusher,
		feeds:   feed.NewRegistry(feedLog{cfg.Journal}, feed.Config{}),
		writers: map[string]*writer{},
		opening: map[string]*opening{},
	}
	g.live.Store(cfg.settings())
	g.pusher.SetLease(cfg.Lease)
	g.life, g.end = context.WithCancel(context.Background())
	g.ledger = usage.New(cfg.Journal, cfg.Prices, cfg.UsageRetention)
	g.quota = quota.New(quota.Options{User: cfg.User, Tenant: cfg.Tenant, StoredBytes: func(tenant, owner string) (int64, int64) {
		logs, logsTenant := cfg.Journal.StoredBytes(tenant, owner)
		files, filesTenant := cfg.Attachments.Stored(tenant, owner)
		return logs + files, logsTenant + filesTenant
	}})
	g.compactor, g.reopen, g.follows = newCompactor(g), newReopener(g), newFollows(g)
	g.audit = audit.New(cfg.Journal, cfg.Log)
	g.holds = &Holds{g: g, byKey: map[string]Hold{}}
	g.metrics = cfg.Metrics
	g.limits = limits{g.quota, cfg.Metrics, cfg.Journal}
	g.removals = &removals{
		journal: cfg.Journal, feeds: g.feeds, audit: g.audit, holds: g.holds, compactor: g.compactor, captures: cfg.Raw, attachments: cfg.Attachments,
		log: cfg.Log,
	}
	return g, nil
}

// Start takes up what the last run left open: queued turns go on waiting, resumable ones are resumed, pushed ones wait
// for their producer, and the rest end as interrupted.
func (g *Gateway) Start(ctx context.Context) error {
	if err := g.audit.Open(ctx); err != nil { // before the deletes that were cut off, which blank what it says
		return fmt.Errorf("gateway: %w", err)
	}
	if err := g.ledger.Open(ctx); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	if err := g.holds.load(ctx); err != nil {
		return err
	}
	half, err := g.journal.Keys(ctx, journalkey.Deleting(""))
	if err != nil {
		return fmt.Errorf("gateway: list unfinished deletes: %w", err)
	}
	for _, kv := range half {
		if err := g.removals.erase(ctx, strings.TrimPrefix(kv.Key, journalkey.Deleting(""))); err != nil {
			return fmt.Errorf("gateway: finish delete: %w", err)
		}
	}
	if err := g.attachments.Start(ctx); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	open, err := g.journal.Conversations(ctx, journal.Query{Unfinished: true})
	if err != nil {
		return fmt.Errorf("gateway: list unfinished turns: %w", err)
	}
	g.tasks.Go(g.compactor.run)
	g.tasks.Go(g.reopen.run)
	g.tasks.Go(func() { g.attachments.Run(g.life) })
	g.tasks.Go(func() { g.audit.Run(g.life) })
	for _, s := range open {
		w, err := g.writer(ctx, s.ID)
		if err != nil {
			g.log.Error("recover conversation", "conversation", s.ID, "error", err)
			if !errors.Is(err, ErrDamaged) {
				g.reopen.add(s.ID)
			}
			continue
		}
		w.release()
	}
	g.follows.start()
	return nil
}

// Shutdown refuses new turns and gives those that can't be resumed, or whose upstream ends when it is left, the drain time. What a Resumer runs goes on meanwhile, is
// waited for by nobody, and is then left detached; pushed turns are left to their lease; only the rest end as interrupted. It
// returns when every goroutine has ended: at once where all turns can be resumed, so that an upgrade is a short pause.
func (g *Gateway) Shutdown(ctx context.Context) error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil
	}
	g.draining = true
	g.mu.Unlock()
	g.follows.close() // what their sessions say from now on is found by the next start
	g.mu.Lock()
	writers := make([]*writer, 0, len(g.writers))
	for _, w := range g.writers {
		writers = append(writers, w)
	}
	g.mu.Unlock()

	drain, cancel := context.WithTimeout(ctx, g.settings().Drain)
	defer cancel()
	for _, w := range writers {
		w.pauseQueue()
	}
	for _, w := range writers {
		w.drain(drain)
	}
	for _, w := range writers {
		w.leave()
	}
	// What is queued is committed before the writers are told to stop trying.
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), returnLimit)
	defer cancelLast()
	for _, w := range writers {
		if err := w.idle(last); err != nil {
			g.log.Error("shutdown: conversation did not come to rest", "conversation", w.id, "error", err)
		}
	}
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.end()
	g.feeds.Close()
	done := make(chan struct{})
	go func() { g.tasks.Wait(); g.pusher.Close(); close(done) }()
	select {
	case <-done:
		for _, w := range writers {
			w.observer.abandon(errDetached)
		}
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

// writer returns the conversation's writer and opens the conversation first if necessary. The caller must release the writer.
func (g *Gateway) writer(ctx context.Context, id string) (*writer, error) {
	for {
		g.mu.Lock()
		if g.closed {
			g.mu.Unlock()
			return nil, ErrClosed
		}
		if w := g.writers[id]; w != nil {
			w.refs++
			g.mu.Unlock()
			return w, nil
		}
		op := g.opening[id]
		if op == nil {
			op = &opening{done: make(chan struct{})}
			g.opening[id] = op
			g.mu.Unlock()
			op.writer, op.err = g.open(ctx, id)
			g.mu.Lock()
			delete(g.opening, id)
			if op.err == nil {
				op.writer.refs++
				g.writers[id] = op.writer
				g.metrics.Writers.Set(float64(len(g.writers)))
				// Recovery must be the writer's first job. A turn that another caller starts before it would look like one that the last process left open.
				recovery{op.writer}.adopt()
			}
			g.mu.Unlock()
			close(op.done)
			return op.writer, op.err
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

func (g *Gateway) open(ctx context.Context, id string) (*writer, error) {
	if system(id) {
		return nil, ErrNotFound
	}
	s, err := g.journal.Conversation(ctx, id)
	if err != nil {
		return nil, JournalError("open conversation", err)
	}
	if _, err := g.journal.Get(ctx, journalkey.Deleting(id)); err == nil {
		return nil, ErrNotFound
	}
	if err := g.limits.count(ctx, &s); err != nil {
		return nil, JournalError("count unfinished turns", err)
	}
	f, err := g.feeds.Acquire(ctx, id)
	if err != nil {
		return nil, JournalError("open conversation", err)
	}
	w := newWriter(g, s, f)
	w.isLeft = g.Draining()
	return w, nil
}

// forget removes a writer from the gateway's table, unless another one has replaced it.
func (g *Gateway) forget(w *writer) {
	g.mu.Lock()
	if g.writers[w.id] == w {
		delete(g.writers, w.id)
		g.metrics.Writers.Set(float64(len(g.writers)))
	}
	g.mu.Unlock()
}

// JournalError translates an error of the journal into the errors of this package. op says what failed.
func JournalError(op string, err error) error {
	switch {
	case errors.Is(err, journal.ErrNotFound), errors.Is(err, journal.ErrDeleted):
		return ErrNotFound
	case errors.Is(err, journal.ErrExists):
		return ErrExists
	case errors.Is(err, journal.ErrFull), errors.Is(err, journal.ErrFenced), errors.Is(err, journal.ErrUnknown), errors.Is(err, journal.ErrClosed):
		return fmt.Errorf("%w: %s: %w", ErrUnavailable, op, err)
	case damaged(err):
		return fmt.Errorf("%w: %s: %w", ErrDamaged, op, err)
	}
	return fmt.Errorf("gateway: %s: %w", op, err)
}

// newID returns a UUIDv7.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

func now() int64 { return time.Now().UnixMilli() }

// expiryAfter returns when a key that lives that long expires, in epoch milliseconds.
func expiryAfter(life time.Duration) int64 { return now() + life.Milliseconds() }

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
	terms := make([]feed.Term, len(r.Terms))
	for i, t := range r.Terms {
		terms[i] = feed.Term(t)
	}
	return feed.Stretch{Terms: terms, Epoch: r.Epoch, Head: r.Head, Compacted: r.Compacted, Trimmed: r.Trimmed, Truncated: s.Truncated, Events: r.Events, HasMore: r.HasMore}, nil
}
