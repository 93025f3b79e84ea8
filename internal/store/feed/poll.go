// Answering a reader's poll: a merged batch from the tail or the log, or a snapshot.

package feed

import (
	"context"
	"fmt"
	"slices"
	"weak"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Poll returns the changes since a cursor, a snapshot if the cursor can't be resumed, or nil if the reader is up to date. budget limits
// the batch to about that many bytes, but it always has at least one event. 0 means no limit. Poll never waits for new events, but
// for an old cursor it may read the log, until ctx ends.
//
// On a closed feed Poll returns the rest of the tail and then the reason for the closing. Errors other than that
// reason come from the log. The returned batch is shared and must not be changed.
func (f *Feed) Poll(ctx context.Context, c Cursor, budget int) (*Batch, error) {
	epoch, term, after, ok := c.parse()
	f.mu.Lock()
	switch {
	case !ok || epoch != f.epoch || term != f.term(after) || f.foreign(after):
		return f.snapshot(ctx)
	case after == f.head:
		defer f.mu.Unlock()
		return nil, f.err
	case after >= f.tail.from:
		return f.recent(after, budget), nil
	}
	return f.older(ctx, after, budget)
}

// PollTail is Poll without a read of the log, so it never blocks. It returns false if Poll would read the log. It is
// for goroutines that serve many readers, which an old cursor must not delay. The same reader may call Poll at the
// same time.
func (f *Feed) PollTail(c Cursor, budget int) (b *Batch, ok bool, err error) {
	epoch, term, after, valid := c.parse()
	f.mu.Lock()
	if !valid || epoch != f.epoch || term != f.term(after) || f.foreign(after) || after != f.head && after < f.tail.from {
		f.mu.Unlock()
		return nil, false, nil
	}
	if after == f.head {
		defer f.mu.Unlock()
		return nil, true, f.err
	}
	return f.recent(after, budget), true, nil
}

// InOrder returns the events after a seq in the order of the log, about budget bytes of them and none after the seq end, and the seq up to
// which they reach. In them only neighbouring appends to one text are merged, so that a reader may count what it has by the seqs of events,
// not of batches. It returns false if the tail doesn't reach back to the seq. It never blocks.
func (f *Feed) InOrder(after, end int64, budget int) (events []event.Event, upto int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if after < f.tail.from || after > f.head || f.foreign(after) {
		return nil, after, false
	}
	if after == f.head || after >= end {
		return nil, after, true
	}
	upto = min(f.tail.upto(after, budget), end)
	return f.tail.inOrder(after, upto), upto, true
}

// Next waits until Poll returns a batch, and returns it. It returns the cause of ctx when that ends first.
func (f *Feed) Next(ctx context.Context, c Cursor, budget int) (*Batch, error) {
	for {
		changed := f.Notify()
		if b, err := f.Poll(ctx, c, budget); b != nil || err != nil {
			return b, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// foreign reports whether a cursor at seq can't be resumed. Its seq is above the head, or the events after it include
// a truncate or were removed by a trim. No batch can express these.
func (f *Feed) foreign(seq int64) bool {
	return seq > f.head || seq < f.truncated || seq < f.trimmed
}

// snapshot returns a batch with the newest messages. The caller holds mu; snapshot releases it. All readers at one
// head share a snapshot. If a truncate has left too few messages in the fold, it reads the log first.
func (f *Feed) snapshot(ctx context.Context) (*Batch, error) {
	if f.err == nil && f.short {
		f.mu.Unlock()
		if err := f.reload(ctx); err != nil {
			return nil, err
		}
		f.mu.Lock()
	}
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	k := key{upto: f.head, kind: 's'}
	if b := f.cache[k].Value(); b != nil {
		return b, nil
	}
	s := f.fold.Snapshot(f.fold.Window(f.registry.cfg.Window))
	s.Seq = f.head // the last events may have left nothing in the fold
	return f.share(k, &Batch{Conversation: f.id, Cursor: f.cursor(f.head), Upto: f.head, Reset: true, Snapshot: s}), nil
}

// recent returns a batch of the tail's events after a seq. The caller holds mu; recent releases it. Merging happens
// without mu, because it may copy much text. So two readers may merge the same batch, and share keeps the first.
func (f *Feed) recent(after int64, budget int) *Batch {
	upto := f.tail.upto(after, budget)
	k := key{after: after, upto: upto, kind: 't'}
	if b := f.cache[k].Value(); b != nil {
		f.mu.Unlock()
		return b
	}
	events, oldest := f.tail.after(after, upto)
	b := &Batch{Conversation: f.id, Cursor: f.cursor(upto), Upto: upto, Oldest: oldest, Events: events, piece: f.registry.cfg.pieceSize}
	if len(events) > 1 {
		f.mu.Unlock()
		b.Events = transcript.Merge(events, f.history)
		f.mu.Lock()
	}
	defer f.mu.Unlock()
	return f.share(k, b)
}

// older returns a batch of the log's events after a seq. The caller holds mu; older releases it. If the log has too
// much for one batch, it returns a snapshot.
func (f *Feed) older(ctx context.Context, after int64, budget int) (*Batch, error) {
	err, raw := f.err, after >= f.compacted
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if b, err := f.readBatch(ctx, after, budget, raw); b != nil || err != nil {
		return b, err
	}
	f.mu.Lock() // without the slow lock, which a snapshot may need
	return f.snapshot(ctx)
}

// readBatch reads a batch of the log's events after a seq. It returns nil if only a snapshot is possible. A log with
// another epoch was replaced, for example by a restore. Then the feed is closed, and its readers start again.
func (f *Feed) readBatch(ctx context.Context, after int64, budget int, raw bool) (*Batch, error) {
	if err := f.lock(ctx); err != nil {
		return nil, err
	}
	defer f.unlock()
	f.mu.Lock()
	k := key{after: after, upto: f.head, kind: 'l', budget: budget}
	b := f.cache[k].Value()
	f.mu.Unlock()
	if b != nil {
		return b, nil
	}
	s, missing, err := f.readLog(ctx, after, raw)
	if err != nil {
		return nil, fmt.Errorf("feed: read %s after %d: %w", f.id, after, err)
	}
	f.mu.Lock()
	if f.err == nil && s.Epoch != f.epoch {
		f.mu.Unlock()
		f.Close(fmt.Errorf("%w: %s: the log has another epoch", ErrLost, f.id))
		f.mu.Lock()
	}
	// The log may have been compacted or trimmed while it was read.
	f.compacted, f.trimmed = max(f.compacted, s.Compacted), max(f.trimmed, s.Trimmed)
	foreign, err := f.foreign(after), f.err
	head := min(f.head, s.Head) // s lacks what was published while it was read
	f.mu.Unlock()
	if err != nil || foreign || missing {
		return nil, err
	}

	b = &Batch{Conversation: f.id, piece: f.registry.cfg.pieceSize}
	if len(s.Events) > 0 {
		b.Oldest = s.Events[0].At
	}
	b.Events, b.Upto = f.pick(s, head, budget)
	f.mu.Lock()
	defer f.mu.Unlock()
	b.Cursor = f.cursor(b.Upto)
	return f.share(k, b), nil
}

// readLog reads the log after a seq. It returns missing if that is too much for one batch and a part won't do, because merged
// operations that begin in the part may end after it. If raw is true, nothing was merged, and any part will do. The
// first attempt reads one piece, and the second as much as a batch may have. In a compacted log only the second makes
// sense.
func (f *Feed) readLog(ctx context.Context, after int64, raw bool) (s Stretch, missing bool, err error) {
	cfg := &f.registry.cfg
	limits := []int{cfg.chunkSize, cfg.behindLimit}
	if !raw {
		limits = limits[1:]
	}
	for _, limit := range limits {
		if s, err = f.registry.log.Read(ctx, f.id, after, limit); err != nil {
			return s, false, err
		}
		missing = s.HasMore && (len(s.Events) == 0 || s.Events[len(s.Events)-1].Seq < s.Compacted)
		if !missing {
			break
		}
	}
	return s, missing, nil
}

// pick chooses the seq at which a batch from the log ends, and merges the events up to there. It includes all of a merged operation
// that begins before the seq.
func (f *Feed) pick(s Stretch, head int64, budget int) (events []event.Event, upto int64) {
	n, size := 0, int64(0)
	for n < len(s.Events) && s.Events[n].Seq <= head && (budget <= 0 || size < int64(budget)) {
		size += cost(&s.Events[n])
		n++
	}
	// Events that aren't published yet are left for a later batch.
	remainder := s.Events[n:]
	upto = head
	if n > 0 && (s.HasMore || (len(remainder) > 0 && remainder[0].Seq <= head)) {
		upto = s.Events[n-1].Seq
	}
	events = transcript.Merge(s.Events[:n], f.history)
	for i := range remainder {
		if remainder[i].FirstSeq() <= upto {
			events = append(events, remainder[i])
		}
	}
	return events, upto
}

// share caches a batch for other readers at the same position. If another reader was faster, it returns that reader's batch. The
// caller holds mu. The cache holds weak pointers, so it doesn't keep unused batches in memory, apart from the latest.
func (f *Feed) share(k key, b *Batch) *Batch {
	if cached := f.cache[k].Value(); cached != nil {
		return cached
	}
	if f.cache == nil {
		f.cache = map[key]weak.Pointer[Batch]{}
	}
	if len(f.cache) < maxCached {
		f.cache[k] = weak.Make(b)
		f.latest = b
		if b.Reset || b.size() > maxLatest {
			f.latest = nil
		}
	}
	return b
}

// history returns a part's notes as of a seq. It has the form that [transcript.Merge] needs, and is called without
// mu.
func (f *Feed) history(message, part string, seq int64) ([]string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.fold.Message(message); m != nil {
		if p := m.Part(part); p != nil {
			h, ok := p.HistoryAt(seq)
			return slices.Clip(h), ok
		}
	}
	return nil, false
}
