// Compaction and trimming: the merge runs outside the writer, and its result is stored in one commit.

package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal/internal/compact"
)

// errStale says that a log changed since its compaction was prepared. The caller repeats it.
var errStale = errors.New("stale")

// Compact implements [journal.Journal]. It merges events on a reader's connection, and the writer only stores the result.
// Repeating is cheap, because only the gateway compacts, once for each turn.
func (j *Journal) Compact(ctx context.Context, conversation string, upto int64) error {
	for {
		if err := j.compact(ctx, conversation, upto); err == nil {
			return nil
		} else if !errors.Is(err, errStale) {
			return fmt.Errorf("compact %s: %w", conversation, j.quarantine(err))
		}
	}
}

// compaction is the prepared result for a log, and the state that it was prepared from. storeCompaction compares the state with
// the current one.
type compaction struct {
	from     view // state of the log before
	inMemory bool // whether the log was in memory
	// Number of the conversation in the file. A conversation that was deleted and created again has another one.
	n    int64
	upto int64
	// The result replaces the whole compacted part instead of following it.
	rewriteAll bool
	rows       []compact.Row
	traces     []encodedTrace
	size       int
}

// encodedTrace is a sealed trace to store with a compaction.
type encodedTrace struct {
	turn     string
	firstSeq int64
	blob     []byte
}

// compact makes one attempt. Everything expensive (reading, merging, sealing) happens before the writer is involved. The writer
// only checks that the log is unchanged and stores the rows.
func (j *Journal) compact(ctx context.Context, conversation string, upto int64) error {
	s := compaction{upto: upto}
	l, events, commits, err := j.readLive(ctx, conversation, &s)
	if err != nil || s.upto == 0 { // 0: all events are compacted
		return err
	}
	r, err := compact.Merge(events, commits, func() ([]event.Event, error) { return j.readCompacted(ctx, conversation, l) })
	if err != nil {
		return err
	}
	// From here on nothing reads the log. storeCompaction notices if it changes before the writer gets to it.
	if s.rows, err = compact.Rows(r.Events); err != nil {
		return err
	}
	for i := range s.rows {
		s.rows[i].Blob = l.secret.seal(nil, place{kind: inCompacted, firstSeq: s.rows[i].FirstSeq, lastSeq: s.rows[i].LastSeq}, s.rows[i].Blob)
		s.size += len(s.rows[i].Blob)
	}
	for i := range r.Traces {
		t := &r.Traces[i]
		firstSeq := t.Commits[0].Seq
		s.traces = append(s.traces, encodedTrace{t.Turn, firstSeq, l.secret.seal(nil, place{kind: inTrace, firstSeq: firstSeq, name: t.Turn}, appendTrace(nil, t))})
		s.size += len(s.traces[i].blob)
	}
	s.rewriteAll = r.ReplaceAll
	return j.do(ctx, s.size, func(t *tx) error { return t.storeCompaction(conversation, &s) })
}

// readLive reads the events that aren't compacted yet, up to a seq, and their commits. It sets the fields of s that describe
// the log. Decoding happens outside the read transaction, which must be short: an open read transaction prevents SQLite from resetting the
// write-ahead log.
//
// The state of the log comes from the index, or from the file if the log isn't in memory. The index is read before the transaction begins, so
// the two may differ. Then the error is errStale, and the caller starts again.
func (j *Journal) readLive(ctx context.Context, conversation string, s *compaction) (*log, []event.Event, []compact.Commit, error) {
	type part struct {
		cachedChunk
		blob   []byte
		sealed bool
	}
	if err := j.index.refuse(conversation); err != nil {
		return nil, nil, nil, err
	}
	s.from, s.inMemory = j.index.view(conversation, 0)
	var parts []part
	var l *log
	err := j.readTx(ctx, func(c *conn) (err error) {
		if l, err = existing(c, conversation); err != nil {
			return err
		}
		// The index and the file were read at different times. They must describe the same state of the log.
		if s.inMemory && (l.n != s.from.n || l.compacted != s.from.state.compacted || l.trimmed != s.from.state.trimmed) {
			return errStale
		}
		if !s.inMemory {
			s.from.state = l.state
		}
		s.n, s.upto = l.n, min(s.upto, s.from.state.head)
		if s.upto <= l.compacted {
			s.upto = 0
			return nil
		}
		chunks := s.from.chunks
		// The chunk that contains upto is read whole, and its later events are removed after decoding.
		for i, ch := range chunks {
			if ch.firstSeq > s.upto {
				chunks = chunks[:i]
				break
			}
		}
		return liveRows(c, l.n, chunks, func(ch cachedChunk, blob []byte, sealed bool) error {
			parts = append(parts, part{ch, blob, sealed})
			return nil
		})
	})
	if err != nil || s.upto == 0 {
		return l, nil, nil, err
	}
	var commits []compact.Commit
	var events []event.Event
	if n := len(parts); n > 0 {
		events = make([]event.Event, 0, parts[n-1].lastSeq-max(l.floor(), parts[0].firstSeq-1))
	}
	for _, p := range parts {
		if events, err = l.decode(events, p.blob, p.sealed, p.place(), l.floor()); err != nil {
			return nil, nil, nil, err
		}
		commits = append(commits, compact.Commit{At: p.at, Last: p.lastSeq})
	}
	return l, compact.UpTo(events, s.upto), commits, nil
}

