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
	// share is in how many files the whole is divided, as near as their sizes allow: what is dropped at once.
	share            = 32
	smallest, widest = 64 << 10, 8 << 20
	// again is how long nothing is written after the disk has refused something.
	suspension = time.Minute
)

// known is a turn that something is kept of, or was begun.
type turnIndex struct {
	Meta
	number    uint64
	segments  map[*segment]bool // where its bytes are
	isOpen    bool              // more may come
	forgotten bool
}

// file is one of the ring.
type segment struct {
	number          int
	path            string
	size            int64
	firstAt, lastAt int64 // times of the first and the last record; 0 while it is empty
	turns           map[uint64]*turnIndex
}

// files are all of them, the oldest first, with what is known of the turns in them. They belong to the log's goroutine.
type ring struct {
	dir            string
	retention      int64 // milliseconds
	totalLimit     int64 // of all, bytes
	segmentLimit   int64 // of one
	log            *slog.Logger
	segments       []*segment
	total          int64
	handle         *os.File // the last one, open; nil while nothing was written
	buf            []byte   // records for it that are not written yet
	lastNumber     int
	suspendedUntil int64 // until when nothing is written, epoch milliseconds
	turns          map[string][]*turnIndex
	conversations  map[string]map[*turnIndex]bool
}

func newRing(o Options) ring {
	return ring{
		dir: o.Dir, retention: o.Retention.Milliseconds(), totalLimit: o.Size, segmentLimit: min(max(o.Size/share, smallest), widest), log: o.Log,
		turns: map[string][]*turnIndex{}, conversations: map[string]map[*turnIndex]bool{},
	}
}

// suffix ends the names of the files, which are their numbers.
const suffix = ".raw"

// load reads what another process has left.
func (f *ring) load() {
	names, err := filepath.Glob(filepath.Join(f.dir, "*"+suffix))
	if err != nil {
		f.log.Error("rawlog: list files", "error", err)
		return
	}
	for _, path := range names {
		base := filepath.Base(path)
		n, err := strconv.Atoi(base[:len(base)-len(suffix)])
		if err != nil {
			continue // not ours
		}
		f.lastNumber = max(f.lastNumber, n)
		seg := &segment{number: n, path: path, turns: map[uint64]*turnIndex{}}
		if err := f.scan(seg); err != nil {
			f.log.Error("rawlog: file not read; it is dropped", "path", path, "error", err)
			f.remove(path)
			continue
		}
		f.segments = append(f.segments, seg)
		f.total += seg.size
	}
	slices.SortFunc(f.segments, func(a, b *segment) int { return cmp.Compare(a.number, b.number) })
	f.sweep(time.Now().UnixMilli())
}

// read learns what a file holds. What follows the last whole record is cut off.
func (f *ring) scan(seg *segment) error {
	b, err := os.ReadFile(seg.path)
	if err != nil {
		return err
	}
	for at := 0; ; {
		h, payload, size, ok := next(b[at:])
		if !ok {
			if at < len(b) {
				if err := os.Truncate(seg.path, int64(at)); err != nil {
					return err
				}
			}
			seg.size = int64(at)
			return nil
		}
		at += size
		if seg.firstAt == 0 {
			seg.firstAt = h.at
		}
		seg.lastAt = h.at
		if h.kind == recordBegin && h.intact(payload) {
			k := f.find(h.turn, payload)
			if k == nil {
				continue
			}
			seg.turns[h.turn] = k
			k.segments[seg] = true
		}
	}
}

// find returns the turn that a record begins, which may have begun in another file before.
func (f *ring) find(n uint64, meta []byte) *turnIndex {
	var m Meta
	if json.Unmarshal(meta, &m) != nil {
		return nil
	}
	for _, k := range f.turns[m.Turn] {
		if k.number == n {
			return k
		}
	}
	k := &turnIndex{Meta: m, number: n}
	f.addTurn(k)
	return k
}

func (f *ring) addTurn(k *turnIndex) {
	k.segments = map[*segment]bool{}
	f.turns[k.Turn] = append(f.turns[k.Turn], k)
	if f.conversations[k.Conversation] == nil {
		f.conversations[k.Conversation] = map[*turnIndex]bool{}
	}
	f.conversations[k.Conversation][k] = true
}

// over says that nothing more comes of a turn.
func (f *ring) finishTurn(k *turnIndex) {
	if k.isOpen = false; len(k.segments) == 0 {
		f.removeTurn(k)
	}
}

// unknow forgets a turn of which nothing is kept any more.
func (f *ring) removeTurn(k *turnIndex) {
	if f.turns[k.Turn] = slices.DeleteFunc(f.turns[k.Turn], func(other *turnIndex) bool { return other == k }); len(f.turns[k.Turn]) == 0 {
		delete(f.turns, k.Turn)
	}
	if delete(f.conversations[k.Conversation], k); len(f.conversations[k.Conversation]) == 0 {
		delete(f.conversations, k.Conversation)
	}
}

// add appends a record to the last file.
func (f *ring) add(k *turnIndex, kind byte, at int64, payload []byte) {
	if f.suspendedUntil > at {
		return
	}
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

func (f *ring) append(seg *segment, kind byte, k *turnIndex, at int64, payload []byte) {
	before := len(f.buf)
	f.buf = appendRecord(f.buf, kind, k.number, at, payload)
	n := int64(len(f.buf) - before)
	seg.size += n
	f.total += n
	if seg.firstAt == 0 {
		seg.firstAt = at
	}
	seg.lastAt = at
	if len(f.buf) > 1<<20 {
		f.flush()
	}
}

// current is the file that the next record of so many bytes goes to.
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

// flush writes what was added.
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

// rest gives up what the disk refuses: for a while nothing is kept.
func (f *ring) suspend(at int64, err error) {
	f.log.Warn("rawlog: what turns exchange is not kept for a while", "error", err, "again", suspension.String())
	f.suspendedUntil = at + suspension.Milliseconds()
	f.buf = f.buf[:0]
	if f.handle == nil {
		return
	}
	// Of the last file only what is whole counts.
	seg := f.segments[len(f.segments)-1]
	if cerr := f.close(); cerr != nil {
		f.log.Warn("rawlog: close", "error", cerr)
	}
	f.drop(seg)
}

// sweep drops the oldest files, where they are too old or too many. The one that is written stays.
func (f *ring) sweep(at int64) {
	for len(f.segments) > 0 {
		seg := f.segments[0]
		if f.handle != nil && len(f.segments) == 1 {
			// A file that nothing more is written to has to go too, when its last record is too old.
			if seg.lastAt == 0 || seg.lastAt >= at-f.retention {
				return
			}
			f.flush()
			if err := f.close(); err != nil {
				f.log.Warn("rawlog: close", "error", err)
			}
		}
		if seg.lastAt >= at-f.retention && f.total+f.segmentLimit <= max(f.totalLimit, 2*f.segmentLimit) {
			return
		}
		f.drop(seg)
	}
}

// drop removes a file.
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

func (f *ring) remove(path string) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.log.Error("rawlog: file not removed", "path", path, "error", err)
	}
}

func (f *ring) close() error {
	if f.handle == nil {
		return nil
	}
	err := f.handle.Close()
	f.handle = nil
	return err
}
