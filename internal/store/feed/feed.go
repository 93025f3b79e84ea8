package feed

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Feed is the head of one conversation. [Registry.Acquire] returns it and [Feed.Release] releases it. All methods are safe for
// concurrent use, but only the conversation's writer may publish.
type Feed struct {
	id       string
	registry *Registry
	// Protected by the registry's lock.
	refs int
	// Loaded and referenced since, so no event can be missing.
	isCurrent atomic.Bool

	access     atomic.Int64
	accessInfo atomic.Pointer[accessInfo]
	// The deletion was published.
	isDeleted atomic.Bool

	// slow is a lock for readers of the log. It is a channel, so that a context can end the wait.
	slow chan struct{}

	mu sync.Mutex
	state
	// Closed and replaced when there are new events.
	notify   chan struct{}
	watchers []*func()
	// The reason why the feed was closed.
	err   error
	cache map[key]weak.Pointer[Batch]
	// The last one added to the cache, if it is small.
	latest *Batch
}

// state is the feed's view of its conversation. mu protects it.
type state struct {
	// epoch and terms identify the log. head is the seq of its newest published event, and up to compacted, its
	// events may be merged. Readers before trimmed and truncated get a snapshot.
	epoch                               string
	terms                               []Term
	head, compacted, trimmed, truncated int64
	fold                                *transcript.Transcript
	// short says that a truncate removed most messages of the fold, so that a snapshot would have too few.
	short bool
	tail  tail
	// check is the number of messages, and growth the bytes added, from which eviction is tried next.
	check, growth int
}

// key identifies a batch that readers share.
type key struct {
	after, upto int64
	// T from the tail, l from the log, s a snapshot.
	kind byte
	// For a batch from the log.
	budget int
}

// maxLatest limits the latest batch that stays in memory, in bytes of its frame. Readers that return together share it even if each of
// them leaves before the next one arrives.
const maxLatest = 256 << 10

// maxCached limits the cached batches of one head, which is the number of different positions to catch up from.
const maxCached = 256

// Conversation returns the conversation's id.
func (f *Feed) Conversation() string { return f.id }

// Head returns the seq of the last event published.
func (f *Feed) Head() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head
}

// Cursor returns the cursor at the head.
func (f *Feed) Cursor() Cursor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cursor(f.head)
}

// Notify returns a channel that is closed at the next publish and when the feed is closed. A reader must take the channel before it
// polls, or it may miss events.
func (f *Feed) Notify() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.notify
}

// Watch calls fn whenever the channel of Notify is closed, until stop is called. It is for code that reads for many: a goroutine for each
// channel is not needed. fn is called with the feed's lock held, so it must be quick and must not call the feed.
func (f *Feed) Watch(fn func()) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers = append(f.watchers, &fn)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.watchers = slices.DeleteFunc(f.watchers, func(w *func()) bool { return w == &fn })
	}
}

// AccessChanged wakes the readers, so that they check whether they may still read.
func (f *Feed) AccessChanged() {
	f.access.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake()
}

// Access counts the calls of AccessChanged. A reader that sees a new count must check its access again. The feed itself checks
// nothing.
func (f *Feed) Access() int64 { return f.access.Load() }

// accessInfo is what the gateway needs to decide about access, as of a value of [Feed.Access].
type accessInfo struct {
	count int64
	info  any
}

// AccessInfo returns what SetAccessInfo stored for this value of [Feed.Access], or nil. With it, the gateway decides about a reader's
// access without a read of the journal. It returns nil once the deletion of the conversation was published.
func (f *Feed) AccessInfo(count int64) any {
	if a := f.accessInfo.Load(); a != nil && a.count == count && !f.isDeleted.Load() {
		return a.info
	}
	return nil
}

// SetAccessInfo stores info until access changes or nobody uses the feed. count is the value of [Feed.Access] from before info was
// read: if access has changed since, info is not returned.
func (f *Feed) SetAccessInfo(count int64, info any) { f.accessInfo.Store(&accessInfo{count, info}) }

// View calls fn with the fold of the published events: the newest messages, including those of unfinished turns. fn must not change
// or retain it, nor call the feed. It must be quick, because publishing and polling wait for it.
func (f *Feed) View(fn func(t *transcript.Transcript)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn(f.fold)
}

