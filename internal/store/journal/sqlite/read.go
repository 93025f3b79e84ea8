// Reading events: the compacted rows first, then the live ones, from one snapshot of the file.

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/internal/compact"
)

// Read implements [journal.Journal]. Only the gateway's own logs are read without their damaged chunks: the loop then skips a
// stretch that is damaged completely, because an empty result with HasMore would make a reader ask again forever.
func (j *Journal) Read(ctx context.Context, conversation string, after int64, limit int) (journal.Range, error) {
	for {
		r, past, err := j.readRows(ctx, conversation, after, limit)
		if err != nil {
			return journal.Range{}, fmt.Errorf("read %s: %w", conversation, j.quarantine(err))
		}
		if past == 0 || !r.HasMore || len(r.Events) > 0 {
			return r, nil
		}
		after = past // the whole stretch is damaged
	}
}

// readRows reads a stretch of a log. If damaged chunks at its end were left out, past is their last seq. A damaged chunk
// is only left out in the gateway's own logs; in others it is an error.
func (j *Journal) readRows(ctx context.Context, conversation string, after int64, limit int) (_ journal.Range, past int64, err error) {
	if err := j.index.refuse(conversation); err != nil {
		return journal.Range{}, 0, err
	}
	r, rows, l, err := j.rows(ctx, conversation, after, limit)
	if err != nil {
		return journal.Range{}, 0, err
	}
	for _, row := range rows { // outside the transaction, to keep that short
		if r.Events, err = l.decode(r.Events, row.Blob, row.sealed, row.place, max(after, r.Trimmed, row.FirstSeq-1)); err != nil {
			if !system(conversation) {
				return journal.Range{}, 0, err
			}
			_ = j.quarantine(err)
			past = row.LastSeq
		}
	}
	return r, past, nil
}

// storedRow is a row of a log. Live chunks from memory aren't sealed. place is needed to decipher it.
type storedRow struct {
	compact.Row
	place  place
	sealed bool
}

// errEnough ends a query early.
var errEnough = errors.New("enough")

// rows returns the rows to decode for a read, and the log as of the same snapshot. The rows are decoded outside the
// transaction. Compacted rows come first and then live ones; the limit applies to both together.
func (j *Journal) rows(ctx context.Context, conversation string, after int64, limit int) (r journal.Range, rows []storedRow, l *log, err error) {
	term := j.index.openTerm()
	v, ok := j.index.view(conversation, after) // before the snapshot: see the package's invariants
	err = j.readTx(ctx, func(c *conn) error {
		var err error
		if l, err = existing(c, conversation); err != nil {
			return err
		}
		r = journal.Range{Epoch: l.epoch, Head: l.head, Compacted: l.compacted, Trimmed: l.trimmed}
		if ok {
			r.Head = max(r.Head, v.head)
		}
		// The last term must also apply to the next event, which belongs to the current opening.
		r.Terms = withTerm(l.terms, r.Head+1, term)
		from, size := max(after, l.trimmed), 0
		take := func(row compact.Row, at place, sealed bool, n int) bool {
			if limit > 0 && size >= limit {
				r.HasMore = true
				return false
			}
			rows = append(rows, storedRow{row, at, sealed})
			size += n
			return true
		}
		err = c.forEach("SELECT first, last, events FROM settled WHERE conversation = ? AND last > ? ORDER BY last", func(row row) error {
			blob, at := row.blob(2), place{kind: inCompacted, firstSeq: row.int(0), lastSeq: row.int(1)}
			if !take(compact.Row{FirstSeq: at.firstSeq, LastSeq: at.lastSeq, Blob: blob}, at, true, len(blob)) {
				return errEnough
			}
			return nil
		}, l.n, from)
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		chunks := v.chunks
		for len(chunks) > 0 && chunks[0].lastSeq <= max(from, l.compacted) {
			chunks = chunks[1:]
		}
		// If the limit ended the compacted part, a live row would leave a gap after it.
		if r.HasMore || len(chunks) == 0 {
			return nil
		}
		err = liveRows(c, l.n, chunks, func(ch cachedChunk, blob []byte, sealed bool) error {
			row := compact.Row{FirstSeq: max(ch.firstSeq, l.compacted+1), LastSeq: ch.lastSeq, Blob: blob}
			if !take(row, ch.place(), sealed, row.Size()) {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
	return r, rows, l, err
}

// liveBatch is the number of live rows that one query fetches.
const liveBatch = 256

// liveRows calls f for the chunks of a conversation, in order, with the text from memory or the sealed text from the file. If a
// row differs from the index, the error wraps [journal.ErrCorrupt]. It fetches at most liveBatch rows per query, so a reader
// that stops early doesn't load a long log.
func liveRows(c *conn, n int64, chunks []cachedChunk, f func(ch cachedChunk, blob []byte, sealed bool) error) error {
	for len(chunks) > 0 {
		if text := chunks[0].text; text != nil {
			if err := f(chunks[0], text, false); err != nil {
				return err
			}
			chunks = chunks[1:]
			continue
		}
		i := 1
		for i < min(len(chunks), liveBatch) && chunks[i].text == nil {
			i++
		}
		if err := fileRows(c, n, chunks[:i], f); err != nil {
			return err
		}
		chunks = chunks[i:]
	}
	return nil
}

// fileRows calls f for adjacent chunks that are only in the file. It checks each row against the index, because a wrong row
// would put the text of one conversation into another.
func fileRows(c *conn, n int64, chunks []cachedChunk, f func(ch cachedChunk, blob []byte, sealed bool) error) error {
	// One parameter with a JSON list allows a single prepared statement for any number of rows.
	list := []byte{'['}
	for i, ch := range chunks {
		if i > 0 {
			list = append(list, ',')
		}
		list = strconv.AppendInt(list, ch.row, 10)
	}
	list = append(list, ']')
	i := 0
	err := c.forEach("SELECT row, conversation, first, last, at, events FROM live WHERE row IN (SELECT value FROM json_each(?)) ORDER BY row", func(r row) error {
		if i == len(chunks) || r.int(0) != chunks[i].row || r.int(1) != n || r.int(2) != chunks[i].firstSeq || r.int(3) != chunks[i].lastSeq {
			return fmt.Errorf("row %d is of conversation %d from %d to %d: %w", r.int(0), r.int(1), r.int(2), r.int(3), journal.ErrCorrupt)
		}
		ch := chunks[i]
		ch.at = r.int(4)
		i++
		return f(ch, r.blob(5), true)
	}, string(list))
	if err == nil && i < len(chunks) {
		err = fmt.Errorf("row %d is missing: %w", chunks[i].row, journal.ErrCorrupt)
	}
	return err
}
