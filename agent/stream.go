// From a response body to operations: a decoder with a sink, and the end of the stream.

package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// ErrBroken is returned if reading a stream failed before its end, so that the rest of the answer is unknown.
var ErrBroken = errors.New("agent: stream broken")

// ErrTooLarge is returned if a stream is larger than [MaxStream].
var ErrTooLarge = fmt.Errorf("agent: the answer is larger than %d MiB", MaxStream>>20)

// MaxStream is the maximum size of a turn's stream, in bytes. It is far more than a person reads, but keeps a program that prints forever
// from filling the disk.
const MaxStream = 64 << 20

// readSize is the size of reads from a stream, in bytes. It is about the output of a fast agent between two commits.
const readSize = 32 << 10

// Stream decodes an upstream's stream in a dialect and writes the result to an emitter. One goroutine reads into it; HasBegun and
// HasEnded may be called from any goroutine. Operations that the decoder buffers are emitted when the turn ends.
type Stream struct {
	// Filter, if not nil, filters the operations of each step of the decoder. It returns the operations to emit and the agent's state
	// after them; a nil state leaves it unchanged. It is called with the emitter locked, so it must not call the emitter. An error ends
	// the reading. Set it before the first read.
	Filter func(ops []event.Event) ([]event.Event, json.RawMessage, error)

	emitter  *Emitter
	stream   *dialect.Stream
	hasBegun atomic.Bool
	hasEnded atomic.Bool
	turnKey  string // upstream key of the turn that this stream answers; other turns in it are nested
	closed   bool   // the decoder is closed; guarded by the emitter's lock
}

// NewStream returns a stream that decodes from the beginning.
func NewStream(emitter *Emitter, d dialect.Dialect) *Stream {
	return ResumeStream(emitter, dialect.NewStream(d))
}

// ResumeStream returns a stream that continues with the state of an existing decoder.
func ResumeStream(emitter *Emitter, d *dialect.Stream) *Stream {
	emitter.Body(d.Dialect())
	s := &Stream{emitter: emitter, stream: d}
	emitter.OnEnd(s.flush)
	return s
}

// ReadFrom reads until the stream ends the turn, or to the end of r. It blocks while the log is behind, which slows down a fast upstream.
// It returns nil after the dialect's end of the turn, [dialect.ErrCutShort] if r ends before it, [ErrBroken] if r fails, [ErrTooLarge] after
// [MaxStream] bytes, an error that wraps [dialect.Error] for invalid input, and [ErrTurnOver] if the turn was ended from outside.
func (s *Stream) ReadFrom(r io.Reader) (n int64, err error) {
	buf := make([]byte, readSize)
	var line chunks // an incomplete line
	var hold Reservation
	defer hold.Release()
	for {
		got, rerr := r.Read(buf)
		n += int64(got)
		if got > 0 {
			s.emitter.CaptureReceived(buf[:got])
		}
		// Only whole lines are decoded, so an upstream that sends single bytes counts as silent until a line is complete.
		line.add(buf[:got])
		if line.size > 0 && (rerr != nil || line.size > dialect.MaxLine || bytes.ContainsAny(buf[:got], "\r\n")) {
			size := line.size + s.stream.Buffered()
			write := func() error { return s.decode(func() ([]event.Event, error) { return s.stream.Write(line.take()) }) }
			if err := s.emitter.WithLargeFrame(size, write); err != nil {
				return n, err
			}
			if s.stream.Advanced() {
				s.emitter.ReportProgress()
			}
		}
		if err := hold.Resize(line.size + s.stream.Buffered()); err != nil {
			return n, err
		}
		switch {
		case s.HasEnded():
			return n, nil
		case errors.Is(rerr, io.EOF):
			return n, s.close()
		case rerr != nil:
			return n, fmt.Errorf("%w: %w", ErrBroken, rerr)
		case n > MaxStream:
			return n, ErrTooLarge
		}
	}
}

// close ends the input of the decoder.
func (s *Stream) close() error {
	return s.decode(func() ([]event.Event, error) {
		s.closed = true
		return s.stream.Close()
	})
}

// Fail emits what the decoder still buffers and ends the turn with an error, before Run returns: for agents that still have to clean up.
// It does nothing if the turn has ended.
func (s *Stream) Fail(e *Error) error {
	s.emitter.Failed(e)
	err := s.decode(func() ([]event.Event, error) {
		ops := s.flush()
		return append(ops, event.Event{Type: event.TurnEnd, Body: &event.Body{Outcome: event.Failed, Error: e.ViewerError()}}), nil
	})
	if errors.Is(err, ErrTurnOver) {
		return nil
	}
	return err
}

// Drop discards what the decoder still buffers, so that another stream can replace this one.
func (s *Stream) Drop() {
	s.emitter.mu.Lock()
	defer s.emitter.mu.Unlock()
	s.closed = true
}

// HasBegun reports whether the stream has emitted an operation.
func (s *Stream) HasBegun() bool { return s.hasBegun.Load() }

// HasEnded reports whether the stream has ended the turn.
func (s *Stream) HasEnded() bool { return s.hasEnded.Load() }

// decode runs one step of the decoder with the emitter locked, so that the operations and the state that belongs to them reach the
// sink together. Errors of the step are returned after its operations were emitted: what was decoded before the fault counts. After
// the end of the turn further output is dropped without an error.
func (s *Stream) decode(step func() ([]event.Event, error)) error {
	err := s.emitter.Decode(func() ([]event.Event, json.RawMessage, error) {
		ops, err := step()
		var state json.RawMessage
		if s.Filter != nil {
			var terr error
			ops, state, terr = s.Filter(ops)
			err = errors.Join(err, terr)
		}
		for i := range ops {
			// The first upstream turn is this one; the others are nested in it.
			s.turnKey = cmp.Or(s.turnKey, ops[i].Turn)
			s.hasBegun.Store(true)
			if ops[i].Type == event.TurnEnd && (ops[i].Turn == "" || ops[i].Turn == s.turnKey) {
				s.hasEnded.Store(true)
			}
		}
		return ops, state, err
	})
	if errors.Is(err, ErrTurnOver) && s.HasEnded() {
		return nil
	}
	return err
}

// flush returns the operations that the decoder still buffers at the turn's end. The emitter must be locked.
func (s *Stream) flush() []event.Event {
	if s.closed {
		return nil
	}
	s.closed = true
	// An error for an incomplete stream is expected here, since the turn ended before it.
	ops, _ := s.stream.Close()
	if s.Filter != nil {
		ops, _, _ = s.Filter(ops)
	}
	return ops
}
