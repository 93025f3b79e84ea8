package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/internal/compact"
)

// Read implements [journal.Journal]. Decoding happens without the lock, so a large read doesn't delay appends.
func (j *Journal) Read(ctx context.Context, conversation string, after int64, limit int) (journal.Range, error) {
	r, rows, err := j.rows(ctx, conversation, after, limit)
	if err != nil {
		return journal.Range{}, wrap(err, "read", conversation)
	}
	for _, row := range rows {
		// A live chunk may begin below the compacted or trimmed seq. Only its events above that count.
		if r.Events, err = compact.Decode(r.Events, row.Blob, max(after, r.Trimmed, row.FirstSeq-1)); err != nil {
			return journal.Range{}, wrap(err, "read", conversation)
		}
	}
	return r, nil
}

// rows returns the chunks to decode for a read. They can be decoded without the lock, because a stored blob never changes. A
// row's FirstSeq is raised to skip events of a live chunk that are already compacted.
func (j *Journal) rows(ctx context.Context, conversation string, after int64, limit int) (r journal.Range, rows []compact.Row, err error) {
	err = j.use(ctx, j.mu.RLocker(), conversation, func(l *log) error {
		s := l.summary
		r = journal.Range{Epoch: s.Epoch, Head: s.Head, Compacted: s.Compacted, Trimmed: s.Trimmed}
		size := 0
		// add appends a chunk unless it is below the requested seq, or the limit is reached. The limit is checked before the
		// chunk, so a read returns at least one.
		add := func(row compact.Row, n int, floor int64) {
			switch {
			case row.LastSeq <= max(after, s.Trimmed, floor):
			case limit > 0 && size >= limit:
				r.HasMore = true
			default:
				row.FirstSeq = max(row.FirstSeq, floor+1)
				rows = append(rows, row)
				size += n
			}
		}
		for _, row := range l.compacted {
			add(row, len(row.Blob), 0)
		}
		for _, c := range l.commits {
			add(c.Row, c.Size(), s.Compacted)
		}
		return nil
	})
	return r, rows, err
}

// Conversation implements [journal.Journal]. The result is a copy.
func (j *Journal) Conversation(ctx context.Context, id string) (s journal.Summary, err error) {
	err = j.use(ctx, j.mu.RLocker(), id, func(l *log) error {
		s = clone(l.summary)
		return nil
	})
	return s, wrap(err, "conversation", id)
}

// Conversations implements [journal.Journal]. It scans and sorts all summaries, which is fast enough for the sizes that fit in
// memory. Only the summaries of the page are copied.
func (j *Journal) Conversations(ctx context.Context, q journal.Query) ([]journal.Summary, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if err := cmp.Or(ctx.Err(), j.healthy()); err != nil {
		return nil, fmt.Errorf("conversations: %w", err)
	}
	var summaries []journal.Summary
	for _, l := range j.logs {
		if q.Matches(&l.summary) {
			summaries = append(summaries, l.summary)
		}
	}
	slices.SortFunc(summaries, func(a, b journal.Summary) int { return a.Compare(&b) })
	if q.Limit > 0 && len(summaries) > q.Limit {
		summaries = summaries[:q.Limit]
	}
	for i := range summaries {
		summaries[i] = clone(summaries[i])
	}
	return summaries, nil
}

// StoredBytes implements [journal.Journal]. It scans all logs of all tenants.
func (j *Journal) StoredBytes(tenant, owner string) (ofOwner, ofTenant int64) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	for _, l := range j.logs {
		if l.summary.Tenant != tenant {
			continue
		}
		n := l.size()
		ofTenant += n
		if l.summary.Owner == owner {
			ofOwner += n
		}
	}
	return ofOwner, ofTenant
}

// size returns the bytes of the log and the approximate bytes of its summary. It is computed on demand, unlike in the journal
// on disk, which keeps totals.
func (l *log) size() int64 {
	n := len(l.summary.Title)
	for k, v := range l.summary.Metadata {
		n += len(k) + len(v)
	}
	for _, r := range l.compacted {
		n += len(r.Blob)
	}
	for _, c := range l.commits {
		n += len(c.Blob)
	}
	return int64(n) + summarySize
}

// summarySize is the approximate size of a summary without title and metadata, in bytes.
const summarySize = 256

// Compact implements [journal.Journal]. It holds the journal's lock during the merge, unlike the journal on disk. Logs in memory are small
// enough for that.
func (j *Journal) Compact(ctx context.Context, conversation string, upto int64) error {
	return wrap(j.use(ctx, &j.mu, conversation, func(l *log) error { return l.compact(min(upto, l.summary.Head)) }), "compact", conversation)
}

// compact replaces the live chunks up to a seq with compacted ones and extends the traces of the turns. On an error the log is
// unchanged. A trace is extended rather than replaced, because a turn may be compacted in several steps.
func (l *log) compact(upto int64) error {
	if upto <= l.summary.Compacted {
		return nil
	}
	recent, commits, err := decode(l.commits, max(l.summary.Compacted, l.summary.Trimmed), upto)
	if err != nil {
		return err
	}
	r, err := compact.Merge(recent, commits, l.before)
	if err != nil {
		return err
	}
	rows, err := compact.Rows(r.Events)
	if err != nil {
		return err
	}
	if r.ReplaceAll {
		l.compacted = nil
	}
	l.compacted = append(l.compacted, rows...)
	l.summary.Compacted = upto
	l.drop(upto)
	for _, t := range r.Traces {
		if old := l.traces[t.Turn]; old != nil {
			t.Commits, t.Replacements = append(old.Commits, t.Commits...), append(old.Replacements, t.Replacements...)
		}
		l.traces[t.Turn] = &trace{t, time.Now()}
	}
	return nil
}

