package sse

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// MaxLine is the default limit of a line and of one event's data, in bytes: what the official SDKs of model providers allow.
const MaxLine = 32 << 20

// Event is one server-sent event.
type Event struct {
	Name string // empty where the stream gives none, which readers of the format take for "message"
	ID   string // given by this event itself
	Data []byte // lines joined by LF; valid until the function that got the event returns
}

// Reader takes a stream in pieces of any size. The zero value reads a stream from its beginning.
// It is not safe for concurrent use.
type Reader struct {
	// Limit bounds a line and the data of one event, in bytes; 0 is [MaxLine]. Set it before the first Feed.
	Limit int
	// Resumed says that the first byte fed is not the first of the stream, so that a byte order mark there is content.
	// Set it before the first Feed.
	MidStream bool

	total  int64 // bytes of all calls of Feed before this one
	offset int64 // the last boundary
	err    error // sticky

	partial  []byte // the line that the last call left unended
	hasBegun bool   // past the byte order mark
	skipLF   bool   // the last line ended in CR: an LF now belongs to it
	atEvent  bool   // that line ended an event, so a boundary follows it

	// The event being read.
	name, id string
	data     []byte
	borrowed bool // data points into the caller's piece
	has      bool // there was a data line

	lastID string
	retry  time.Duration
	hasTry bool
}

// Feed reads the next piece and calls emit for each event that it completes. An error is [ErrTooLong], or that of emit;
// the Reader is spent after it, and every later call returns it again. p is not kept.
func (r *Reader) Feed(p []byte, emit func(Event) error) error {
	if r.err != nil {
		return r.err
	}
	if err := r.feed(p, emit); err != nil {
		r.err = err
		return err
	}
	r.total += int64(len(p))
	r.copyData()
	return nil
}

func (r *Reader) feed(p []byte, emit func(Event) error) error {
	pos := 0
	lf := -2 // index of the next LF at or after pos; -1: none, -2: not known
	for pos < len(p) {
		if r.skipLF {
			r.skipLF = false
			if p[pos] == '\n' {
				pos++
				if r.atEvent {
					r.offset = r.total + int64(pos)
				}
				continue
			}
		}
		if lf != -1 && lf < pos {
			if lf = bytes.IndexByte(p[pos:], '\n'); lf >= 0 {
				lf += pos
			}
		}
		// An LF is looked for once, a CR only up to it, so that a long piece is not searched again for every line.
		end := lf
		if end < 0 {
			end = len(p)
		}
		hasLine := lf >= 0
		if cr := bytes.IndexByte(p[pos:end], '\r'); cr >= 0 {
			end, hasLine = pos+cr, true
		}
		if len(r.partial)+end-pos > r.limit() {
			return fmt.Errorf("%w: line of more than %d bytes", ErrTooLong, r.limit())
		}
		if !hasLine {
			r.partial = append(r.partial, p[pos:]...)
			return nil
		}
		r.skipLF = p[end] == '\r'
		line, isLocal := p[pos:end], true
		if len(r.partial) > 0 {
			r.partial = append(r.partial, line...)
			line, isLocal = r.partial, false
		}
		pos = end + 1
		if r.skipLF && pos < len(p) && p[pos] == '\n' {
			r.skipLF = false
			pos++
		}
		if !r.hasBegun {
			r.hasBegun = true
			if !r.MidStream {
				line = bytes.TrimPrefix(line, bom)
			}
		}
		r.atEvent = false
		if len(line) > 0 {
			if err := r.field(line, isLocal); err != nil {
				return err
			}
			// Between events every line is a boundary, so that heartbeats don't pile up behind the last event.
			if !r.has && r.name == "" && r.id == "" {
				r.offset, r.atEvent = r.total+int64(pos), true
			}
		} else if err := r.dispatch(r.total+int64(pos), emit); err != nil {
			return err
		}
		if r.partial = r.partial[:0]; cap(r.partial) > keepBuffer {
			r.partial = nil
		}
	}
	return nil
}

