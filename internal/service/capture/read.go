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
	Begin    Kind = "begin"    // of the turn, or of what another process brought after a restart
	Speaks   Kind = "speaks"   // Data is the dialect of the body whose pieces follow
	Messages Kind = "messages" // Data is the dialect of the messages that follow
	Sent     Kind = "sent"     // a piece or message that went to the upstream
	Received Kind = "received" // a piece or message that came from it
	Lost     Kind = "lost"     // N bytes could not be kept here
	End      Kind = "end"      // the agent has returned
	Failed   Kind = "failed"   // Data says why the turn fails
)

var kinds = map[byte]Kind{recordBegin: Begin, recordSpeaks: Speaks, recordSent: Sent, recordReceived: Received, recordLost: Lost, recordEnd: End, recordMessages: Messages, recordFailed: Failed}

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
	var from []string
	numbers := map[uint64]bool{}
	err := l.do(ctx, func() error {
		found := map[*file]bool{}
		for _, k := range l.files.turns[turn] {
			numbers[k.n] = true
			for one := range k.in {
				found[one] = true
			}
		}
		var all []*file
		for one := range found {
			all = append(all, one)
		}
		slices.SortFunc(all, func(a, b *file) int { return cmp.Compare(a.number, b.number) })
		for _, one := range all {
			from = append(from, one.path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(from) == 0 {
		return ErrNotKept
	}
	r := reading{numbers: numbers, begun: map[uint64]bool{}, f: f}
	for _, path := range from {
		if err := r.file(path); err != nil {
			return fmt.Errorf("rawlog: read: %w", err)
		}
	}
	return r.emit()
}

// reading puts the records of a turn together.
type reading struct {
	numbers map[uint64]bool
	begun   map[uint64]bool
	f       func(Entry) error
	last    *Entry
}

func (r *reading) file(path string) error {
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
			if r.begun[h.turn] {
				continue // it goes on in another file
			}
			r.begun[h.turn] = true
		}
		if err := r.emit(); err != nil {
			return err
		}
		r.last = entry(&h, payload)
	}
}

func (r *reading) emit() error {
	e := r.last
	if r.last = nil; e == nil {
		return nil
	}
	return r.f(*e)
}

func entry(h *header, payload []byte) *Entry {
	e := &Entry{At: h.at, Kind: kinds[h.kind]}
	switch e.Kind {
	case Begin:
		e.Meta = meta(payload)
	case Lost:
		e.N, _ = strconv.ParseInt(string(payload), 10, 64) // it is ours, and intact
	default:
		e.Data = slices.Clone(payload)
	}
	return e
}
