package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// ErrBroken says that a stream could not be read on, so that whether it would have gone on is not known.
var ErrBroken = errors.New("agent: stream broken off")

// ErrTooLarge says that a stream went on beyond [MaxStream].
var ErrTooLarge = fmt.Errorf("agent: the answer is larger than %d MiB", MaxStream>>20)

// MaxStream bounds what one turn's stream may hold, in bytes: far more than anybody reads, and little enough that a program
// that does not stop to print fills no disk.
const MaxStream = 64 << 20

// readSize is how many bytes of a stream are taken at once: what a fast agent says between two commits.
const readSize = 32 << 10

// Stream is what an agent's upstream writes, in a dialect, on its way to an emitter. One goroutine writes to it; Begun and
// Ended may be called from any.
//
// What the decoder holds back is said when the turn ends, however it ends.
type Stream struct {
	// Through, where it is set, gets what each step of the decoder gives before it is said, and returns what is to be said and
	// the agent's state after it (nil: unchanged). It is called under the emitter's lock; an error ends the reading. Set it
	// before anything is read.
	Through func(ops []event.Event) ([]event.Event, json.RawMessage, error)

	out    *Emitter
	stream *dialect.Stream
	begun  atomic.Bool
	ended  atomic.Bool
	own    string // upstream key of the turn that this stream is of
	closed bool   // guarded by the emitter's lock
}

// NewStream returns a stream at its beginning.
func NewStream(out *Emitter, d dialect.Dialect) *Stream { return TakeUp(out, dialect.NewStream(d)) }

// TakeUp returns a stream that goes on where the given one stands.
func TakeUp(out *Emitter, d *dialect.Stream) *Stream {
	out.Body(d.Dialect())
	s := &Stream{out: out, stream: d}
	out.OnEnd(s.held)
	return s
}

// ReadFrom reads until the stream has ended the turn, or to the end of r. It blocks while the log can't take more, which is
// how a fast upstream is slowed down. It returns nil where the dialect's own end was seen, [dialect.ErrCutShort] where r
// ended without it, [ErrBroken] where r failed, [ErrTooLarge] where it does not stop, an error that wraps [dialect.Error]
// for what can't be decoded, and [ErrTurnOver] where somebody else has ended the turn.
func (s *Stream) ReadFrom(r io.Reader) (n int64, err error) {
	buf := make([]byte, readSize)
	var line chunks // the beginning of one
	var hold Hold
	defer hold.Release()
	for {
		got, rerr := r.Read(buf)
		n += int64(got)
		if got > 0 {
			s.out.Received(buf[:got])
		}
		// Only whole frames are decoded, so that an upstream that sends its bytes one by one is silent meanwhile.
		line.add(buf[:got])
		if line.size > 0 && (rerr != nil || line.size > dialect.MaxLine || bytes.ContainsAny(buf[:got], "\r\n")) {
			size := line.size + s.stream.Held()
			write := func() error { return s.decode(func() ([]event.Event, error) { return s.stream.Write(line.take()) }) }
			if err := s.out.Large(size, write); err != nil {
				return n, err
			}
			if s.stream.Advanced() {
				s.out.Alive()
			}
		}
		if err := hold.Resize(line.size + s.stream.Held()); err != nil {
			return n, err
		}
		switch {
		case s.Ended():
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

// close says that no byte follows.
func (s *Stream) close() error {
	return s.decode(func() ([]event.Event, error) {
		s.closed = true
		return s.stream.Close()
	})
}

// Fail ends the turn at once, with what the decoder holds back and an error: for an agent that has still to clear up before
// its Run returns. Where the turn has ended already it does nothing.
func (s *Stream) Fail(e *Error) error {
	s.out.Failed(e)
	err := s.decode(func() ([]event.Event, error) {
		ops := s.held()
		return append(ops, event.Event{Type: event.TurnEnd, Body: &event.Body{Outcome: event.Failed, Error: e.Shown()}}), nil
	})
	if errors.Is(err, ErrTurnOver) {
		return nil
	}
	return err
}

// Drop gives the stream up without a word of what it holds back, so that another can be tried in its place.
func (s *Stream) Drop() {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	s.closed = true
}

// Begun reports whether anything was said.
func (s *Stream) Begun() bool { return s.begun.Load() }

// Ended reports whether the stream has ended the turn.
func (s *Stream) Ended() bool { return s.ended.Load() }

func (s *Stream) decode(step func() ([]event.Event, error)) error {
	err := s.out.Decode(func() ([]event.Event, json.RawMessage, error) {
		ops, err := step()
		var state json.RawMessage
		if s.Through != nil {
			var terr error
			ops, state, terr = s.Through(ops)
			err = errors.Join(err, terr)
		}
		for i := range ops {
			// The first upstream turn is this one, every further one is inside it.
			if s.own == "" {
				s.own = ops[i].Turn
			}
			s.begun.Store(true)
			if ops[i].Type == event.TurnEnd && (ops[i].Turn == "" || ops[i].Turn == s.own) {
				s.ended.Store(true)
			}
		}
		return ops, state, err
	})
	if errors.Is(err, ErrTurnOver) && s.Ended() {
		return nil
	}
	return err
}

// held releases what the decoder holds back when the turn ends. The emitter's lock is held.
func (s *Stream) held() []event.Event {
	if s.closed {
		return nil
	}
	s.closed = true
	// That the stream was not at its end is no news: the turn has ended before it.
	ops, _ := s.stream.Close()
	if s.Through != nil {
		ops, _, _ = s.Through(ops)
	}
	return ops
}
