package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
)

// ErrNotKept says that nothing is kept of a turn: it is too old, it came from an agent that has no bytes, or keeping was off.
var ErrNotKept = errors.New("rawlog: nothing is kept of the turn")

// Kind says what an [Entry] is.
type Kind string

// The kinds of entries.
const (
	KindBegin    Kind = "begin"    // of the turn, or of what another process brought after a restart
	KindStream   Kind = "speaks"   // Data is the dialect of the body whose pieces follow
	KindMessages Kind = "messages" // Data is the dialect of the messages that follow
	KindSent     Kind = "sent"     // a piece or message that went to the upstream
	KindReceived Kind = "received" // a piece or message that came from it
	KindLost     Kind = "lost"     // N bytes could not be kept here
	kindEnd      Kind = "end"      // the agent has returned
	KindFailed   Kind = "failed"   // Data says why the turn fails
)

var kinds = map[byte]Kind{recordBegin: KindBegin, recordStream: KindStream, recordSent: KindSent, recordReceived: KindReceived, recordLost: KindLost, recordEnd: kindEnd, recordMessages: KindMessages, recordFailed: KindFailed}

// Entry is something that was noted of a turn.
type Entry struct {
	At   int64 // epoch milliseconds
	Kind Kind
	Data []byte // the reader's to keep
	N    int64  // Lost
	Meta Meta   // Begin
}

// Read calls f with what is kept of a turn, oldest first. It returns ErrNotKept where that is nothing.
func (l *Log) Read(ctx context.Context, turn string, f func(Entry) error) error {
	if l == nil {
		return ErrNotKept
	}
	var paths []string
	numbers := map[uint64]bool{}
	err := l.do(ctx, func() error {
		matches := map[*segment]bool{}
		for _, k := range l.ring.turns[turn] {
			numbers[k.number] = true
			for seg := range k.segments {
				matches[seg] = true
			}
		}
		var ordered []*segment
		for seg := range matches {
			ordered = append(ordered, seg)
		}
		slices.SortFunc(ordered, func(a, b *segment) int { return cmp.Compare(a.number, b.number) })
		for _, seg := range ordered {
			paths = append(paths, seg.path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return ErrNotKept
	}
	r := turnReader{numbers: numbers, hasBegun: map[uint64]bool{}, yield: f}
	for _, path := range paths {
		if err := r.file(path); err != nil {
			return fmt.Errorf("rawlog: read: %w", err)
		}
	}
	return r.emit()
}

// reading puts the records of a turn together.
type turnReader struct {
	numbers  map[uint64]bool
	hasBegun map[uint64]bool
	yield    func(Entry) error
	last     *Entry
}

func (r *turnReader) file(path string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // dropped meanwhile, as the oldest
	}
	if err != nil {
		return err
	}
	for {
		h, payload, size, ok := next(b)
		if !ok {
			return nil
		}
		b = b[size:]
		if !r.numbers[h.turn] || h.kind == recordBlank || !h.intact(payload) {
			continue
		}
		if h.kind == recordMore {
			if r.last != nil {
				r.last.Data = append(r.last.Data, payload...)
			}
			continue
		}
		if h.kind == recordBegin {
			if r.hasBegun[h.turn] {
				continue // it goes on in another file
			}
			r.hasBegun[h.turn] = true
		}
		if err := r.emit(); err != nil {
			return err
		}
		r.last = entry(&h, payload)
	}
}

func (r *turnReader) emit() error {
	e := r.last
	if r.last = nil; e == nil {
		return nil
	}
	return r.yield(*e)
}

func entry(h *header, payload []byte) *Entry {
	e := &Entry{At: h.at, Kind: kinds[h.kind]}
	switch e.Kind {
	case KindBegin:
		e.Meta = meta(payload)
	case KindLost:
		e.N, _ = strconv.ParseInt(string(payload), 10, 64) // it is ours, and intact
	default:
		e.Data = slices.Clone(payload)
	}
	return e
}