// keepBuffer bounds, in bytes, what a Reader keeps for the next line: one huge event must not hold memory for hours.
const keepBuffer = 64 << 10

var bom = []byte("\xef\xbb\xbf")

func (r *Reader) limit() int {
	if r.Limit > 0 {
		return r.Limit
	}
	return MaxLine
}

// field reads one line of an event. shareable is true if the line is part of the caller's piece, which needn't be copied if the
// event ends within the piece.
func (r *Reader) field(line []byte, shareable bool) error {
	name, value, _ := bytes.Cut(line, colon)
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		if !r.has {
			r.has = true
			switch {
			case shareable:
				r.data, r.borrowed = value, true
			case cap(r.partial) > keepBuffer: // the line's own buffer, of which feed keeps nothing
				r.data, r.borrowed, r.partial = value, false, nil
			default:
				r.data, r.borrowed = append(r.data[:0], value...), false
			}
			return nil
		}
		if len(r.data)+1+len(value) > r.limit() {
			return fmt.Errorf("%w: event of more than %d bytes", ErrTooLong, r.limit())
		}
		r.copyData()
		r.data = append(append(r.data, '\n'), value...)
	case "event":
		r.name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.id = string(value)
			r.lastID = r.id
		}
	case "retry":
		if ms, ok := digits(value); ok {
			r.retry, r.hasTry = time.Duration(ms)*time.Millisecond, true
		}
	}
	return nil // a comment, whose name is empty, or a field that the format does not know
}

var colon = []byte(":")

func digits(b []byte) (int64, bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil && n <= int64(maxRetry/time.Millisecond)
}

// maxRetry bounds a retry hint. A longer one is a mistake of the server, and could overflow a time.Duration.
const maxRetry = 24 * time.Hour

func (r *Reader) dispatch(end int64, emit func(Event) error) error {
	e := Event{Name: r.name, ID: r.id, Data: r.data}
	has := r.has
	r.name, r.id, r.has = "", "", false
	before := r.offset
	r.offset, r.atEvent = end, true
	if !has {
		return nil
	}
	err := emit(e)
	if err != nil {
		r.offset = before // the event was not taken
	}
	if r.borrowed || cap(r.data) > keepBuffer {
		r.data, r.borrowed = nil, false
	}
	return err
}

// copyData copies the data of an unfinished event out of the caller's slice.
func (r *Reader) copyData() {
	if r.borrowed {
		r.data, r.borrowed = append([]byte(nil), r.data...), false
	}
}

// Offset returns how many of the fed bytes lie before the last boundary: the end of the last event, within emit of the
// event at hand, or of the last line after it that belongs to no event.
func (r *Reader) Offset() int64 { return r.offset }

// Buffered returns how many bytes of an unfinished event the reader holds.
func (r *Reader) Buffered() int { return len(r.partial) + len(r.data) }

// LastID returns the last id that the stream gave, also by a block without data.
func (r *Reader) LastID() string { return r.lastID }

// Retry returns the stream's last hint how long to wait before connecting again, and whether there was one.
func (r *Reader) Retry() (time.Duration, bool) { return r.retry, r.hasTry }

// Close says that no byte follows. It returns [ErrInsideEvent] where the stream ended before its last event did, or the
// error that spent the Reader.
func (r *Reader) Close() error {
	if r.err == nil {
		r.err = errClosed
		// A comment may be cut: heartbeats carry nothing.
		line := r.partial
		if !r.hasBegun && !r.MidStream {
			line = bytes.TrimPrefix(line, bom)
		}
		if r.has || r.name != "" || (len(line) > 0 && line[0] != ':') {
			return ErrInsideEvent
		}
		return nil
	}
	if errors.Is(r.err, errClosed) {
		return nil
	}
	return r.err
}

var errClosed = errors.New("sse: reader is closed")
