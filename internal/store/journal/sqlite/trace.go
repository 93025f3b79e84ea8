// Traces: when each event of a turn arrived and was committed, kept for a while after compaction.

package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/internal/compact"
)

// Trace implements [journal.Journal]. It repeats if the log is compacted while it is read.
func (j *Journal) Trace(ctx context.Context, conversation, turn string) (journal.Trace, error) {
	for {
		t, err := j.trace(ctx, conversation, turn)
		if err == nil {
			return t, nil
		} else if !errors.Is(err, errStale) {
			return journal.Trace{}, fmt.Errorf("trace %s: %w", turn, err)
		}
	}
}

// trace reads the live part first. Events that are compacted in between are then in the stored traces and aren't counted twice.
// The order matters: reading the stored traces first could miss events that move in between.
func (j *Journal) trace(ctx context.Context, conversation, turn string) (journal.Trace, error) {
	t := journal.Trace{Turn: turn}
	s := compaction{upto: math.MaxInt64}
	l, events, commits, err := j.readLive(ctx, conversation, &s)
	if err != nil {
		return t, err
	}
	since := time.Now().Add(-j.opt.TraceRetention).UnixMilli()
	err = j.readTx(ctx, func(c *conn) error {
		return c.forEach("SELECT trace, first FROM traces WHERE conversation = ? AND turn = ? AND at > ? ORDER BY first", func(r row) error {
			b, err := l.open(r.blob(0), place{kind: inTrace, firstSeq: r.int(1), name: turn})
			if err != nil {
				return err
			}
			return decodeTrace(&t, b)
		}, l.n, turn, since)
	})
	if err == nil && len(events) > 0 {
		err = compact.Trace(&t, events, commits, func() ([]event.Event, error) { return j.readCompacted(ctx, conversation, l) })
	}
	if err == nil && len(t.Commits) == 0 {
		err = journal.ErrNotFound
	}
	return t, err
}

// absent returns ErrDeleted if the conversation has a tombstone, else ErrNotFound. It distinguishes the two, because an id that
// was deleted can never exist again.
func absent(c *conn, id string) error {
	r, err := c.queryRow("SELECT 1 FROM deleted WHERE id = ?", id)
	switch {
	case err != nil:
		return err
	case r != nil:
		return journal.ErrDeleted
	}
	return journal.ErrNotFound
}

// traceVersion is the first byte of each encoded trace.
const traceVersion = 1

// traceKey is the part of a trace entry that most entries repeat.
type traceKey struct {
	kind                 event.Type
	message, part, field string
}

// appendTrace encodes a trace. Each entry has the number of its kind (spelled out at its first use) and the differences of its
// times, seq and end to the entry before. An append of a streaming answer takes about six bytes.
//
// The encoding is a file format: traces of older versions are decoded until they expire. After the version, it has the number of entries, the
// entries, the number of replacements, and the replacements with their texts. Ends are relative to the last entry of the same kind, because
// parts that grow at the same time alternate.
func appendTrace(b []byte, t *journal.Trace) []byte {
	b = append(b, traceVersion)
	b = binary.AppendUvarint(b, uint64(len(t.Commits)))
	keys := map[traceKey]int{}
	var ends []int64
	var arrival, commit, seq int64
	for _, c := range t.Commits {
		k := traceKey{c.Type, c.Message, c.Part, c.Field}
		i, exists := keys[k]
		if !exists {
			i = len(keys)
			keys[k] = i
			ends = append(ends, 0)
		}
		b = binary.AppendUvarint(b, uint64(i))
		if !exists {
			for _, s := range []string{string(k.kind), k.message, k.part, k.field} {
				b = appendText(b, s)
			}
		}
		b = binary.AppendVarint(b, c.Arrival-arrival)
		b = binary.AppendVarint(b, c.Commit-commit)
		b = binary.AppendVarint(b, c.Seq-seq)
		b = binary.AppendVarint(b, c.End-ends[i])
		arrival, commit, seq, ends[i] = c.Arrival, c.Commit, c.Seq, c.End
	}
	b = binary.AppendUvarint(b, uint64(len(t.Replacements)))
	for _, r := range t.Replacements {
		b = binary.AppendVarint(b, r.Seq)
		for _, s := range []string{r.Message, r.Part, r.Field, r.Text} {
			b = appendText(b, s)
		}
	}
	return b
}

// appendText appends the length of s and s.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decodeTrace adds the entries that appendTrace encoded to t. Its error wraps [journal.ErrCorrupt]. The text is authenticated,
// so an error means a fault of the encoder or another version, not a changed byte.
func decodeTrace(t *journal.Trace, b []byte) error {
	if len(b) == 0 || b[0] != traceVersion {
		return fmt.Errorf("trace: unknown encoding: %w", journal.ErrCorrupt)
	}
	d := traceReader{b: b[1:]}
	var keys []traceKey
	var ends []int64
	var arrival, commit, seq int64
	for range d.count() {
		i := d.uvarint()
		// The number after the last known one introduces a new kind, whose fields follow.
		if i == uint64(len(keys)) {
			keys = append(keys, traceKey{event.Type(d.text()), d.text(), d.text(), d.text()})
			ends = append(ends, 0)
		} else if i > uint64(len(keys)) {
			d.bad = true
		}
		if d.bad {
			break
		}
		arrival += d.varint()
		commit += d.varint()
		seq += d.varint()
		ends[i] += d.varint()
		k := keys[i]
		t.Commits = append(t.Commits, journal.TraceCommit{
			Arrival: arrival, Commit: commit, Seq: seq, Type: k.kind, Message: k.message, Part: k.part, Field: k.field, End: ends[i],
		})
	}
	for range d.count() {
		if d.bad {
			break
		}
		t.Replacements = append(t.Replacements, journal.TraceReplace{Seq: d.varint(), Message: d.text(), Part: d.text(), Field: d.text(), Text: d.text()})
	}
	if d.bad || len(d.b) != 0 {
		return fmt.Errorf("trace: %w", errors.Join(journal.ErrCorrupt, errors.New("truncated or too long")))
	}
	return nil
}

// traceReader reads values from the front of b. After a malformed value it returns zeros and stays bad.
type traceReader struct {
	b   []byte
	bad bool
}

func (d *traceReader) uvarint() uint64 { return readNumber(d, binary.Uvarint) }

func (d *traceReader) varint() int64 { return readNumber(d, binary.Varint) }

// readNumber reads a number with a function of encoding/binary, which returns the number's length, or at most 0 if it is malformed.
func readNumber[T int64 | uint64](d *traceReader, read func([]byte) (T, int)) T {
	v, n := read(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads the number of entries that follow. Each takes at least a byte, so a number above the remaining length is malformed.
func (d *traceReader) count() uint64 {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.bad = true
		return 0
	}
	return n
}

// text reads a string that appendText wrote.
func (d *traceReader) text() string {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}
