// Package decoding implements the rules that the decoders of all formats share: which frames a decoder still accepts, what happens
// after an invalid one, how a stream closes, and how a stored state is restored.
//
// A decoder embeds a [Base] next to its state struct and implements [dialect.Decoder] with one line a method:
//
//	func (d *decoder) Decode(f dialect.Frame) ([]event.Event, error) {
//		return d.Base.Decode(name, &d.Frames, d.IsOver, f, d.decodeFrame)
//	}
//	func (d *decoder) Close() ([]event.Event, error) { return d.Base.Close(&d.IsOver, d.flushOpen) }
//	func (d *decoder) State() ([]byte, error)        { return decoding.State(&d.Base, states, &d.state) }
//	func (d *decoder) Restore(b []byte) error        { return decoding.Restore(b, &d.state, nil) }
//
// decodeFrame and flushOpen call [Base.Emit] for each operation. Formats with one message a turn and parts found by key don't need
// this package directly: package canvas builds on it.
package decoding

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// Base is the part of a decoder that isn't stored: the operations of the current frame and whether the decoder still accepts frames.
// The zero value is ready to use.
//
// The frame counter and the end of the turn belong to the decoder's stored state, whose JSON names differ from format to format.
// Decode and Close therefore take them as arguments.
type Base struct {
	ops    []event.Event // of the current frame
	failed error         // the error of the invalid frame; every later Decode returns it again
	closed bool
	size   int // of the last encoded state
}

// Emit appends operations to those of the current frame. The first list is used as it is, because most frames give one.
func (b *Base) Emit(ops ...event.Event) {
	if len(b.ops) == 0 {
		b.ops = ops
		return
	}
	b.ops = append(b.ops, ops...)
}

// SetModel stores the model that a frame names in *current, a field of the decoder's state, and emits a turn.update. Frames repeat the
// model or leave it out, so SetModel does nothing if name is empty or unchanged.
func (b *Base) SetModel(current *string, name string) {
	if name != "" && name != *current {
		*current = name
		b.Emit(event.Event{Type: event.TurnUpdate, Body: &event.Body{Model: name}})
	}
}

// EndMessage emits the end of the message with the given key. reason is the stop reason that readers see; it may be empty.
func (b *Base) EndMessage(key, reason string) {
	e := event.Event{Type: event.MessageEnd, Message: key}
	if reason != "" {
		e.Body = &event.Body{Reason: reason}
	}
	b.Emit(e)
}

// Failed reports whether a frame was invalid. A format whose end is the end of the body must then not report the turn as complete.
func (b *Base) Failed() bool { return b.failed != nil }

// Decode implements [dialect.Decoder] for the dialect called name: it counts the frame in *frames and passes it to decodeFrame. After
// the end of the turn or after Close it ignores frames, and after an invalid frame it returns that frame's error again.
//
// If decodeFrame fails, Decode drops the operations that it emitted, so that no half of a frame is stored, and returns an
// [*dialect.Error]. decodeFrame should return a [Fault], which separates the reason from the cause.
func (b *Base) Decode(name string, frames *int, isOver bool, f dialect.Frame, decodeFrame func(dialect.Frame) error) ([]event.Event, error) {
	if b.failed != nil {
		return nil, b.failed
	}
	if isOver || b.closed {
		return nil, nil
	}
	*frames++
	b.ops = nil
	if err := decodeFrame(f); err != nil {
		b.ops = nil
		b.failed = &dialect.Error{Dialect: name, Frame: *frames, Reason: reason(err), Err: errors.Unwrap(err)}
		return nil, b.failed
	}
	return b.take(), nil
}

// Close implements [dialect.Decoder]. If the turn hasn't ended, flush emits the buffered text, and Close returns
// [dialect.ErrCutShort] with it. A format whose end is the end of the body sets *isOver in flush; Close then succeeds.
// A second call returns nothing.
func (b *Base) Close(isOver *bool, flush func()) ([]event.Event, error) {
	if *isOver || b.closed {
		b.closed = true
		return nil, nil
	}
	b.closed = true
	b.ops = nil
	if flush(); *isOver {
		return b.take(), nil
	}
	return b.take(), dialect.ErrCutShort
}

// take returns the operations of a frame, and begins those of the next.
func (b *Base) take() []event.Event {
	ops := b.ops
	b.ops = nil
	return ops
}

// State encodes a decoder's state.
func State[S any](b *Base, w jsonscan.Writer[S], state *S) ([]byte, error) {
	encoded, err := w.Append(make([]byte, 0, b.size+16), state)
	b.size = len(encoded)
	return encoded, err
}

// Restore sets *state to a state that the decoder's State method returned. check, which may be nil, rejects what the JSON allows but
// the decoder can't work with, such as null entries: a stored state may be damaged. If Restore fails, *state is unchanged.
func Restore[S any](encoded []byte, state *S, check func(*S) error) error {
	var restored S
	if err := json.Unmarshal(encoded, &restored); err != nil {
		return err
	}
	if check != nil {
		if err := check(&restored); err != nil {
			return err
		}
	}
	*state = restored
	return nil
}

// fault separates the reason of an error from its cause, as [dialect.Error] does.
type fault struct {
	reason string
	err    error
}

func (f *fault) Error() string { return f.reason }
func (f *fault) Unwrap() error { return f.err }

// Fault returns the error for an invalid frame: the reason names the field or rule, and err is the cause, which may be nil.
func Fault(reason string, err error) error { return &fault{reason, err} }

// reason returns the text of a fault, or that of another error.
func reason(err error) string {
	if f := (*fault)(nil); errors.As(err, &f) {
		return f.reason
	}
	return err.Error()
}

// StopReason returns the reason that readers get for a format's own stop reason. All names of a limit of length become
// [event.ReasonLength]; any other reason is returned as it is.
func StopReason(name string) string {
	switch strings.ToLower(name) {
	case "length", "max_tokens", "max_output_tokens", "max_tokens_exceeded", "token_limit":
		return event.ReasonLength
	}
	return name
}
