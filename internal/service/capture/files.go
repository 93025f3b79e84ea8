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
	again = time.Minute
)

// known is a turn that something is kept of, or was begun.
type known struct {
	Meta
	n         uint64
	in        map[*file]bool // where its bytes are
	live      bool           // more may come
	forgotten bool
}

// file is one of the ring.
type file struct {
	number      int
	path        string
	size        int64
	first, last int64 // times of the first and the last record; 0 while it is empty
	turns       map[uint64]*known
}

// files are all of them, the oldest first, with what is known of the turns in them. They belong to the log's goroutine.
type files struct {
	dir     string
	keep    int64 // milliseconds
	limit   int64 // of all, bytes
	each    int64 // of one
	log     *slog.Logger
	all     []*file
	total   int64
	out     *os.File // the last one, open; nil while nothing was written
	buf     []byte   // records for it that are not written yet
	numbers int
	resting int64 // until when nothing is written, epoch milliseconds
	turns   map[string][]*known
	convs   map[string]map[*known]bool
}

func newFiles(o Options) files {
	return files{
		dir: o.Dir, keep: o.Keep.Milliseconds(), limit: o.Size, each: min(max(o.Size/share, smallest), widest), log: o.Log,
		turns: map[string][]*known{}, convs: map[string]map[*known]bool{},
	}
}

// suffix ends the names of the files, which are their numbers.
const suffix = ".raw"

// load reads what another process has left.
func (f *files) load() {
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
		f.numbers = max(f.numbers, n)
		one := &file{number: n, path: path, turns: map[uint64]*known{}}
		if err := f.read(one); err != nil {
			f.log.Error("rawlog: file not read; it is dropped", "path", path, "error", err)
			f.remove(path)
			continue
		}
		f.all = append(f.all, one)
		f.total += one.size
	}
	slices.SortFunc(f.all, func(a, b *file) int { return cmp.Compare(a.number, b.number) })
	f.sweep(time.Now().UnixMilli())
}

// read learns what a file holds. What follows the last whole record is cut off.
func (f *files) read(one *file) error {
	b, err := os.ReadFile(one.path)
	if err != nil {
		return err
	}
	for at := 0; ; {
		h, payload, size, ok := next(b[at:])
		if !ok {
			if at < len(b) {
				if err := os.Truncate(one.path, int64(at)); err != nil {
					return err
				}
			}
			one.size = int64(at)
			return nil
		}
		at += size
		if one.first == 0 {
			one.first = h.at
		}
		one.last = h.at
		if h.kind == recordBegin && h.intact(payload) {
			k := f.find(h.turn, payload)
			if k == nil {
				continue
			}
			one.turns[h.turn] = k
			k.in[one] = true
		}
	}
}

// find returns the turn that a record begins, which may have begun in another file before.
func (f *files) find(n uint64, meta []byte) *known {
	var m Meta
	if json.Unmarshal(meta, &m) != nil {
		return nil
	}
	for _, k := range f.turns[m.Turn] {
		if k.n == n {
			return k
		}
	}
	k := &known{Meta: m, n: n}
	f.know(k)
	return k
}

func (f *files) know(k *known) {
	k.in = map[*file]bool{}
	f.turns[k.Turn] = append(f.turns[k.Turn], k)
	if f.convs[k.Conversation] == nil {
		f.convs[k.Conversation] = map[*known]bool{}
	}
	f.convs[k.Conversation][k] = true
}

// over says that nothing more comes of a turn.
func (f *files) over(k *known) {
	if k.live = false; len(k.in) == 0 {
		f.unknow(k)
	}
}

// unknow forgets a turn of which nothing is kept any more.
func (f *files) unknow(k *known) {
	if f.turns[k.Turn] = slices.DeleteFunc(f.turns[k.Turn], func(one *known) bool { return one == k }); len(f.turns[k.Turn]) == 0 {
		delete(f.turns, k.Turn)
	}
	if delete(f.convs[k.Conversation], k); len(f.convs[k.Conversation]) == 0 {
		delete(f.convs, k.Conversation)
	}
}

