// The table of running writers. A conversation has at most one; it is opened at the first use and ends when nothing uses it.

package gateway

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
)

// writers is the table of the writers in memory, at most one for each conversation. A writer is opened when it is first needed, and
// removed when nobody refers to it and it has nothing left to do, or when it has failed. mu is never held while a
// conversation is opened, so a slow one delays no other. A writer locks its own state after mu.
type writers struct {
	core *core

	mu         sync.Mutex
	byID       map[string]*writer
	opening    map[string]*opening
	isDraining bool // Shutdown has begun
	isClosed   bool // no writer is handed out any more
}

// opening is a writer that one caller is opening, and for which others wait.
type opening struct {
	ready  chan struct{} // closed when writer and err are set
	writer *writer
	err    error
}

func newWriters(c *core) *writers {
	return &writers{core: c, byID: map[string]*writer{}, opening: map[string]*opening{}}
}

// acquire returns the conversation's writer and opens the conversation first if necessary. The caller must release
// the writer. Concurrent callers of one conversation wait for the first one to open it. It fails with ErrClosed after
// close, with ErrNotFound or ErrDamaged, and with the error of ctx.
func (ws *writers) acquire(ctx context.Context, id string) (*writer, error) {
	for {
		ws.mu.Lock()
		if ws.isClosed {
			ws.mu.Unlock()
			return nil, ErrClosed
		}
		if w := ws.byID[id]; w != nil {
			w.refs++
			ws.mu.Unlock()
			return w, nil
		}
		op := ws.opening[id]
		if op == nil {
			op = &opening{ready: make(chan struct{})}
			ws.opening[id] = op
			ws.mu.Unlock()
			op.writer, op.err = ws.open(ctx, id)
			ws.mu.Lock()
			delete(ws.opening, id)
			if op.err == nil {
				op.writer.refs++
				ws.byID[id] = op.writer
				ws.count()
				// Recovery must be the writer's first job. A turn that another caller starts before it would look like one that the last process left open.
				recovery{op.writer}.adopt()
			}
			ws.mu.Unlock()
			close(op.ready)
			return op.writer, op.err
		}
		ws.mu.Unlock()
		select {
		case <-op.ready:
			// If the opener failed only because its own context ended, this caller tries again.
			if op.err != nil && ctx.Err() == nil && !errors.Is(op.err, context.Canceled) && !errors.Is(op.err, context.DeadlineExceeded) {
				return nil, op.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// open reads a conversation and returns a new writer for it, which is not in the table yet. It takes a reference to
// the feed, which the writer releases when it ends.
func (ws *writers) open(ctx context.Context, id string) (*writer, error) {
	c := ws.core
	s, err := readSummary(ctx, c.journal, id)
	if err != nil {
		return nil, err
	}
	if err := c.limits.count(ctx, &s); err != nil {
		return nil, JournalError("count unfinished turns", err)
	}
	f, err := c.feeds.Acquire(ctx, id)
	if err != nil {
		return nil, JournalError("open conversation", err)
	}
	w := newWriter(c, ws, s, f)
	w.turns.isPaused = ws.draining()
	return w, nil
}

// recover opens a conversation, so that its turns are recovered.
func (ws *writers) recover(ctx context.Context, id string) error {
	w, err := ws.acquire(ctx, id)
	if err == nil {
		ws.release(w)
	}
	return err
}

// retain adds a reference to a writer. The caller must have one already. So the writer can't end in between, and
// retain needs no check.
func (ws *writers) retain(w *writer) {
	ws.mu.Lock()
	w.refs++
	ws.mu.Unlock()
}

// release drops a reference to a writer. The last one removes it from memory, unless it has jobs or runs.
func (ws *writers) release(w *writer) {
	ws.mu.Lock()
	w.refs--
	last := w.refs == 0 && ws.byID[w.id] == w && w.turns.closeIfIdle(&w.queue)
	if last {
		delete(ws.byID, w.id)
		ws.count()
	}
	ws.mu.Unlock()
	if last {
		w.unload()
	}
}

// forget removes a writer that can't be used any more, unless another one has replaced it. References to it must
// still be released. The next acquire opens the conversation again.
func (ws *writers) forget(w *writer) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byID[w.id] == w {
		delete(ws.byID, w.id)
		ws.count()
	}
}

// count updates the metric of open conversations. ws.mu is locked.
func (ws *writers) count() {
	metrics := ws.core.metrics
	metrics.Writers.Set(float64(len(ws.byID)))
}

// compacted notifies the writer of a conversation, if there is one, that the log was compacted up to a seq. It
// doesn't open a conversation: a writer that is opened later reads the seq from the summary.
func (ws *writers) compacted(id string, upto int64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.byID[id]; w != nil {
		w.compacted.Store(max(upto, w.compacted.Load()))
	}
}

// list returns the writers in memory. The caller has no reference to them.
func (ws *writers) list() []*writer {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.Collect(maps.Values(ws.byID))
}

// drain begins the shutdown: conversations that are opened from now on start no queued turns. It returns false if the table is closed.
func (ws *writers) drain() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.isClosed {
		return false
	}
	ws.isDraining = true
	return true
}

// draining reports whether Shutdown has begun.
func (ws *writers) draining() bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.isDraining
}

// close refuses to hand out writers from now on. Writers that were handed out before stay usable until they are
// released.
func (ws *writers) close() {
	ws.mu.Lock()
	ws.isClosed = true
	ws.mu.Unlock()
}

// newWriter returns the writer of a conversation that was read from the journal. It takes over the caller's reference to the
// feed.
func newWriter(c *core, table *writers, s journal.Summary, f *feed.Feed) *writer {
	w := &writer{core: c, table: table, id: s.ID, owner: agent.Principal{Tenant: s.Tenant, Subject: s.Owner}, feed: f, log: c.log.With("conversation", s.ID), summary: s, head: s.Head}
	w.turns.byID, w.turns.observedTurns = map[string]*turn{}, map[string]*turn{}
	w.room, w.idleSignal = make(chan struct{}), make(chan struct{})
	w.goWrite, w.mayWrite, w.writeNow = func() bool { return c.tasks.Go(w.write) }, c.tasks.begin, w.writeText
	w.compacted.Store(s.Compacted)
	w.observer = observer{core: c, log: w.log, owner: w.owner, feed: f, parents: &w.parents, turns: map[string]*turnMetrics{}}
	return w
}
