// Reading the captured bytes of a turn from the files in which they are.

package capture

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
)

// ErrNotKept says that the turn has no records: they expired, the agent doesn't exchange bytes, or captures were
// disabled.
var ErrNotKept = errors.New("capture: no records of the turn")

// Kind is the kind of an [Entry].
type Kind string

// The kinds of entries.
const (
	KindBegin    Kind = "begin"    // the turn starts, or is resumed by another process
	KindStream   Kind = "speaks"   // Data is the dialect; the Received entries that follow are pieces of one body
	KindMessages Kind = "messages" // Data is the dialect; each Received entry that follows is a whole message
	KindSent     Kind = "sent"     // bytes sent to the upstream
	KindReceived Kind = "received" // bytes received from the upstream
	KindLost     Kind = "lost"     // N bytes were dropped at this point
	kindEnd      Kind = "end"      // the agent returned
	KindFailed   Kind = "failed"   // Data is the reason why the turn failed
)

var kinds = map[byte]Kind{recordBegin: KindBegin, recordStream: KindStream, recordSent: KindSent, recordReceived: KindReceived, recordLost: KindLost, recordEnd: kindEnd, recordMessages: KindMessages, recordFailed: KindFailed}

// Entry is one record of a turn.
type Entry struct {
	At   int64 // epoch milliseconds
	Kind Kind
	Data []byte // owned by the callback
	N    int64  // only for KindLost
	Meta Meta   // only for KindBegin
}

// Read calls f with the records of a turn, oldest first, including those queued before the call. If the turn has no records, it
// returns ErrNotKept. An error of f ends the read. Records that expire during the call are omitted.
func (l *Log) Read(ctx context.Context, turn string, f func(Entry) error) error {
	if l == nil {
		return ErrNotKept
	}
	var paths []string
	// The goroutine only selects the segments. They are read here, so that a large turn doesn't delay the capture of others.
	numbers := map[uint64]bool{}
	err := l.do(ctx, func() error {
		matches := map[*segment]bool{}
		for _, k := range l.ring.turns[turn] {
			numbers[k.number] = true
			for seg := range k.segments {
				matches[seg] = true
			}
		}
		for _, seg := range slices.SortedFunc(maps.Keys(matches), compareSegments) {
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
			return fmt.Errorf("capture: read: %w", err)
		}
	}
	return r.emit()
}

// turnReader joins the records of a turn across segments. It holds the last entry back, because the next record may continue
// it. A turn that was resumed after a restart has several numbers, one for each process.
type turnReader struct {
	numbers  map[uint64]bool
	hasBegun map[uint64]bool
	yield    func(Entry) error
	last     *Entry
}

// file reads the records of the turn from one segment.
func (r *turnReader) file(path string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // expired since the segment was selected
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
		// Blanked and corrupt records are skipped; the others of the turn are still useful.
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
				continue // repeated at the start of each segment
			}
			r.hasBegun[h.turn] = true
		}
		if err := r.emit(); err != nil {
			return err
		}
		r.last = entry(&h, payload)
	}
}

// emit passes the held entry to the callback.
func (r *turnReader) emit() error {
	e := r.last
	if r.last = nil; e == nil {
		return nil
	}
	return r.yield(*e)
}

// entry decodes a record. The payload is copied, because it is part of the buffer with the whole segment.
func entry(h *header, payload []byte) *Entry {
	e := &Entry{At: h.at, Kind: kinds[h.kind]}
	switch e.Kind {
	case KindBegin:
		e.Meta = meta(payload)
	case KindLost:
		e.N, _ = strconv.ParseInt(string(payload), 10, 64) // Written by note, and its checksum matched.
	default:
		e.Data = slices.Clone(payload)
	}
	return e
}