// add appends a record to the last file.
func (f *files) add(k *known, kind byte, at int64, payload []byte) {
	if f.resting > at {
		return
	}
	for first := true; first || len(payload) > 0; first = false {
		piece := payload[:min(len(payload), maxPayload)]
		payload = payload[len(piece):]
		one, err := f.current(at, int64(len(piece)))
		if err != nil {
			f.rest(at, err)
			return
		}
		if !k.in[one] {
			meta, err := json.Marshal(k.Meta)
			if err != nil {
				f.rest(at, err)
				return
			}
			f.append(one, recordBegin, k, at, meta)
			k.in[one], one.turns[k.n] = true, k
		}
		if !first {
			kind = recordMore
		}
		f.append(one, kind, k, at, piece)
	}
}

func (f *files) append(one *file, kind byte, k *known, at int64, payload []byte) {
	before := len(f.buf)
	f.buf = appendRecord(f.buf, kind, k.n, at, payload)
	n := int64(len(f.buf) - before)
	one.size += n
	f.total += n
	if one.first == 0 {
		one.first = at
	}
	one.last = at
	if len(f.buf) > 1<<20 {
		f.flush()
	}
}

// current is the file that the next record of so many bytes goes to.
func (f *files) current(at, size int64) (*file, error) {
	if f.out != nil {
		one := f.all[len(f.all)-1]
		if one.size == 0 || one.size+size <= f.each && at-one.first < f.keep/share {
			return one, nil
		}
		f.flush()
		if err := f.close(); err != nil {
			return nil, err
		}
	}
	f.numbers++
	one := &file{number: f.numbers, path: filepath.Join(f.dir, fmt.Sprintf("%08d%s", f.numbers, suffix)), turns: map[uint64]*known{}}
	out, err := os.OpenFile(one.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	f.out = out
	f.all = append(f.all, one)
	f.sweep(at)
	return one, nil
}

// flush writes what was added.
func (f *files) flush() {
	if len(f.buf) == 0 || f.out == nil {
		f.buf = f.buf[:0]
		return
	}
	_, err := f.out.Write(f.buf)
	if f.buf = f.buf[:0]; cap(f.buf) > 2<<20 {
		f.buf = nil
	}
	if err != nil {
		f.rest(time.Now().UnixMilli(), err)
	}
}

// rest gives up what the disk refuses: for a while nothing is kept.
func (f *files) rest(at int64, err error) {
	f.log.Warn("rawlog: what turns exchange is not kept for a while", "error", err, "again", again.String())
	f.resting = at + again.Milliseconds()
	f.buf = f.buf[:0]
	if f.out == nil {
		return
	}
	// Of the last file only what is whole counts.
	one := f.all[len(f.all)-1]
	if cerr := f.close(); cerr != nil {
		f.log.Warn("rawlog: close", "error", cerr)
	}
	f.drop(one)
}

// sweep drops the oldest files, where they are too old or too many. The one that is written stays.
func (f *files) sweep(at int64) {
	for len(f.all) > 0 {
		one := f.all[0]
		if f.out != nil && len(f.all) == 1 {
			// A file that nothing more is written to has to go too, when its last record is too old.
			if one.last == 0 || one.last >= at-f.keep {
				return
			}
			f.flush()
			if err := f.close(); err != nil {
				f.log.Warn("rawlog: close", "error", err)
			}
		}
		if one.last >= at-f.keep && f.total+f.each <= max(f.limit, 2*f.each) {
			return
		}
		f.drop(one)
	}
}

// drop removes a file.
func (f *files) drop(one *file) {
	f.all = slices.DeleteFunc(f.all, func(other *file) bool { return other == one })
	f.total -= one.size
	f.remove(one.path)
	for _, k := range one.turns {
		if delete(k.in, one); len(k.in) == 0 && !k.live {
			f.unknow(k)
		}
	}
}

func (f *files) remove(path string) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.log.Error("rawlog: file not removed", "path", path, "error", err)
	}
}

func (f *files) close() error {
	if f.out == nil {
		return nil
	}
	err := f.out.Close()
	f.out = nil
	return err
}
