package gateway

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// writer is the only place that changes a conversation. Each change is a job in its queue. A goroutine that exists while there
// are jobs runs them in order and commits what they add.
type writer struct {
	g       *Gateway
	metrics *Metrics
	id      string
	feed    *feed.Feed
	log     *slog.Logger // names the conversation
	refs    int          // guarded by g.mu

	mu          sync.Mutex
	queue       []*job
	queuedBytes int           // of text in queue
	room        chan struct{} // closed and replaced when jobs are taken from the queue
	isRunning   bool
	stopped     chan struct{} // closed and replaced when the goroutine ends
	closeErr    error         // set once; from then on every job is refused
	failing     error         // why commits fail at the moment; nil if they don't
	current     *turn         // the turn that the queue has started; changed by the writer's goroutine only
	// observed are the turns that their upstream began, by id; turns are all whose agent has not returned. Both are changed by the
	// writer's goroutine only.
	observed, turns map[string]*turn
	isLeft          bool // shutdown has taken the turns away

	compacted atomic.Int64

	parents    parents
	messageIDs messageIDs

	// Used by the writer's goroutine only.
	summary  journal.Summary
	head     int64
	observer observer
}

func newWriter(g *Gateway, s journal.Summary, f *feed.Feed) *writer {
	w := &writer{g: g, metrics: g.metrics, id: s.ID, feed: f, log: g.log.With("conversation", s.ID), summary: s, head: s.Head, turns: map[string]*turn{}, room: make(chan struct{}), stopped: make(chan struct{})}
	w.compacted.Store(s.Compacted)
	w.observer.writer = w
	return w
}

// release drops a reference. The last one removes the writer from memory, unless it has jobs or runs.
func (w *writer) release() {
	w.g.mu.Lock()
	w.refs--
	last := w.refs == 0 && w.g.writers[w.id] == w
	if last {
		w.mu.Lock()
		last = !w.isRunning && w.current == nil && len(w.observed) == 0 && w.closeErr == nil
		if last {
			w.closeErr = ErrClosed
			delete(w.g.writers, w.id)
			w.metrics.Writers.Set(float64(len(w.g.writers)))
		}
		w.mu.Unlock()
	}
	w.g.mu.Unlock()
	if last {
		if w.head > w.compacted.Load() && len(w.summary.Open) == 0 {
			w.g.compactor.add(w.id, w.head)
		}
		w.feed.Release()
	}
}

// retain adds a reference. The caller must have one already.
func (w *writer) retain() {
	w.g.mu.Lock()
	w.refs++
	w.g.mu.Unlock()
}

// fail gives the conversation up after a failed commit. Memory may be ahead of the log, so all of it is dropped, and recovery
// reads the log again.
func (w *writer) fail(err error) {
	if w.g.life.Err() != nil && errors.Is(err, context.Canceled) {
		w.log.Info("conversation left as its log has it: the gateway stops", "error", err)
	} else {
		w.log.Error("conversation given up", "error", err)
	}
	w.mu.Lock()
	w.closeErr = err
	w.mu.Unlock()
	w.g.forget(w)
	w.g.follows.gone(w.id)
	for _, tn := range w.running() {
		tn.lose(err)
	}
	w.observer.abandon(err)
	w.feed.Close(feed.ErrLost)
	w.feed.Release()
	w.g.reopen.add(w.id)
}

// kill ends the writer of a deleted conversation. It is called by the writer's goroutine.
func (w *writer) kill(err error) {
	w.mu.Lock()
	w.closeErr = err
	w.mu.Unlock()
	w.g.forget(w)
	w.g.follows.gone(w.id)
	w.feed.Close(feed.ErrDeleted)
	w.feed.Release()
}

// queued counts the turns that wait for another one.
func (w *writer) queued() (n int) {
	open := w.info().Open
	if len(open) == 0 {
		return 0
	}
	w.feed.View(func(t *transcript.Transcript) {
		for _, id := range open {
			if turn := t.Turn(id); turn != nil && turn.State == transcript.TurnQueued {
				n++
			}
		}
	})
	return n
}

// info returns the committed summary.
func (w *writer) info() journal.Summary {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.summary
	return s
}
