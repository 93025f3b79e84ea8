// The ring of files with the raw bytes of recent turns. The oldest file is deleted when the limit is reached.

package capture

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

const (
	// share is the number of segments into which the total size and the retention are divided. One segment is deleted at a
	// time.
	share            = 32
	smallest, widest = 64 << 10, 8 << 20
	// suspension is the time without writes after a disk error, so that a full disk isn't retried for every record.
	suspension = time.Minute
)

// turnIndex is the index entry of a turn that is open or has records in a segment.
type turnIndex struct {
	Meta
	number    uint64
	segments  map[*segment]bool // the segments with its records
	isOpen    bool              // Close wasn't called yet
	forgotten bool
}

// segment is one file of the ring.
type segment struct {
	number          int
	path            string
	size            int64
	firstAt, lastAt int64                 // times of the first and last record, epoch milliseconds; 0 if the segment is empty
	turns           map[uint64]*turnIndex // the turns with records here, by number
}

// compareSegments orders segments by age, oldest first.
func compareSegments(a, b *segment) int { return cmp.Compare(a.number, b.number) }

// ring holds the segments, oldest first, and the index of the turns in them. Only the log's goroutine may use it.
type ring struct {
	dir            string
	retention      int64 // in milliseconds
	totalLimit     int64 // of all segments together, bytes
	segmentLimit   int64 // of one segment, bytes
	log            *slog.Logger
	segments       []*segment
	total          int64
	handle         *os.File // the last segment, open for appending, or nil
	buf            []byte   // records for handle that aren't written yet
	lastNumber     int
	suspendedUntil int64 // records before this time are dropped, epoch milliseconds
	turns          map[string][]*turnIndex
	conversations  map[string]map[*turnIndex]bool
}

// newRing returns an empty ring. Segments are between 64 KiB and 8 MiB.
func newRing(o Options) ring {
	return ring{
		dir: o.Dir, retention: o.Retention.Milliseconds(), totalLimit: o.Size, segmentLimit: min(max(o.Size/share, smallest), widest), log: o.Log,
		turns: map[string][]*turnIndex{}, conversations: map[string]map[*turnIndex]bool{},
	}
}

// suffix ends the file names of segments. The rest of the name is the segment's number.
const suffix = ".raw"

// load indexes the segments that a previous process left. It deletes segments that it can't read, and ignores files with other
// names.
func (f *ring) load() {
	names, err := filepath.Glob(filepath.Join(f.dir, "*"+suffix))
	if err != nil {
		f.log.Error("capture: list segments", "error", err)
		return
	}
	for _, path := range names {
		base := filepath.Base(path)
		n, err := strconv.Atoi(base[:len(base)-len(suffix)])
		if err != nil {
			continue // not a segment
		}
		f.lastNumber = max(f.lastNumber, n)
		seg := &segment{number: n, path: path, turns: map[uint64]*turnIndex{}}
		if err := f.scan(seg); err != nil {
			f.log.Error("capture: segment can't be read and is deleted", "path", path, "error", err)
			f.remove(path)
			continue
		}
		f.segments = append(f.segments, seg)
		f.total += seg.size
	}
	slices.SortFunc(f.segments, compareSegments)
	f.sweep(time.Now().UnixMilli())
}

// scan indexes the turns in a segment. It truncates the file after the last complete record, which removes the partial write of
// a crash. Only begin records are needed for the index: every segment starts the records of a turn with one.
func (f *ring) scan(seg *segment) error {
	b, err := os.ReadFile(seg.path)
	if err != nil {
		return err
	}
	for at := 0; ; {
		h, payload, size, ok := next(b[at:])
		if !ok {
			if seg.size = int64(at); at < len(b) {
				return os.Truncate(seg.path, seg.size)
			}
			return nil
		}
		at += size
		seg.firstAt = cmp.Or(seg.firstAt, h.at)
		seg.lastAt = h.at
		if h.kind == recordBegin && h.intact(payload) {
			if k := f.find(h.turn, payload); k != nil {
				seg.turns[h.turn], k.segments[seg] = k, true
			}
		}
	}
}

// find returns the index entry of turn number n, whose Meta a begin record contains. It creates the entry unless an earlier
// segment already had records of the turn. It returns nil if the Meta can't be decoded. A file with a damaged begin record
// loses the turn's records in it, but no others.
func (f *ring) find(n uint64, meta []byte) *turnIndex {
	var m Meta
	if json.Unmarshal(meta, &m) != nil {
		return nil
	}
	if i := slices.IndexFunc(f.turns[m.Turn], func(k *turnIndex) bool { return k.number == n }); i >= 0 {
		return f.turns[m.Turn][i]
	}
	k := &turnIndex{Meta: m, number: n}
	f.addTurn(k)
	return k
}

// addTurn adds a turn to the index.
func (f *ring) addTurn(k *turnIndex) {
	k.segments = map[*segment]bool{}
	f.turns[k.Turn] = append(f.turns[k.Turn], k)
	if f.conversations[k.Conversation] == nil {
		f.conversations[k.Conversation] = map[*turnIndex]bool{}
	}
	f.conversations[k.Conversation][k] = true
}

// finishTurn marks a turn as closed and removes it from the index if no segment has records of it.
func (f *ring) finishTurn(k *turnIndex) {
	if k.isOpen = false; len(k.segments) == 0 {
		f.removeTurn(k)
	}
}

// removeTurn removes a turn from the index.
func (f *ring) removeTurn(k *turnIndex) {
	if f.turns[k.Turn] = slices.DeleteFunc(f.turns[k.Turn], func(other *turnIndex) bool { return other == k }); len(f.turns[k.Turn]) == 0 {
		delete(f.turns, k.Turn)
	}
	if delete(f.conversations[k.Conversation], k); len(f.conversations[k.Conversation]) == 0 {
		delete(f.conversations, k.Conversation)
	}
}

