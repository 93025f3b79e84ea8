package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/sse"
)

// Stream decodes a body: bytes, cut anywhere, into frames, and frames into operations. It is not safe for concurrent use.
//
// A body can be taken up elsewhere: a new Stream that was restored from State and is fed the body from Offset on goes
// on exactly as the first would have.
type Stream struct {
	d          Dialect
	dec        Decoder
	sse        sse.Reader
	lines      lineReader
	base       int64  // bytes of the body before the first that this Stream was fed
	offset     int64  // bytes of the body up to the last boundary
	pending    []byte // the bytes after it
	ops        []event.Event
	isUsed     bool
	progressed bool  // a frame of the last Write advanced the answer
	err        error // sticky
	closed     bool
}

// NewStream makes a stream at the beginning of a body.
func NewStream(d Dialect) *Stream {
	return &Stream{d: d, dec: d.Decoder(), lines: lineReader{limit: MaxLine}}
}

// Write takes the next bytes and returns the operations of the frames that they complete. With an error come the
// operations of the frames before it; the Stream is spent then but for Close. p is not kept.
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

// pend appends p to what is pending and drops the first n bytes, which are decoded.
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

func (s *Stream) event(e sse.Event) error {
	return s.decode(Frame{Event: e.Name, ID: e.ID, Data: e.Data})
}

func (s *Stream) line(b []byte) error { return s.decode(Frame{Data: b}) }

func (s *Stream) decode(f Frame) error {
	ops, err := s.dec.Decode(f)
	s.progressed = s.progressed || err == nil && s.d.Advances(f, ops)
	if s.ops == nil {
		s.ops = ops
	} else {
		s.ops = append(s.ops, ops...)
	}
	return err
}

func (s *Stream) take() []event.Event {
	ops := s.ops
	s.ops = nil
	return ops
}

// Advanced reports whether the last Write completed a frame that shows that the agent works, see [Dialect.Advances].
func (s *Stream) Advanced() bool { return s.progressed }

// Dialect returns the name of the stream's dialect.
func (s *Stream) Dialect() string { return s.d.Name }

// Decoder returns the stream's decoder without its wrappers, for the methods that only its dialect has. The caller must not feed it.
func (s *Stream) Decoder() Decoder { return Unwrap(s.dec) }

// Offset returns how many bytes of the body are done with: all up to the end of the last wholly decoded frame, and what
// follows it without beginning another.
func (s *Stream) Offset() int64 { return s.offset }

// Pending returns a copy of the bytes that were written after Offset.
func (s *Stream) Pending() []byte { return append([]byte(nil), s.pending...) }

// Held returns how many bytes Pending has.
func (s *Stream) Buffered() int { return len(s.pending) }

// Close says that the body ends here. A last line of NDJSON needs no line end; an event of SSE that no blank line ends
// is none, as its format says. Close returns what the decoder held back, and [ErrCutShort] where the dialect's own end
// was not seen; operations and error may come together. A second call returns nothing.
func (s *Stream) Close() ([]event.Event, error) {
	if s.closed {
		return nil, nil
	}
	s.closed = true
	s.ops = nil
	if s.d.Framing == Lines && s.err == nil {
		// A line that is no JSON was cut in the middle; the decoder says what that means for the stream.
		if line := trimLine(s.pending); len(line) > 0 && json.Valid(line) {
			if s.err = s.line(line); s.err == nil {
				s.offset += int64(len(s.pending))
				s.pending = nil
			}
		}
	}
	out := s.take()
	ops, err := s.dec.Close()
	return append(out, ops...), errors.Join(s.err, err)
}

var errClosed = errors.New("dialect: stream is closed")

type streamState struct {
	Offset  int64           `json:"offset"`
	Decoder json.RawMessage `json:"decoder"`
}

// State returns, as JSON, where the stream stands as of Offset.
func (s *Stream) State() ([]byte, error) {
	dec, err := s.dec.State()
	if err != nil {
		return nil, fmt.Errorf("dialect %s: state: %w", s.d.Name, err)
	}
	// By hand: a state is written with nearly every commit of a pushed turn, and the decoder's is JSON as it is.
	b := strconv.AppendInt(append(make([]byte, 0, len(dec)+48), `{"offset":`...), s.offset, 10)
	return append(append(append(b, `,"decoder":`...), dec...), '}'), nil
}

// Restore takes up a stream from its state. It is called on a new Stream, before anything else.
func (s *Stream) Restore(state []byte) error {
	if s.isUsed {
		return fmt.Errorf("dialect %s: restore: the stream was used", s.d.Name)
	}
	var st streamState
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
