package sse

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// MaxLine is the default limit of a line and of one event's data, in bytes. The official SDKs of model providers have the same limit.
const MaxLine = 32 << 20

// Event is one server-sent event.
type Event struct {
	Name string // empty if the event has none; browsers then use "message"
	ID   string // of this event; empty if it has none, also after an event with an id
	Data []byte // lines joined by LF; valid until the function that received the event returns
}

// Reader parses a stream that arrives in pieces of any size. The zero value reads a stream from its beginning. It is not safe for
// concurrent use.
type Reader struct {
	// Limit is the limit of a line and of the data of one event, in bytes. If it is 0, the limit is [MaxLine]. Set it before the first Feed.
	Limit int
	// MidStream is true if the first byte passed to Feed isn't the first one of the stream, so that a byte order mark there is content. Set it
	// before the first Feed.
	MidStream bool

	total  int64 // bytes of all calls of Feed before this one
	offset int64 // of the last boundary
	err    error // of the first failed call; returned by every later one

	partial  []byte // the incomplete line at the end of the last call
	hasBegun bool   // the first line was read, so a byte order mark is content from here on
	skipLF   bool   // the last line ended in CR, so an LF that follows belongs to its end
	atEvent  bool   // the last line ended an event, so the boundary is after that LF

	// The current event.
	name, id string
	data     []byte
	borrowed bool // data is part of the caller's slice
	has      bool // the event has a data line

	lastID   string // of the stream, also by an event without data
	lastName string // of an event that had one
	retry    time.Duration
	hasTry   bool
}

// Feed parses the next piece and calls emit for each event that it completes. It returns [ErrTooLong], or the error of emit; after
// an error the Reader can't be used any more, and every later call returns the error again. Feed doesn't retain p.
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

// feed parses p line by line. A line ends in LF, CR or CRLF, and a CRLF may be split between two calls. feed updates the offset at
// each boundary: after an event, and after each line between events.
func (r *Reader) feed(p []byte, emit func(Event) error) error {
	pos := 0
	lf := -2 // index of the next LF at or after pos; -1 if p has no further one, -2 if it is unknown
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
		// The next LF is searched once, and a CR only before it, so that a long piece isn't searched again for every line.
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
			// Between events every line is a boundary. Otherwise the heartbeats after the last event would have to be sent again.
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

// keepBuffer is the limit, in bytes, of the buffers that a Reader keeps for the next event. A larger one is freed, because a stream
// may last for hours after one huge event.
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
			case cap(r.partial) > keepBuffer: // feed would free the buffer of the line, so it is used instead of a copy
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
		r.name = r.nameOf(value)
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
	return nil // other fields, and comments, whose name is empty, are ignored
}

var colon = []byte(":")

// maxSharedName limits the names that nameOf remembers, so that a reader of a strange stream holds no long one.
const maxSharedName = 64

// nameOf returns the name of an event. Most events of a stream have the name of the one before, which is then shared.
func (r *Reader) nameOf(value []byte) string {
	if r.lastName == string(value) {
		return r.lastName
	}
	name := string(value)
	if len(name) <= maxSharedName {
		r.lastName = name
	}
	return name
}

// digits parses a retry hint. The standard requires a field that isn't all digits to be ignored.
func digits(b []byte) (int64, bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil && n <= int64(maxRetry/time.Millisecond)
}

// maxRetry is the limit of a retry hint. A longer one is a mistake of the server and could overflow a time.Duration.
const maxRetry = 24 * time.Hour

// dispatch ends the current event at the offset end and emits it if it has data. If emit fails, the offset stays before the event, so that a
// resumed Reader returns it again.
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
		r.offset = before
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

// Offset returns the number of bytes before the last boundary, which is the end of the last event or of the last line after it that
// belongs to no event. Within emit it is the end of the event that is passed to emit.
func (r *Reader) Offset() int64 { return r.offset }

// Buffered returns the number of buffered bytes of an incomplete event.
func (r *Reader) Buffered() int { return len(r.partial) + len(r.data) }

// LastID returns the last id in the stream, also that of an event without data.
func (r *Reader) LastID() string { return r.lastID }

// Retry returns the stream's last hint how long a client should wait before it reconnects, and whether the stream had one.
func (r *Reader) Retry() (time.Duration, bool) { return r.retry, r.hasTry }

// Close declares the end of the stream. It returns [ErrInsideEvent] if the last event is incomplete, or the error of an earlier call.
func (r *Reader) Close() error {
	if r.err == nil {
		r.err = errClosed
		// An incomplete comment is not an error, because it has no content.
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
