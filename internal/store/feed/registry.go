package feed

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/leat-dev/leat/transcript"
)

// Registry holds the feeds of conversations that are in use, and some that were recently. All methods are safe for
// concurrent use. It owns no goroutines. Its lock is never held while a log is read, so a conversation with a long
// log delays no other one.
type Registry struct {
	log logReader
	cfg Config

	mu sync.Mutex
	// feeds has one feed for each conversation at most. A feed that was closed is removed, so the next Acquire makes
	// another.
	feeds map[string]*Feed
	// idle has the unreferenced feeds that stay in memory, the longest unused first. idling has the element of each.
	idle   *list.List
	idling map[*Feed]*list.Element
	// closed makes Acquire fail. It is set once.
	closed bool
}

// NewRegistry returns a registry that loads feeds from log.
func NewRegistry(log logReader, cfg Config) *Registry {
	cfg.setDefaults()
	return &Registry{log: log, cfg: cfg, feeds: map[string]*Feed{}, idle: list.New(), idling: map[*Feed]*list.Element{}}
}

// Acquire returns the conversation's feed. The caller must release it. If the feed isn't in use, Acquire reads the log first;
// concurrent callers wait for one of them to do so. Errors of the log are wrapped. Acquire fails with [ErrClosed]
// after Close. If ctx ends while another caller loads the feed, it returns the cause.
func (r *Registry) Acquire(ctx context.Context, conversation string) (*Feed, error) {
	for {
		f, err := r.retain(conversation)
		if err != nil {
			return nil, err
		}
		if err := f.ready(ctx); err != nil {
			f.Release()
			return nil, err
		}
		if r.has(f) {
			return f, nil
		}
		f.Release() // closed before it was loaded; the registry has another one now
	}
}

// Contains reports whether the conversation's feed is in use, so that Acquire has nothing to read.
func (r *Registry) Contains(conversation string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.feeds[conversation]
	return f != nil && f.refs > 0
}

// retain adds a reference to the conversation's feed. The feed may not be loaded yet. It makes the feed if there is
// none. The caller must release it, also if it can't be loaded.
func (r *Registry) retain(conversation string) (*Feed, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	f := r.feeds[conversation]
	if f == nil {
		f = &Feed{id: conversation, registry: r, slow: make(chan struct{}, 1), notify: make(chan struct{})}
		f.fold = &transcript.Transcript{}
		r.feeds[conversation] = f
	}
	if e := r.idling[f]; e != nil {
		r.idle.Remove(e)
		delete(r.idling, f)
	}
	f.refs++
	return f, nil
}

// has reports whether f is still the registered feed of its conversation.
func (r *Registry) has(f *Feed) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.feeds[f.id] == f
}

// release drops a reference. An unreferenced feed stays in memory for a while, and is checked against the log before it is used
// again. A feed that was never loaded isn't worth keeping. A negative number of references is a mistake of the caller
// that would later give a reader a feed without updates, so it panics.
func (r *Registry) release(f *Feed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.refs--; f.refs > 0 {
		return
	}
	if f.refs < 0 {
		panic("feed: released more often than acquired: " + f.id)
	}
	if r.feeds[f.id] != f {
		return
	}
	f.accessInfo.Store(nil)
	if !f.isCurrent.Swap(false) || r.closed || r.cfg.Idle < 0 {
		delete(r.feeds, f.id)
		return
	}
	r.idling[f] = r.idle.PushBack(f)
	for r.idle.Len() > r.cfg.Idle {
		r.drop(r.idle.Front().Value.(*Feed))
	}
}

// forget removes a closed feed, even if it is still referenced.
func (r *Registry) forget(f *Feed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.feeds[f.id] == f {
		r.drop(f)
	}
}

// drop removes a feed from the registry. The caller holds mu. Readers that still use the feed are not affected.
func (r *Registry) drop(f *Feed) {
	delete(r.feeds, f.id)
	if e := r.idling[f]; e != nil {
		r.idle.Remove(e)
		delete(r.idling, f)
	}
}

// Compacted tells the conversation's feed, if there is one, that its log is compacted up to a seq. It neither loads nor retains
// the feed, so a compaction of an unused conversation costs nothing here.
func (r *Registry) Compacted(conversation string, upto int64) {
	r.mu.Lock()
	f := r.feeds[conversation]
	r.mu.Unlock()
	if f != nil {
		f.setCompacted(upto)
	}
}

// Len returns the number of feeds in memory.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.feeds)
}

// Close closes all feeds with [ErrClosed]. Later calls of Acquire fail. References stay valid and must still be
// released.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	feeds := make([]*Feed, 0, len(r.feeds))
	for _, f := range r.feeds {
		feeds = append(feeds, f)
	}
	r.mu.Unlock()
	for _, f := range feeds {
		f.Close(ErrClosed)
	}
}

// ready loads the feed, unless that was done since it was first referenced. A feed that was idle is used again if the
// log's head, trim and terms are unchanged: an idle feed isn't published to, so it may lack events. The check is a
// read of one event. A failed load leaves the feed as it was, and the next caller tries again.
func (f *Feed) ready(ctx context.Context) error {
	if f.isCurrent.Load() {
		return nil
	}
	if err := f.lock(ctx); err != nil {
		return err
	}
	defer f.unlock()
	if f.isCurrent.Load() {
		return nil
	}
	f.mu.Lock()
	epoch, head, trimmed, terms := f.epoch, f.head, f.trimmed, f.terms
	f.mu.Unlock()
	if epoch != "" { // it was idle, and the log is usually unchanged
		r, err := f.registry.log.Read(ctx, f.id, head, 1)
		if err != nil {
			return fmt.Errorf("feed: look over %s: %w", f.id, err)
		}
		if r.Epoch == epoch && r.Head == head && r.Trimmed == trimmed && slices.Equal(r.Terms, terms) {
			f.isCurrent.Store(true)
			return nil
		}
	}
	s, err := f.load(ctx, maxSeq)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.state = s
	f.clearCache()
	f.mu.Unlock()
	f.isCurrent.Store(true)
	return nil
}
