// Removing the data of single events from the gateway's own logs, when a conversation or a person is deleted.

package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/internal/compact"
)

// Blank implements [journal.Journal]. It holds the maintenance lock, because a running backup would keep the old pages in the
// write-ahead log.
func (j *Journal) Blank(ctx context.Context, conversation string, match func(*event.Event) bool) (err error) {
	if err = j.lockLong(ctx); err == nil { // a running backup pins the write-ahead log
		defer j.unlockLong()
		var n int64
		if err = j.readTx(ctx, func(c *conn) error {
			l, err := existing(c, conversation)
			if err != nil {
				return err
			}
			n = l.n
			return nil
		}); err == nil {
			err = j.blankAll(ctx, conversation, n, compact.Selection{Match: match})
		}
		if err == nil {
			err = j.checkpointer.truncate(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("blank records in %s: %w", conversation, j.quarantine(err))
	}
	return nil
}

// blank removes the data of a deleted conversation from the gateway's own logs.
func (j *Journal) blank(ctx context.Context, conversation string) error {
	ids := map[string]int64{} // id to number
	err := j.readTx(ctx, func(c *conn) error {
		return c.forEach("SELECT id, n FROM conversations WHERE id >= ? AND id < ?", func(r row) error {
			if system(r.text(0)) {
				ids[r.text(0)] = r.int(1)
			}
			return nil
		}, journal.SystemPrefix, after(journal.SystemPrefix))
	})
	if err != nil {
		return err
	}
	// The ids were read before, so a log may have been deleted since. A deleted log has no records left.
	for id, n := range ids {
		if err := j.blankAll(ctx, id, n, compact.About(conversation)); err != nil && !errors.Is(err, journal.ErrDeleted) {
			return fmt.Errorf("blank records in %s: %w", id, err)
		}
	}
	return nil
}

// blankAll blanks the selected records of a log, and those in garbage rows. It repeats until a pass finds nothing, because rows
// may be compacted from one table to the other during a pass.
func (j *Journal) blankAll(ctx context.Context, id string, n int64, of compact.Selection) error {
	// Compacted events are also in their live rows until these are deleted.
	if err := j.purgeLive(ctx, n); err != nil {
		return err
	}
	for {
		if repeat, err := j.blankLog(ctx, id, of); err != nil || !repeat {
			return err
		}
	}
}

// blankLog blanks the matching records of a log once. Compaction may move rows while it runs, so the caller repeats it until it
// finds nothing in a log that didn't change.
func (j *Journal) blankLog(ctx context.Context, id string, of compact.Selection) (repeat bool, err error) {
	v, inMemory := j.index.view(id, 0)
	var rows []blankRow
	err = j.readTx(ctx, func(c *conn) error {
		l, err := existing(c, id)
		if err != nil {
			return err
		}
		repeat = inMemory && l.floor() != v.floor()
		err = c.forEach("SELECT last, events, first FROM settled WHERE conversation = ?", func(r row) error {
			matches, err := holds(l, true, r.blob(1), place{kind: inCompacted, firstSeq: r.int(2), lastSeq: r.int(0)}, of)
			if matches {
				rows = append(rows, blankRow{"settled", "last", r.int(0)})
			}
			return err
		}, l.n)
		if err != nil || repeat {
			return err
		}
		return liveRows(c, l.n, v.chunks, func(ch cachedChunk, blob []byte, sealed bool) error {
			matches, err := holds(l, sealed, blob, ch.place(), of)
			if matches {
				rows = append(rows, blankRow{"live", "row", ch.row})
			}
			return err
		})
	})
	if err != nil {
		return false, err
	}
	for _, row := range rows {
		if err := j.rewrite(ctx, id, of, row); err != nil {
			return false, err
		}
	}
	return repeat || len(rows) > 0, nil
}

// blankRow identifies a row to blank: its table, and its key within the conversation.
type blankRow struct {
	table, column string
	key           int64
}

// rewrite blanks one row of a table in place, if the row still exists. A result of the same length overwrites the old text in
// its pages.
func (j *Journal) rewrite(ctx context.Context, id string, of compact.Selection, row blankRow) error {
	condition := " WHERE conversation = ? AND " + row.column + " = ?"
	return j.do(ctx, compact.ChunkSize, func(t *tx) error {
		l, p, err := t.find(id)
		if err != nil {
			return err
		}
		p.rewrites++ // a compaction prepared from the old row is stale
		kind := byte(inCompacted)
		if row.table == "live" {
			kind = inLive
			p.changed = append(p.changed, row.key)
		}
		// The row may have been compacted or deleted since it was found. Then the next pass finds its events, if they still exist.
		r, err := t.queryRow("SELECT events, first, last FROM "+row.table+condition, l.n, row.key)
		if err != nil || r == nil {
			t.err = err
			return err
		}
		at := place{kind: kind, firstSeq: r.int(1), lastSeq: r.int(2)}
		var b []byte // a row that can't be read can't be searched, so all of its content is removed
		if text, err := l.open(r.blob(0), at); err == nil {
			if b, err = compact.Blank(text, of); err != nil || b == nil {
				return err
			}
		} else if !system(id) {
			return err
		}
		return t.exec("UPDATE "+row.table+" SET events = ?"+condition, t.seal(l, at, b), l.n, row.key)
	})
}

// holds reports whether a chunk has records to blank. A row that can't be read counts as one with records, in the gateway's own
// logs.
func holds(l *log, sealed bool, blob []byte, at place, of compact.Selection) (_ bool, err error) {
	if sealed {
		if blob, err = l.open(blob, at); err != nil {
			if system(l.id) {
				return true, nil // it can't be searched; see rewrite
			}
			return false, err
		}
	}
	b, err := compact.Blank(blob, of)
	return b != nil, err
}
