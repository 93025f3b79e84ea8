// A body with its dialect: the bytes are split into frames as the dialect says, in pieces of any size.

package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/sse"
)

// Stream decodes a body: it splits bytes into frames and decodes the frames into operations. How the body is divided into calls of
// Write changes nothing. A Stream is not safe for concurrent use.
//
// A stream can be continued elsewhere: a new Stream restored from State and fed with the body from Offset on returns exactly the
// operations that the original would have returned.
type Stream struct {
	d          Dialect
	dec        Decoder
	sse        sse.Reader
	lines      lineReader
	base       int64  // offset in the body of the first byte written to this Stream; 0 unless restored
	offset     int64  // offset in the body after the last complete frame
	pending    []byte // the bytes after offset, which the next frame begins with
	ops        []event.Event
	isUsed     bool   // Write or Restore was called, so Restore is refused
	progressed bool   // a frame of the last Write advanced the answer
	err        error  // of the first failed Write; returned by every later one
	closed     bool   // Close was called
	state      []byte // what State returned at stateAt, or nil if a frame has been decoded since then
	stateAt    int64
	isShared   bool // Decoder was called, so the decoder may change without this Stream
}

// NewStream returns a stream for the beginning of a body in dialect d.
func NewStream(d Dialect) *Stream {
	return &Stream{d: d, dec: d.Decoder(), lines: lineReader{limit: MaxLine}}
}

// Write decodes the next bytes of the body and returns the operations of the frames that they complete. With an error it
// returns the operations of the frames before the invalid one; after it, only Close is useful. Write doesn't retain p.
//
// The offset moves only over complete frames. If the reader of the framing fails because a line or event is too long, or if incomplete
// frames add up to more than two lines, the error names the offset.
func (s *Stream) Write(p []byte) ([]event.Event, error) {
	if s.err != nil {
		return nil, s.err
	}
	if s.closed {
		return nil, errClosed
	}
	s.isUsed, s.progressed = true, false
	s.ops = nil
	before := s.offset
	if s.d.Framing == SSE {
		s.err = s.sse.Feed(p, s.event)
		s.offset = s.base + s.sse.Offset()
	} else {
		s.err = s.lines.feed(p, s.line)
		s.offset = s.base + s.lines.offset
	}
	if s.err == nil {
		if s.pend(p, s.offset-before); len(s.pending) > 2*MaxLine {
			s.err = fmt.Errorf("%w: frame of more than %d bytes", sse.ErrTooLong, 2*MaxLine)
		}
	}
	if errors.Is(s.err, sse.ErrTooLong) || errors.Is(s.err, ErrTooLong) {
		s.err = &Error{Dialect: s.d.Name, Reason: fmt.Sprintf("after byte %d", s.offset), Err: s.err}
	}
	return s.take(), s.err
}

// pend appends p to the pending bytes and drops the first n bytes, which have been decoded.
func (s *Stream) pend(p []byte, n int64) {
	if old := int64(len(s.pending)); n >= old {
		p = p[n-old:]
		if s.pending = s.pending[:0]; cap(s.pending) > 64<<10 {
			s.pending = nil
		}
		n = 0
	}
	s.pending = append(s.pending, p...)
	if n > 0 {
		s.pending = s.pending[:copy(s.pending, s.pending[n:])]
	}
}

// event decodes a server-sent event.
func (s *Stream) event(e sse.Event) error {
	return s.decode(Frame{Event: e.Name, ID: e.ID, Data: e.Data})
}

// line decodes a line of NDJSON.
func (s *Stream) line(b []byte) error { return s.decode(Frame{Data: b}) }

// decode passes a frame to the decoder and collects its operations. The first list is used as it is, because most calls of Write complete one
// frame; the decoder doesn't retain it.
func (s *Stream) decode(f Frame) error {
	s.state = nil
	ops, err := s.dec.Decode(f)
	s.progressed = s.progressed || err == nil && s.d.Advances(f, ops)
	if s.ops == nil {
		s.ops = ops
	} else {
		s.ops = append(s.ops, ops...)
	}
	return err
}

