// Reading the captured bytes of a turn from the files in which they are.

package capture

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
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

// A segment is a sequence of records: length and checksum of the payload, kind, number of the turn, time, payload. Numbers are
// little-endian.
const headerSize = 4 + 4 + 1 + 8 + 8

// maxPayload limits the payload of a record, in bytes. A longer one is split into several records.
const maxPayload = 1 << 20

// The kinds of records. They are stored, so their values must not change.
const (
	recordBlank    byte = iota // overwritten by Forget
	recordBegin                // a Meta as JSON; the first record of a turn in each segment
	recordStream               // a dialect; the received bytes that follow are a body in it
	recordSent                 // bytes sent to the upstream
	recordReceived             // bytes received from the upstream
	recordLost                 // the number of lost bytes, in decimal
	recordMore                 // continues the payload of the turn's previous record
	recordEnd                  // the agent returned
	recordMessages             // a dialect; each received record that follows is a whole message in it
	recordFailed               // the reason why the turn failed, one line
)

// header precedes the payload of each record. The checksum doesn't cover the header: a changed header makes the record invalid
// or unknown.
type header struct {
	length int
	crc    uint32
	kind   byte
	turn   uint64
	at     int64 // epoch milliseconds
}

var table = crc32.MakeTable(crc32.Castagnoli)

// appendRecord appends an encoded record to b.
func appendRecord(b []byte, kind byte, turn uint64, at int64, payload []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, table))
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint64(b, turn)
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	return append(b, payload...)
}

// next decodes the first record of b and returns its total size. ok is false if b begins with an incomplete or invalid record.
func next(b []byte) (h header, payload []byte, size int, ok bool) {
	if len(b) < headerSize {
		return h, nil, 0, false
	}
	h = header{
		length: int(binary.LittleEndian.Uint32(b)), crc: binary.LittleEndian.Uint32(b[4:]),
		kind: b[8], turn: binary.LittleEndian.Uint64(b[9:]), at: int64(binary.LittleEndian.Uint64(b[17:])),
	}
	size = headerSize + h.length
	if h.length > maxPayload || h.kind > recordFailed || len(b) < size {
		return h, nil, 0, false
	}
	return h, b[headerSize:size], size, true
}

// intact reports whether the payload matches the checksum of its record. It doesn't for bytes that changed on the disk, and while Forget
// overwrites the record.
func (h *header) intact(payload []byte) bool { return crc32.Checksum(payload, table) == h.crc }

// meta decodes the payload of a begin record.
func meta(payload []byte) (m Meta) {
	_ = json.Unmarshal(payload, &m) // Written by add, and its checksum matched.
	return m
}
