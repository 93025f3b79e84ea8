package channel

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/transcript"
)

// source reads the events of one turn from the feed of its conversation.
type source struct {
	reader *gateway.Reader
	at     feed.Cursor
	stream *Stream
}

// newSource returns a source that begins with the first event of the turn.
func newSource(f *gateway.Reader, turn *transcript.Turn) *source {
	return &source{reader: f, at: f.CursorAt(turn.FirstSeq - 1), stream: NewStream(turn.ID)}
}

// run passes events on until the turn has ended and its last event was received. What is committed while the receiver is busy is
// merged. If draining is closed before the turn has ended, it returns errDraining. A turn that a regeneration has removed counts
// as ended: the receiver sees a snapshot without it.
func (s *source) run(ctx context.Context, events chan<- StreamEvent, draining <-chan struct{}) error {
	for !s.isComplete() {
		changed := s.reader.Notify()
		batch, err := s.reader.Poll(ctx, s.at, batchBudget)
		if err != nil {
			return err
		}
		if batch == nil {
			select {
			case <-changed:
				continue
			case <-draining:
				return errDraining
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		e := StreamEvent{Snapshot: batch.Snapshot, Events: batch.Events}
		if err := s.stream.Apply(e); err != nil {
			if !errors.Is(err, transcript.ErrGap) && !errors.Is(err, transcript.ErrMismatch) {
				return err
			}
			s.at = "" // the next batch is a snapshot
			continue
		}
		s.at = batch.Cursor
		select {
		case events <- e:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// isComplete reports whether nothing of the turn will follow.
func (s *source) isComplete() bool {
	if s.stream.IsRemoved() {
		return true
	}
	turn := s.stream.Turn()
	return turn != nil && !turn.Unfinished()
}
