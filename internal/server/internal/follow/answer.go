package follow

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// ErrNoTurn reports that the conversation no longer has a turn: it was truncated or trimmed away, or the conversation was restored.
var ErrNoTurn = errors.New("follow: turn no longer in the conversation")

// batchSize is about how many bytes of events are read at once.
const batchSize = 256 << 10

// maxExact is how many events are read at once if they aren't merged.
const maxExact = 512

// Answer gets the operations of a turn's answer: first those that exist, then the others when they are committed.
type Answer struct {
	// Op gets an operation, also one that the client has received. The answer has everything up to it.
	Op func(a *answer.Answer, op *answer.Op) error
	// Flush is called after operations that were there at once. It may be nil.
	Flush func() error
	// Tick is called for each value of Ticks. Both may be nil.
	Tick  func() error
	Ticks <-chan time.Time
	// IsExact passes each append as it was committed, and not merged with its neighbours. Clients that read an answer twice and compare the
	// numbers need that, because the text of a merged append has the number of its end only.
	IsExact bool
}

// Follow passes the operations of a turn. Those up to the number after are received already; it is -1 for a new client. Follow returns nil after
// the end of the turn. It returns an error if Op, Flush or Tick fails, if ctx ends, or if the turn can't be read.
//
// It calls all functions from its own goroutine, one at a time. A turn that has ended has the same operations with the same numbers as a
// running one. When its trace has expired, they are merged.
func (to Answer) Follow(ctx context.Context, gw *gateway.Gateway, p gateway.Principal, conversation, turn string, after int64) error {
	s := answerReader{to: to, gw: gw, principal: p, turn: turn, after: after}
	return Follower[bool]{
		Read:  s.readAll,
		State: func(hasEnded bool) (bool, error) { return hasEnded, nil },
		Tick:  to.Tick, Ticks: to.Ticks,
	}.Follow(ctx, gw, p, conversation)
}

// answerReader reads an answer from the feeds of its conversation.
type answerReader struct {
	to        Answer
	gw        *gateway.Gateway
	principal gateway.Principal
	turn      string
	after     int64

	answer   *answer.Answer // nil before the first read
	firstSeq int64          // seq of the turn's first event
	epoch    string         // of the log
}

// readAll passes all operations that are in a feed, and reports whether the turn has ended.
func (r *answerReader) readAll(ctx context.Context, f *gateway.Reader) (hasEnded bool, seq int64, err error) {
	firstSeq, err := r.findFirst(ctx, f)
	if err != nil {
		return false, 0, err
	}
	epoch, _, _ := f.Cursor().Parse()
	if r.answer == nil {
		r.answer, r.firstSeq, r.epoch = answer.New(r.turn, firstSeq, r.after), firstSeq, epoch
	} else if r.firstSeq != firstSeq || r.epoch != epoch {
		return false, 0, ErrNoTurn // the seqs are those of other events
	}
	// Everything is read here and not one batch for each commit, because the caller waits for the next commit.
	for !r.answer.HasEnded() {
		isFurther, err := r.step(ctx, f)
		if err != nil {
			return false, 0, err
		}
		if !isFurther {
			break
		}
	}
	return r.answer.HasEnded(), r.answer.Upto(), nil
}

// step reads one batch of events. It returns false at the end of the log.
func (r *answerReader) step(ctx context.Context, f *gateway.Reader) (isFurther bool, err error) {
	if err := f.Check(ctx); err != nil {
		return false, err
	}
	a := r.answer
	after, end := a.Upto(), f.Head()
	if after < a.ResumeSeq() {
		end = a.ResumeSeq() // so that nothing is merged across it
	}
	events, upto, ok := r.inOrder(f, after, end)
	isMerged := false
	if !ok {
		if events, upto, isMerged, err = r.readLog(ctx, f, after); err != nil {
			return false, err
		}
	}
	if upto <= after {
		return false, nil
	}
	err = a.Apply(events, upto, isMerged, func(op *answer.Op) error { return r.to.Op(a, op) })
	if err == nil && r.to.Flush != nil {
		err = r.to.Flush()
	}
	return true, err
}

// inOrder reads a batch from the memory of a feed.
func (r *answerReader) inOrder(f *gateway.Reader, after, end int64) (events []event.Event, upto int64, ok bool) {
	if !r.to.IsExact {
		return f.InOrder(after, end, batchSize)
	}
	// Nothing is merged in a batch of one event.
	upto = after
	for upto < end && len(events) < maxExact {
		batch, next, ok := f.InOrder(upto, upto+1, batchSize)
		if !ok {
			return events, upto, upto > after
		}
		if next == upto {
			break
		}
		events, upto = append(events, batch...), next
	}
	return events, upto, true
}

// readLog reads a batch from the journal: events as they were committed, or what a compacted log still has of the whole turn.
func (r *answerReader) readLog(ctx context.Context, f *gateway.Reader, after int64) (events []event.Event, upto int64, isMerged bool, err error) {
	events, upto, isCompacted, err := f.ReadLog(ctx, after, batchSize)
	if err != nil || !isCompacted {
		return events, upto, false, err
	}
	events, isMerged, err = f.ReadCompacted(ctx, r.turn, r.firstSeq)
	if err != nil {
		return nil, after, false, err
	}
	// The log may have been compacted after its first events were read.
	i, _ := slices.BinarySearchFunc(events, after+1, func(e event.Event, seq int64) int { return cmp.Compare(e.Seq, seq) })
	events = events[i:]
	if len(events) == 0 {
		return nil, after, false, ErrNoTurn // it was removed since its first seq was looked up
	}
	return events, events[len(events)-1].Seq, isMerged, nil
}

// findFirst returns the seq of the turn's first event. A turn that isn't in memory is looked up in the journal.
func (r *answerReader) findFirst(ctx context.Context, f *gateway.Reader) (seq int64, err error) {
	find := func(t *transcript.Transcript) bool {
		if turn := t.Turn(r.turn); turn != nil {
			seq = turn.FirstSeq
		}
		return seq != 0
	}
	f.View(func(t *transcript.Transcript) { find(t) })
	if seq == 0 {
		err = r.gw.ViewTranscript(ctx, r.principal, f.Conversation(), find)
	}
	if err == nil && seq == 0 {
		err = ErrNoTurn
	}
	return seq, err
}
