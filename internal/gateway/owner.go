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

// owner is the one writer of a conversation. Whatever changes the conversation is a job; the writer goroutine, which
// lives while jobs wait, runs them in order and commits what they add.
type owner struct {
	g    *Gateway
	id   string
	feed *feed.Feed
	log  *slog.Logger // names the conversation
	refs int          // guarded by g.mu

	mu      sync.Mutex
	queue   []*job
	waiting int           // bytes in queue
	room    chan struct{} // closed and replaced when the queue was taken
	writing bool
	rest    chan struct{} // closed and replaced when the writer stops
	dead    error         // set once; the owner takes no job any more
	failing error         // why commits fail now
	current *run          // the turn that runs, of those that were queued; changed by the writer alone
	// observed are the turns that their upstream began by itself, by id; changed by the writer alone.
	observed map[string]*run
	left     bool // shutdown has taken the turns away

	settled atomic.Int64

	parents parents
	older   messageIDs

	// The writer's own.
	summary journal.Summary
	head    int64
	watch   observer
}

func newOwner(g *Gateway, s journal.Summary, f *feed.Feed) *owner {
	o := &owner{g: g, id: s.ID, feed: f, log: g.log.With("conversation", s.ID), summary: s, head: s.Head, room: make(chan struct{}), rest: make(chan struct{})}
	o.settled.Store(s.Settled)
	o.watch.o = o
	return o
}

// release gives the owner back; the last to do so drops it from memory unless it has work.
func (o *owner) release() {
	o.g.mu.Lock()
	o.refs--
	last := o.refs == 0 && o.g.owners[o.id] == o
	if last {
		o.mu.Lock()
		last = !o.writing && o.current == nil && len(o.observed) == 0 && o.dead == nil
		if last {
			o.dead = ErrClosed
			delete(o.g.owners, o.id)
			o.g.cfg.Metrics.Owners.Set(float64(len(o.g.owners)))
		}
		o.mu.Unlock()
	}
	o.g.mu.Unlock()
	if last {
		if o.head > o.settled.Load() && len(o.summary.Open) == 0 {
			o.g.settle.add(o.id, o.head)
		}
		o.feed.Release()
	}
}

// hold takes another reference; the caller has one.
func (o *owner) hold() {
	o.g.mu.Lock()
	o.refs++
	o.g.mu.Unlock()
}

// fail gives the conversation up: what is in memory may be ahead of the log, so all of it goes. Recovery reads the log anew.
func (o *owner) fail(err error) {
	if o.g.life.Err() != nil && errors.Is(err, context.Canceled) {
		o.log.Info("conversation left as its log has it: the gateway stops", "error", err)
	} else {
		o.log.Error("conversation given up", "error", err)
	}
	o.mu.Lock()
	o.dead = err
	o.mu.Unlock()
	o.g.forget(o)
	o.g.follows.gone(o.id)
	for _, r := range o.runs() {
		r.lose(err)
	}
	o.watch.gone(err)
	o.feed.Close(feed.ErrLost)
	o.feed.Release()
	o.g.reopen.add(o.id)
}

// kill ends the owner of a deleted conversation. It runs in the writer.
func (o *owner) kill(err error) {
	o.mu.Lock()
	o.dead = err
	o.mu.Unlock()
	o.g.forget(o)
	o.g.follows.gone(o.id)
	o.feed.Close(feed.ErrDeleted)
	o.feed.Release()
}

// queued counts the turns that wait for another one.
func (o *owner) queued() (n int) {
	open := o.info().Open
	if len(open) == 0 {
		return 0
	}
	o.feed.View(func(t *transcript.Transcript) {
		for _, id := range open {
			if turn := t.Turn(id); turn != nil && turn.State == transcript.Queued {
				n++
			}
		}
	})
	return n
}

// info returns the committed summary.
func (o *owner) info() journal.Summary {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.summary
	return s
}
