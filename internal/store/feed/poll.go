package feed

import (
	"context"
	"fmt"
	"slices"
	"weak"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Poll returns what changed since a cursor, or a snapshot where the cursor can't be gone on from; nil where nothing is new.
// budget bounds the batch, in bytes of text and such, about; it holds one event at least, and what it holds is whole. 0 is
// no bound. Poll never waits for new events, but may read the log for an old cursor; ctx bounds that.
//
// On a closed feed the error is why it was closed, once the cursor has what the tail holds.
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

// Next waits until Poll has something, and returns it.
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

// foreign reports whether a cursor at seq can't be gone on from.
func (f *Feed) foreign(seq int64) bool {
	return seq > f.head || seq < f.truncated || seq < f.trimmed
}

// snapshot makes a batch of the newest messages. It is called with mu held and releases it.
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
	s.Seq = f.head // the last events may have left no trace in the fold
	return f.share(k, &Batch{Conversation: f.id, Cursor: f.cursor(f.head), Upto: f.head, Reset: true, Snapshot: s}), nil
}

// recent makes a batch of what the tail holds after a seq. It is called with mu held and releases it.
func (f *Feed) recent(after int64, budget int) *Batch {
	events := f.tail.after(after, budget)
	upto := events[len(events)-1].Seq
	k := key{after: after, upto: upto, kind: 't'}
	if b := f.cache[k].Value(); b != nil {
		f.mu.Unlock()
		return b
	}
	b := &Batch{Conversation: f.id, Cursor: f.cursor(upto), Upto: upto, Oldest: events[0].At, Events: events, piece: f.registry.cfg.piece}
	if len(events) > 1 {
		f.mu.Unlock()
		b.Events = transcript.Merge(events, f.history)
		f.mu.Lock()
	}
	defer f.mu.Unlock()
	return f.share(k, b)
}

// older makes a batch of what the log has after a seq. It is called with mu held and releases it.
func (f *Feed) older(ctx context.Context, after int64, budget int) (*Batch, error) {
	err, raw := f.err, after >= f.compacted
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if b, err := f.readBatch(ctx, after, budget, raw); b != nil || err != nil {
		return b, err
	}
	f.mu.Lock() // and no slow lock: a snapshot may need that
	return f.snapshot(ctx)
}

// read makes a batch of what the log has after a seq, or none where only a snapshot will do.
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
	// What has happened meanwhile counts, since what was read may have it in it.
	f.compacted, f.trimmed = max(f.compacted, s.Compacted), max(f.trimmed, s.Trimmed)
	foreign, err := f.foreign(after), f.err
	head := min(f.head, s.Head) // of what was published while it was read, s knows nothing
	f.mu.Unlock()
	if err != nil || foreign || missing {
		return nil, err
	}

	b = &Batch{Conversation: f.id, piece: f.registry.cfg.piece}
	if len(s.Events) > 0 {
		b.Oldest = s.Events[0].At
	}
	b.Events, b.Upto = f.pick(s, head, budget)
	f.mu.Lock()
	defer f.mu.Unlock()
	b.Cursor = f.cursor(b.Upto)
	return f.share(k, b), nil
}

// behind reads what the log has after a seq. It reports missing where that is too much, and a piece of it won't do: merged
// operations may begin in the piece and lie behind it. Where nothing was ever merged (raw) any piece will do.
func (f *Feed) readLog(ctx context.Context, after int64, raw bool) (s Stretch, missing bool, err error) {
	cfg := &f.registry.cfg
	limits := []int{cfg.chunk, cfg.maxBehind}
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

// pick chooses how far a batch from the log goes, and makes it: the merge of what lies up to there, and every merged
// operation that began there and went on.
func (f *Feed) pick(s Stretch, head int64, budget int) (events []event.Event, upto int64) {
	n, size := 0, int64(0)
	for n < len(s.Events) && s.Events[n].Seq <= head && (budget <= 0 || size < int64(budget)) {
		size += cost(&s.Events[n])
		n++
	}
	// What was not published yet is left for its time.
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

// share remembers a batch for those who come to the same place, or returns what another was quicker to remember. It is
// called with mu held. What nobody uses any more is not kept alive.
func (f *Feed) share(k key, b *Batch) *Batch {
	if cached := f.cache[k].Value(); cached != nil {
		return cached
	}
	if f.cache == nil {
		f.cache = map[key]weak.Pointer[Batch]{}
	}
	if len(f.cache) < maxCached {
		f.cache[k] = weak.Make(b)
	}
	return b
}

// history tells a part's notes as of a seq.
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