// decode returns the events of live chunks in (after, upto], and the commits that wrote them. A chunk may span the boundaries,
// so its events outside are removed.
func decode(chunks []commit, after, upto int64) (events []event.Event, commits []compact.Commit, err error) {
	for _, c := range chunks {
		if c.FirstSeq > upto {
			break
		}
		if events, err = compact.Decode(events, c.Blob, after); err != nil {
			return nil, nil, err
		}
		commits = append(commits, compact.Commit{At: c.at, Last: c.LastSeq})
	}
	return compact.UpTo(events, upto), commits, nil
}

// before returns the compacted events. Merge calls it only if recent events change compacted ones.
func (l *log) before() (events []event.Event, err error) {
	for _, row := range l.compacted {
		if events, err = compact.Decode(events, row.Blob, l.summary.Trimmed); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// drop removes the live chunks up to a seq. A chunk that ends above the seq stays as a whole.
func (l *log) drop(upto int64) {
	l.commits = slices.DeleteFunc(l.commits, func(c commit) bool { return c.LastSeq <= upto })
}

// Trace implements [journal.Journal]. The stored trace covers the compacted events of the turn. Later events are added from the
// live chunks, so the result is the same before and after a compaction.
func (j *Journal) Trace(ctx context.Context, conversation, turn string) (journal.Trace, error) {
	result := journal.Trace{Turn: turn}
	err := j.use(ctx, j.mu.RLocker(), conversation, func(l *log) error {
		if t := l.traces[turn]; t != nil && !t.expired(time.Now()) {
			result.Commits, result.Replacements = slices.Clone(t.Commits), slices.Clone(t.Replacements)
		}
		// The events that aren't compacted yet complete the stored trace.
		recent, commits, err := decode(l.commits, max(l.summary.Compacted, l.summary.Trimmed), l.summary.Head)
		if err == nil {
			err = compact.Trace(&result, recent, commits, l.before)
		}
		if err == nil && len(result.Commits) == 0 {
			err = journal.ErrNotFound
		}
		return err
	})
	if err != nil {
		return journal.Trace{}, wrap(err, "trace", turn)
	}
	return result, nil
}

// Trim implements [journal.Journal]. Memory is freed by whole chunks. The traces of trimmed turns stay until they expire.
func (j *Journal) Trim(ctx context.Context, conversation string, upto int64) error {
	return wrap(j.use(ctx, &j.mu, conversation, func(l *log) error {
		// A chunk that is only partly trimmed stays; reads skip its first events.
		l.summary.Trimmed = max(l.summary.Trimmed, min(upto, l.summary.Head))
		l.compacted = slices.DeleteFunc(l.compacted, func(r compact.Row) bool { return r.LastSeq <= l.summary.Trimmed })
		l.drop(l.summary.Trimmed)
		return nil
	}), "trim", conversation)
}

// Delete implements [journal.Journal]. It first blanks the records about the conversation in the gateway's own logs. If that fails, the
// conversation still exists, and the caller can retry. The id stays in deleted as the tombstone.
func (j *Journal) Delete(ctx context.Context, conversation string) error {
	err := j.use(ctx, &j.mu, conversation, func(*log) error {
		for id, l := range j.logs {
			if !journal.IsSystem(id) || id == conversation {
				continue
			}
			if err := l.blank(compact.About(conversation)); err != nil {
				return fmt.Errorf("blank records in %s: %w", id, err)
			}
		}
		delete(j.logs, conversation)
		j.deleted[conversation] = true
		maps.DeleteFunc(j.keys, func(_ string, v value) bool { return v.conversation == conversation })
		return nil
	})
	if errors.Is(err, journal.ErrDeleted) { // a repeated delete succeeds
		return nil
	}
	return wrap(err, "delete", conversation)
}

// Blank implements [journal.Journal]. It calls match while it holds the journal's lock, so match must not call the journal.
func (j *Journal) Blank(ctx context.Context, conversation string, match func(*event.Event) bool) error {
	err := j.use(ctx, &j.mu, conversation, func(l *log) error { return l.blank(compact.Selection{Match: match}) })
	return wrap(err, "blank records in", conversation)
}

// blank removes the data of the selected records. It replaces blobs, because readers may be decoding the old ones.
func (l *log) blank(of compact.Selection) error {
	blankRow := func(r *compact.Row) error {
		b, err := compact.Blank(r.Blob, of)
		if b != nil {
			r.Blob = b
		}
		return err
	}
	for i := range l.compacted {
		if err := blankRow(&l.compacted[i]); err != nil {
			return err
		}
	}
	for i := range l.commits {
		if err := blankRow(&l.commits[i].Row); err != nil {
			return err
		}
	}
	return nil
}
