// Filling a feed from the log: all of it is folded, and only the newest messages are kept, as many as the window has.

package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// maxSeq is above any seq.
const maxSeq = int64(1<<63 - 1)

// A log may change while it is read in pieces. These errors say that events are missing from the pieces, so the log must be read
// again.
var (
	errCompacted = errors.New("feed: log was compacted beyond the requested seq") // read again, up to the new head
	errTrimmed   = errors.New("feed: log was trimmed while it was read")
)

// load reads a conversation's log up to a seq and folds it, keeping only the newest messages. It reads twice if a truncate
// returns to messages that the first pass has evicted. The caller holds the slow lock. Its cost grows with the length
// of the log, but its memory only with the window.
func (f *Feed) load(ctx context.Context, upto int64) (state, error) {
	for keepAfter := int64(0); ; {
		s, err := f.readState(ctx, upto, keepAfter)
		if errors.Is(err, errTrimmed) {
			continue
		}
		if err != nil {
			return state{}, fmt.Errorf("feed: load %s: %w", f.id, err)
		}
		if !s.short {
			return s, nil
		}
		// A truncate returned to messages that were evicted. This is rare, so the log is read again and all messages before it are
		// kept.
		keepAfter = s.truncated
	}
}

// readState is one attempt of load. It evicts messages only at events above keepAfter. Its result is independent of
// f, so the feed can be used while it runs.
func (f *Feed) readState(ctx context.Context, upto, keepAfter int64) (state, error) {
	s := state{fold: &transcript.Transcript{}}
	err := f.scan(ctx, upto, func(e *event.Event) error {
		s.take(e, f.registry.cfg, keepAfter, f.id)
		return nil
	}, func(r Stretch) { // called with the last piece
		s.epoch, s.terms, s.compacted, s.trimmed = r.Epoch, r.Terms, r.Compacted, r.Trimmed
		s.truncated = max(s.truncated, min(r.Truncated, upto))
		head := min(r.Head, upto)
		if s.head < head {
			s.tail.reset(head) // the log's last events left nothing in the fold
		}
		s.head = head
	})
	return s, err
}

// scan reads a log up to a seq in pieces. It calls fn for each event and then end with the last piece. The log may be compacted
// meanwhile: a later event may then contain some of what fn already has, as for a reader that resumes. If events up to upto were
// merged with later ones or trimmed, the error is errCompacted or errTrimmed.
//
// Each piece shows the log at another moment. A log that claims to have more but returns nothing would make scan loop
// forever, so that is an error, which wraps ErrLost.
func (f *Feed) scan(ctx context.Context, upto int64, fn func(*event.Event) error, end func(Stretch)) error {
	epoch, after := "", int64(0)
	for {
		r, err := f.registry.log.Read(ctx, f.id, after, f.registry.cfg.chunkSize)
		if err != nil {
			return err
		}
		epoch = cmp.Or(epoch, r.Epoch)
		if r.Epoch != epoch {
			return fmt.Errorf("%w: the log was replaced while it was read", ErrLost)
		}
		if r.Compacted > upto {
			return errCompacted
		}
		if after > 0 && r.Trimmed > after {
			return errTrimmed
		}
		hasMore := r.HasMore
		for i := range r.Events {
			if r.Events[i].Seq > upto {
				hasMore = false
				break
			}
			after = r.Events[i].Seq
			if err := fn(&r.Events[i]); err != nil {
				return err
			}
		}
		if hasMore && len(r.Events) == 0 {
			return fmt.Errorf("%w: the log returned no events after %d although it has more", ErrLost, after)
		}
		if !hasMore {
			end(r)
			return nil
		}
	}
}

// reload folds the log again if the fold is too short for a snapshot. It repeats if the log was compacted meanwhile, or if the
// tail has dropped events that the new fold lacks.
func (f *Feed) reload(ctx context.Context) error {
	if err := f.lock(ctx); err != nil {
		return err
	}
	defer f.unlock()
	for {
		f.mu.Lock()
		epoch, head, complete := f.epoch, f.head, !f.short || f.err != nil
		f.mu.Unlock()
		if complete {
			return nil
		}
		s, err := f.load(ctx, head)
		switch {
		case errors.Is(err, errCompacted) && f.Head() > head:
			continue
		case err != nil:
			return err
		case s.epoch != epoch:
			f.Close(fmt.Errorf("%w: %s: the log has another epoch", ErrLost, f.id))
			return nil
		}
		if f.replace(s) {
			return nil
		}
	}
}

// replace installs a newly loaded fold and adds the events published meanwhile. It returns false if the tail no longer has all of
// them. The caller, which holds the slow lock, then loads again. On a closed feed it does nothing.
func (f *Feed) replace(s state) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return true
	}
	if s.head < f.tail.from {
		return false
	}
	for seq := s.head + 1; seq <= f.head; seq++ {
		e := f.tail.marks[seq-f.tail.from-1].event(seq)
		s.take(&e, f.registry.cfg, 0, f.id)
	}
	for k := range f.tail.open {
		f.tail.seal(k) // the new fold has its own copies of the texts
	}
	f.fold, f.short, f.check, f.growth = s.fold, s.short, s.check, s.growth
	f.compacted = max(f.compacted, s.compacted)
	f.clearCache()
	return !s.short
}
