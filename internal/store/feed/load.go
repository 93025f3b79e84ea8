package feed

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// everything is above any seq.
const maxSeq = int64(1<<63 - 1)

// While a log is read piece by piece it goes on. These say that what was read has a hole, and is to be read again.
var (
	errSettled = errors.New("feed: log settled beyond what was asked for") // again, up to the present head
	errTrimmed = errors.New("feed: log trimmed while it was read")
)

// load reads a conversation's log up to a seq and folds it, keeping the newest messages only.
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
		// A truncate went back to messages that were not kept. This is rare: again, keeping all up to it.
		keepAfter = s.truncated
	}
}

// readState is one go at a load. Messages are evicted only at events above keep.
func (f *Feed) readState(ctx context.Context, upto, keepAfter int64) (state, error) {
	s := state{fold: &transcript.Transcript{}}
	err := f.scan(ctx, upto, func(e *event.Event) error {
		s.take(e, f.registry.cfg, keepAfter, f.id)
		return nil
	}, func(r Stretch) { // of the last piece
		s.epoch, s.terms, s.compacted, s.trimmed = r.Epoch, r.Terms, r.Compacted, r.Trimmed
		s.truncated = max(s.truncated, min(r.Truncated, upto))
		head := min(r.Head, upto)
		if s.head < head {
			s.tail.reset(head) // the log's last events are gone without a trace
		}
		s.head = head
	})
	return s, err
}

// scan reads a log up to a seq, a piece at a time, and calls fn for each event, then end with the last piece. The log may be
// settled in between: then a later event may be a merged one that holds some of what fn was given before, as a reader
// that resumes would get it. Where that does not help, since events up to upto were merged with later ones or trimmed away,
// the error is errSettled or errTrimmed.
func (f *Feed) scan(ctx context.Context, upto int64, fn func(*event.Event) error, end func(Stretch)) error {
	epoch, after := "", int64(0)
	for {
		r, err := f.registry.log.Read(ctx, f.id, after, f.registry.cfg.chunk)
		if err != nil {
			return err
		}
		if epoch == "" {
			epoch = r.Epoch
		}
		if r.Epoch != epoch {
			return fmt.Errorf("%w: the log was replaced while it was read", ErrLost)
		}
		if r.Compacted > upto {
			return errSettled
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
			return fmt.Errorf("%w: the log gives nothing after %d, and says that there is more", ErrLost, after)
		}
		if !hasMore {
			end(r)
			return nil
		}
	}
}

// reload folds the log anew where the fold has become too short for a snapshot.
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
		case errors.Is(err, errSettled) && f.Head() > head:
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

// replace puts a newly loaded fold in the place of the present one, with what was published meanwhile. It reports false
// where the tail does not go back that far.
func (f *Feed) replace(s state) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return true
	}
	if s.head < f.tail.from {
		return false
	}
	for _, e := range f.tail.after(s.head, 0) {
		s.take(&e, f.registry.cfg, 0, f.id)
	}
	f.fold, f.short, f.check, f.growth = s.fold, s.short, s.check, s.growth
	f.compacted = max(f.compacted, s.compacted)
	clear(f.cache)
	return !s.short
}
