package feed

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Feed is the head of one conversation. It comes from [Registry.Acquire] and is given back by [Feed.Release]. All methods
// may be called from several goroutines, but only one, the conversation's owner, publishes.
type Feed struct {
	id        string
	registry  *Registry
	refs      int         // under the registry's lock
	isCurrent atomic.Bool // loaded, and held since, so that nothing can have been missed

	access atomic.Int64

	// slow is a lock with one slot for those who read the log: they go one by one, and may give up.
	slow chan struct{}

	mu sync.Mutex
	state
	notify chan struct{} // closed and replaced when there is something new
	err    error         // why it was closed
	cache  map[key]weak.Pointer[Batch]
}

// state is what a feed knows of its conversation, under mu.
type state struct {
	epoch                               string
	terms                               []Term
	head, compacted, trimmed, truncated int64
	fold                                *transcript.Transcript
	// short says that a truncate went back behind the messages that the fold holds, so that a snapshot has too few of them.
	short bool
	tail  tail
	// check is the number of messages at which it is looked next whether some can be evicted, grown the bytes that came since.
	check, growth int
}

// key is what readers share a batch by.
type key struct {
	after, upto int64
	kind        byte // t from the tail, l from the log, s a snapshot
	budget      int  // of a batch from the log
}

// maxCached bounds the batches that are remembered of one head: as many as there may be different places to catch up from.
const maxCached = 256

// Conversation returns the conversation's id.
func (f *Feed) Conversation() string { return f.id }

// Head returns the seq of the last event published.
func (f *Feed) Head() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head
}

// Cursor returns the cursor of a reader that has everything.
func (f *Feed) Cursor() Cursor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cursor(f.head)
}

// Notify returns a channel that is closed at the next publish, and once the feed is closed. Whoever waits takes it before it
// polls; then nothing is missed.
func (f *Feed) Notify() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.notify
}

// AccessChanged tells the readers that some may not read any more: those that wait wake up.
func (f *Feed) AccessChanged() {
	f.access.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake()
}

// Access counts the calls of AccessChanged. A reader that finds another count than the one with which it was let in asks
// anew whether it may go on; the feed itself lets everybody.
func (f *Feed) Access() int64 { return f.access.Load() }

// View calls fn with the fold of what is published: the newest messages, those of unfinished turns among them. fn must not
// change it, keep it, or call the feed, and should be quick: nobody publishes or polls meanwhile.
func (f *Feed) View(fn func(t *transcript.Transcript)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn(f.fold)
}

// Publish shows events, which the log has, to the readers. Their seqs follow the head without a hole; otherwise nothing is
// shown, the feed is lost to its readers, who read the log anew, and the error wraps [ErrOrder]. On a closed feed it
// returns why it was closed. The slice is not kept.
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
			err := fmt.Errorf("%w: publish %s: seq %d after %d", ErrOrder, f.id, events[i].Seq, want-1)
			f.Close(fmt.Errorf("%w: %w", ErrLost, err))
			return err
		}
	}
	defer f.mu.Unlock()
	for i := range events {
		f.take(&events[i])
	}
	f.wake()
	return nil
}

// take folds the next event in and puts it at the end of the tail. It is called with mu held.
func (f *Feed) take(e *event.Event) {
	f.state.take(e, f.registry.cfg, 0, f.id)
}

// take folds the next event in and puts it at the end of the tail. Messages that events up to the seq keep may still
// fall back to are not evicted.
func (s *state) take(e *event.Event, cfg Config, keepAfter int64, id string) {
	if e.Type == event.ConversationTruncate {
		if s.fold.Earlier && e.Message != "" && s.fold.Message(e.Message) == nil {
			s.short = true
		}
		s.truncated = e.Seq
	}
	if err := s.fold.Apply(e); err != nil {
		// The log is what it is: readers meet the same error, take a snapshot, and are past it.
		cfg.Logger.Error("event does not fit its log", slog.String("conversation", id), slog.Int64("seq", e.Seq), slog.Any("error", err))
	}
	s.tail.add(e, cfg.TailEvents, cfg.TailBytes)
	s.head = e.Seq
	s.growth += len(e.Text)
	switch e.Type {
	case event.ConversationTruncate:
		s.tail.reset(e.Seq) // whoever is behind it gets a snapshot
	case event.MessageAdd, event.MessageStart, event.TurnEnd:
		if e.Seq > keepAfter {
			s.evict(cfg.Window)
		}
	}
}

// evict forgets messages that no snapshot will hold. It looks only when the fold has doubled since it last did.
func (s *state) evict(l transcript.Limits) {
	if len(s.fold.Messages) < max(s.check, 2*l.Messages) && s.growth < 2*l.Bytes {
		return
	}
	s.fold.Evict(s.fold.Window(l))
	s.check, s.growth = 2*len(s.fold.Messages), 0
}

// wake tells the readers that there is something new. It is called with mu held.
func (f *Feed) wake() {
	if f.err != nil {
		return // they were told of the end
	}
	clear(f.cache) // readers that are up to date now ask for what comes after
	close(f.notify)
	f.notify = make(chan struct{})
}

// Compacted tells the feed that the log is settled up to a seq. For readers nothing changes.
func (f *Feed) Compacted(upto int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.compacted = max(f.compacted, upto)
	if f.compacted >= f.head {
		f.tail.shrink(settledEvents, f.registry.cfg.TailBytes/4)
	}
}

// Trimmed tells the feed that the log has lost its events up to a seq. Messages that began there are gone.
func (f *Feed) Trimmed(upto int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if upto <= f.trimmed {
		return
	}
	f.trimmed = upto
	f.tail.drop(upto)
	n := 0
	for n < len(f.fold.Messages) && f.fold.Messages[n].Seq <= upto {
		n++
	}
	if n > 0 {
		f.fold.Evict(n)
		f.fold.Earlier = false
	}
	f.wake()
}

// Close ends the feed: readers get what they have not seen of its tail, and then err, which wraps [ErrDeleted] or
// [ErrLost]. The registry forgets it, so that the next Acquire reads the log anew. Whoever holds it still releases it.
// The first error stays.
func (f *Feed) Close(err error) {
	f.registry.forget(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
		clear(f.cache)
		close(f.notify)
	}
}

// Release gives the feed back. It is called once for each Acquire.
func (f *Feed) Release() { f.registry.release(f) }

// lock takes the slow lock, unless ctx ends before.
func (f *Feed) lock(ctx context.Context) error {
	select {
	case f.slow <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("feed: wait for the log of %s: %w", f.id, context.Cause(ctx))
	}
}

func (f *Feed) unlock() { <-f.slow }