// add appends a record to the current segment. It splits a payload above maxPayload, and begins each segment's first record of
// a turn with the turn's Meta, so that every segment can be read without the others.
func (f *ring) add(k *turnIndex, kind byte, at int64, payload []byte) {
	if f.suspendedUntil > at {
		return
	}
	// An empty payload still needs a record, so the loop runs at least once.
	for isFirst := true; isFirst || len(payload) > 0; isFirst = false {
		piece := payload[:min(len(payload), maxPayload)]
		payload = payload[len(piece):]
		seg, err := f.current(at, int64(len(piece)))
		if err != nil {
			f.suspend(at, err)
			return
		}
		if !k.segments[seg] {
			meta, err := json.Marshal(k.Meta)
			if err != nil {
				f.suspend(at, err)
				return
			}
			f.append(seg, recordBegin, k, at, meta)
			k.segments[seg], seg.turns[k.number] = true, k
		}
		if !isFirst {
			kind = recordMore
		}
		f.append(seg, kind, k, at, piece)
	}
}

// append encodes a record into the buffer and flushes the buffer above 1 MiB. Sizes and times are updated before the write,
// because the limits must hold even if it is delayed.
func (f *ring) append(seg *segment, kind byte, k *turnIndex, at int64, payload []byte) {
	before := len(f.buf)
	f.buf = appendRecord(f.buf, kind, k.number, at, payload)
	n := int64(len(f.buf) - before)
	seg.size += n
	f.total += n
	seg.firstAt = cmp.Or(seg.firstAt, at)
	seg.lastAt = at
	if len(f.buf) > 1<<20 {
		f.flush()
	}
}

// current returns the segment for the next record of size bytes. It starts a new one if the last would get too large or too
// old. Starting a segment is also the moment at which old ones are deleted, so the limits hold without a timer while data
// arrives.
func (f *ring) current(at, size int64) (*segment, error) {
	if f.handle != nil {
		seg := f.segments[len(f.segments)-1]
		if seg.size == 0 || seg.size+size <= f.segmentLimit && at-seg.firstAt < f.retention/share {
			return seg, nil
		}
		f.flush()
		if err := f.close(); err != nil {
			return nil, err
		}
	}
	f.lastNumber++
	seg := &segment{number: f.lastNumber, path: filepath.Join(f.dir, fmt.Sprintf("%08d%s", f.lastNumber, suffix)), turns: map[uint64]*turnIndex{}}
	handle, err := os.OpenFile(seg.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	f.handle = handle
	f.segments = append(f.segments, seg)
	f.sweep(at)
	return seg, nil
}

// flush writes the buffered records to the last segment. It keeps the buffer only if it is small. A failed write suspends the
// capture.
func (f *ring) flush() {
	if len(f.buf) == 0 || f.handle == nil {
		f.buf = f.buf[:0]
		return
	}
	_, err := f.handle.Write(f.buf)
	if f.buf = f.buf[:0]; cap(f.buf) > 2<<20 {
		f.buf = nil
	}
	if err != nil {
		f.suspend(time.Now().UnixMilli(), err)
	}
}

// suspend drops the buffered records and the last segment after a disk error, and stops writing for a while.
func (f *ring) suspend(at int64, err error) {
	f.log.Warn("capture: bytes of turns can't be written; pausing", "error", err, "retry_in", suspension.String())
	f.suspendedUntil = at + suspension.Milliseconds()
	f.buf = f.buf[:0]
	if f.handle == nil {
		return
	}
	// The last write may be incomplete, so the segment is given up.
	seg := f.segments[len(f.segments)-1]
	if cerr := f.close(); cerr != nil {
		f.log.Warn("capture: close segment", "error", cerr)
	}
	f.drop(seg)
}

// sweep deletes the oldest segments while they exceed the retention or the total size. The segment that is being written is
// only deleted if its last record is too old. It is called when a segment starts, and at intervals for an idle gateway.
func (f *ring) sweep(at int64) {
	for len(f.segments) > 0 {
		seg := f.segments[0]
		if f.handle != nil && len(f.segments) == 1 {
			// An idle gateway writes nothing more, so the open segment must expire too.
			if seg.lastAt == 0 || seg.lastAt >= at-f.retention {
				return
			}
			f.flush()
			if err := f.close(); err != nil {
				f.log.Warn("capture: close segment", "error", err)
			}
		}
		if seg.lastAt >= at-f.retention && f.total+f.segmentLimit <= max(f.totalLimit, 2*f.segmentLimit) {
			return
		}
		f.drop(seg)
	}
}

// drop deletes a segment and removes its turns from the index if no other segment has records of them. A turn loses its oldest
// records first.
func (f *ring) drop(seg *segment) {
	f.segments = slices.DeleteFunc(f.segments, func(other *segment) bool { return other == seg })
	f.total -= seg.size
	f.remove(seg.path)
	for _, k := range seg.turns {
		if delete(k.segments, seg); len(k.segments) == 0 && !k.isOpen {
			f.removeTurn(k)
		}
	}
}

// remove deletes the file of a segment. A failure is only logged: the next process finds the file and expires it again. Until then the file
// doesn't count toward the total size.
func (f *ring) remove(path string) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.log.Error("capture: segment can't be deleted", "path", path, "error", err)
	}
}

// close closes the current segment, so that the next record starts a new one. The caller flushes the buffer before, or its records are lost.
func (f *ring) close() error {
	if f.handle == nil {
		return nil
	}
	err := f.handle.Close()
	f.handle = nil
	return err
}