// Publish shows committed events to the readers. Their seqs must follow the head. Otherwise nothing is shown, the feed is closed,
// its readers read the log again, and the error wraps errOrder. On a closed feed it returns the reason for that. The slice isn't
// retained. It never waits for a reader. The first events of a batch aren't shown without the last ones, because
// readers are notified once.
func (f *Feed) Publish(events []event.Event) error {
	if len(events) == 0 {
		return nil
	}
	f.mu.Lock()
	if f.err != nil {
		defer f.mu.Unlock()
		return f.err
	}
	for i := range events {
		if want := f.head + 1 + int64(i); events[i].Seq != want {
			f.mu.Unlock()
			err := fmt.Errorf("%w: publish %s: seq %d after %d", errOrder, f.id, events[i].Seq, want-1)
			f.Close(fmt.Errorf("%w: %w", ErrLost, err))
			return err
		}
	}
	defer f.mu.Unlock()
	for i := range events {
		f.take(&events[i])
		if events[i].Type == event.ConversationDelete {
			f.isDeleted.Store(true)
		}
	}
	f.wake()
	return nil
}

// Forget removes what a subject has left in the turns of the fold, after the journal has blanked the events of that subject. Readers that are
// behind get the blanked events, because the feed's own copies of them are dropped too.
func (f *Feed) Forget(subject string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fold.Forget(subject)
	f.tail.reset(f.head)
	f.clearCache()
}

// take folds the next event and adds it to the tail. The caller holds mu.
func (f *Feed) take(e *event.Event) {
	f.state.take(e, f.registry.cfg, 0, f.id)
}

// take folds the next event and adds it to the tail. It evicts no messages at events up to the seq keepAfter, because a later
// truncate returns to them.
func (s *state) take(e *event.Event, cfg Config, keepAfter int64, id string) {
	if e.Type == event.ConversationTruncate {
		if s.fold.Earlier && e.Message != "" && s.fold.Message(e.Message) == nil {
			s.short = true
		}
		s.truncated = e.Seq
	}
	if err := s.fold.Apply(e); err != nil {
		// The log can't be changed: readers get the same error, take a snapshot and continue after it.
		cfg.Logger.Error("event does not fit its log", slog.String("conversation", id), slog.Int64("seq", e.Seq), slog.Any("error", err))
	}
	s.tail.add(e, s.fold, cfg.TailEvents, cfg.TailBytes)
	s.head = e.Seq
	s.growth += len(e.Text)
	switch e.Type {
	case event.ConversationTruncate:
		s.tail.reset(e.Seq) // readers behind it get a snapshot
	case event.MessageAdd, event.MessageStart, event.TurnEnd:
		if e.Seq > keepAfter {
			s.evict(cfg.Window)
		}
	}
}

// evict drops messages that no snapshot needs. It only looks when the fold has doubled since the last time. So the
// cost for each message stays constant on average.
func (s *state) evict(l transcript.Limits) {
	if len(s.fold.Messages) < max(s.check, 2*l.Messages) && s.growth < 2*l.Bytes {
		return
	}
	s.fold.Evict(s.fold.Window(l))
	s.tail.sealMissing(s.fold)
	s.check, s.growth = 2*len(s.fold.Messages), 0
}

// wake notifies the readers. The caller holds mu.
func (f *Feed) wake() {
	if f.err != nil {
		return // they were notified when the feed was closed
	}
	f.clearCache() // up-to-date readers ask for the next events now
	f.signal()
	f.notify = make(chan struct{})
}

// clearCache forgets the batches that readers share. The caller holds mu.
func (f *Feed) clearCache() {
	clear(f.cache)
	f.latest = nil
}

// signal tells all waiting readers that the feed has changed. The caller holds mu. The caller also replaces the
// channel, unless the feed is closed: then it stays closed, and no reader waits any more.
func (f *Feed) signal() {
	close(f.notify)
	for _, fn := range f.watchers {
		(*fn)()
	}
}

// Compacted tells the feed that the log is compacted up to a seq. Readers don't notice.
func (f *Feed) setCompacted(upto int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.compacted = max(f.compacted, upto)
	if f.compacted >= f.head {
		f.tail.shrink(compactedEvents, f.registry.cfg.TailBytes/4)
	}
}

// Close ends the feed. Readers get the remaining events of the tail and then err, which wraps [ErrDeleted] or [ErrLost]. The
// registry forgets the feed, so the next Acquire reads the log again. References must still be released. Only the first error
// counts.
func (f *Feed) Close(err error) {
	f.registry.forget(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
		f.clearCache()
		f.signal()
	}
}

// Release releases a reference. Call it once for each Acquire.
func (f *Feed) Release() { f.registry.release(f) }

// lock acquires the slow lock, or returns an error if ctx ends first.
func (f *Feed) lock(ctx context.Context) error {
	select {
	case f.slow <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("feed: wait for the log of %s: %w", f.id, context.Cause(ctx))
	}
}

func (f *Feed) unlock() { <-f.slow }