// readCompacted reads the compacted part of a log. It returns errStale if the log no longer has the given state.
func (j *Journal) readCompacted(ctx context.Context, conversation string, l *log) (events []event.Event, err error) {
	err = j.readTx(ctx, func(c *conn) error {
		current, err := load(c, "id", conversation)
		if err != nil {
			return err
		}
		if current == nil || current.n != l.n || current.compacted != l.compacted || current.trimmed != l.trimmed {
			return errStale
		}
		return c.forEach("SELECT events, first, last FROM settled WHERE conversation = ? AND last > ? ORDER BY last", func(r row) (err error) {
			events, err = l.decode(events, r.blob(0), true, place{kind: inCompacted, firstSeq: r.int(1), lastSeq: r.int(2)}, l.trimmed)
			return err
		}, l.n, l.trimmed)
	})
	return events, err
}

// storeCompaction stores a compaction in the writer's transaction, unless the log has changed since it was prepared. The live
// rows become garbage with the same commit; they are deleted later.
//
// A change is detected by the conversation's number in the file, the compacted and the trimmed seq, and the number of rewrites by Blank.
// Appends don't matter, because a compaction only covers events up to the head that it has read.
func (t *tx) storeCompaction(conversation string, s *compaction) error {
	l, p, err := t.find(conversation)
	if err != nil {
		return err
	}
	if l.n != s.n || (s.inMemory && l != s.from.log) || p.compacted != s.from.state.compacted || p.trimmed != s.from.state.trimmed || p.rewrites != s.from.state.rewrites {
		return errStale
	}
	// The new rows contain what the old ones had, so both may not exist at the same time.
	if s.rewriteAll {
		_ = t.exec("DELETE FROM settled WHERE conversation = ?", l.n)
		p.size = 0
	}
	for i, row := range s.rows {
		p.size += int64(len(row.Blob))
		_ = t.exec("INSERT INTO settled (conversation, last, first, events) VALUES (?, ?, ?, ?)", l.n, row.LastSeq, row.FirstSeq, row.Blob)
		if i == 0 {
			t.j.crash("mid-settle")
		}
	}
	for _, trace := range s.traces {
		_ = t.exec("INSERT OR REPLACE INTO traces (conversation, turn, first, at, trace) VALUES (?, ?, ?, ?, ?)", l.n, trace.turn, trace.firstSeq, t.at, trace.blob)
	}
	p.compacted = s.upto
	// From this commit on, readers ignore the live rows up to this seq.
	return t.exec("UPDATE conversations SET settled = ?, size = ? WHERE n = ?", s.upto, p.size, l.n)
}

// Trim implements [journal.Journal]. Its first commit makes readers ignore the trimmed rows. Then the compacted ones are deleted in
// slices. If ctx ends in between, the rows that remain are invisible, and the next Trim deletes them.
func (j *Journal) Trim(ctx context.Context, conversation string, upto int64) error {
	var n, floor int64
	err := j.do(ctx, 0, func(t *tx) error {
		l, p, err := t.find(conversation)
		if err != nil {
			return err
		}
		// A trim never goes back, and never above the head.
		n, floor = l.n, max(p.trimmed, min(upto, p.head))
		if floor == p.trimmed {
			return nil
		}
		p.trimmed = floor
		if p.size, err = t.number("SELECT ifnull(sum(length(events)), 0) FROM settled WHERE conversation = ? AND last > ?", n, floor); err != nil {
			t.err = err
			return err
		}
		return t.exec("UPDATE conversations SET trimmed = ?, size = ? WHERE n = ?", floor, p.size, n)
	})
	if err == nil {
		err = j.slices(ctx, "DELETE FROM settled WHERE (conversation, last) IN (SELECT conversation, last FROM settled WHERE conversation = ? AND last <= ? ORDER BY last LIMIT 32)", n, floor)
	}
	if err != nil {
		return fmt.Errorf("trim %s: %w", conversation, err)
	}
	return nil
}

// slices repeats a statement that changes a limited number of rows until it changes none. Each repetition shares a transaction
// with the queued requests. So a large trim or delete takes several commits, between which appends proceed.
func (j *Journal) slices(ctx context.Context, query string, args ...any) error {
	for {
		var changed int64
		err := j.do(ctx, maxOps/2, func(t *tx) (err error) {
			changed, err = t.change(query, args...)
			return err
		})
		if err != nil || changed == 0 {
			return err
		}
	}
}
