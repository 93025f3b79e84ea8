package feed

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/leat-dev/leat/transcript"
)

// Registry holds one feed for each conversation that somebody reads or writes, and a few that somebody just did.
// All methods may be called from several goroutines.
type Registry struct {
	log Log
	cfg Config

	mu     sync.Mutex
	feeds  map[string]*Feed
	idle   *list.List // of *Feed: those that nobody holds, longest first
	idling map[*Feed]*list.Element
	closed bool
}

// NewRegistry returns a registry of the conversations of a log.
func NewRegistry(log Log, cfg Config) *Registry {
	cfg.setDefaults()
	return &Registry{log: log, cfg: cfg, feeds: map[string]*Feed{}, idle: list.New(), idling: map[*Feed]*list.Element{}}
}

// Acquire returns the conversation's feed, which the caller releases. Where nobody holds it the log is read first; of
// several callers one does so, and the others wait. Errors of the log are wrapped.
func (r *Registry) Acquire(ctx context.Context, conversation string) (*Feed, error) {
	for {
		f, err := r.hold(conversation)
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
		f.Release() // closed before it was had; there is another one now
	}
}

// Held reports whether somebody holds the conversation's feed now: then Acquire has nothing to read.
func (r *Registry) Contains(conversation string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.feeds[conversation]
	return f != nil && f.refs > 0
}

// hold counts a reference to the conversation's feed, which may have to be loaded.
func (r *Registry) hold(conversation string) (*Feed, error) {
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

func (r *Registry) has(f *Feed) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.feeds[f.id] == f
}

// release takes a reference back. A feed that nobody holds is kept a while, but is looked over before it is used again.
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
	if !f.isCurrent.Swap(false) || r.closed || r.cfg.Idle < 0 {
		delete(r.feeds, f.id)
		return
	}
	r.idling[f] = r.idle.PushBack(f)
	for r.idle.Len() > r.cfg.Idle {
		r.drop(r.idle.Front().Value.(*Feed))
	}
}

// forget takes a closed feed out, whoever holds it.
func (r *Registry) forget(f *Feed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.feeds[f.id] == f {
		r.drop(f)
	}
}

func (r *Registry) drop(f *Feed) {
	delete(r.feeds, f.id)
	if e := r.idling[f]; e != nil {
		r.idle.Remove(e)
		delete(r.idling, f)
	}
}

// Compacted tells the conversation's feed, if there is one, that its log is settled up to a seq.
func (r *Registry) Compacted(conversation string, upto int64) {
	if f := r.peek(conversation); f != nil {
		f.Compacted(upto)
	}
}

// Trimmed tells the conversation's feed, if there is one, that its log has lost its events up to a seq.
func (r *Registry) Trimmed(conversation string, upto int64) {
	if f := r.peek(conversation); f != nil {
		f.Trimmed(upto)
	}
}

func (r *Registry) peek(conversation string) *Feed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.feeds[conversation]
}

// Len returns how many feeds are held in memory.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.feeds)
}

// Close closes all feeds with [ErrClosed]. Acquire fails from then on.
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

// ready loads the feed, if that was not done since somebody holds it.
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
	if epoch != "" { // idle until now, and most often nothing has happened
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
	clear(f.cache)
	f.mu.Unlock()
	f.isCurrent.Store(true)
	return nil
}