// take returns the collected operations and begins a new list.
func (s *Stream) take() []event.Event {
	ops := s.ops
	s.ops = nil
	return ops
}

// Advanced reports whether the last Write completed a frame that shows progress of the agent; see [Dialect.Advances].
func (s *Stream) Advanced() bool { return s.progressed }

// Dialect returns the name of the stream's dialect.
func (s *Stream) Dialect() string { return s.d.Name }

// Decoder returns the stream's decoder without its wrappers, for methods that are specific to its dialect. The caller must not call
// Decode or Close.
func (s *Stream) Decoder() Decoder {
	s.isShared, s.state = true, nil
	return Unwrap(s.dec)
}

// Offset returns the number of bytes of the body that are fully decoded: up to the end of the last decoded frame and the blank lines or
// comments after it.
func (s *Stream) Offset() int64 { return s.offset }

// Pending returns a copy of the bytes that were written after Offset.
func (s *Stream) Pending() []byte { return bytes.Clone(s.pending) }

// Buffered returns the number of bytes that Pending returns, without the copy.
func (s *Stream) Buffered() int { return len(s.pending) }

// Close declares the end of the body. The last line of NDJSON needs no line end; an SSE event without its blank line is dropped, as the
// SSE specification requires. Close returns the operations for buffered text, and [ErrCutShort] if the format's own end was not seen.
// It may return both. A second call returns nothing.
func (s *Stream) Close() ([]event.Event, error) {
	if s.closed {
		return nil, nil
	}
	s.closed = true
	s.ops, s.state = nil, nil
	if s.d.Framing == Lines && s.err == nil {
		// A last line that isn't JSON was cut in the middle. The decoder's Close then reports the stream as cut short.
		if line := trimLine(s.pending); len(line) > 0 && json.Valid(line) {
			if s.err = s.line(line); s.err == nil {
				s.offset += int64(len(s.pending))
				s.pending = nil
			}
		}
	}
	ops := s.take()
	last, err := s.dec.Close()
	return append(ops, last...), errors.Join(s.err, err)
}

var errClosed = errors.New("dialect: stream is closed")

// State returns the state of the stream at Offset, as JSON. The bytes after Offset aren't in it: write them again after Restore. The caller
// must not change the result, because the next call returns it again if no frame has been decoded in between.
func (s *Stream) State() ([]byte, error) {
	if s.state != nil && s.stateAt == s.offset {
		return s.state, nil
	}
	dec, err := s.dec.State()
	if err != nil {
		return nil, fmt.Errorf("dialect %s: state: %w", s.d.Name, err)
	}
	// Without encoding/json, which would validate and compact the decoder's JSON again: a state is stored with nearly every commit
	// of a pushed turn.
	b := strconv.AppendInt(append(make([]byte, 0, len(dec)+48), `{"offset":`...), s.offset, 10)
	b = append(append(append(b, `,"decoder":`...), dec...), '}')
	if !s.isShared {
		s.state, s.stateAt = b, s.offset
	}
	return b, nil
}

// Restore continues from a state that State returned. It must be the first call on a new Stream of the same dialect.
func (s *Stream) Restore(state []byte) error {
	if s.isUsed {
		return fmt.Errorf("dialect %s: restore: the stream was used", s.d.Name)
	}
	var st struct {
		Offset  int64           `json:"offset"`
		Decoder json.RawMessage `json:"decoder"`
	}
	if err := json.Unmarshal(state, &st); err != nil {
		return fmt.Errorf("dialect %s: restore: %w", s.d.Name, err)
	}
	if st.Offset < 0 {
		return fmt.Errorf("dialect %s: restore: offset %d", s.d.Name, st.Offset)
	}
	if err := s.dec.Restore(st.Decoder); err != nil {
		return fmt.Errorf("dialect %s: restore: %w", s.d.Name, err)
	}
	s.isUsed = true
	s.base, s.offset = st.Offset, st.Offset
	s.sse.MidStream = st.Offset > 0
	return nil
}
