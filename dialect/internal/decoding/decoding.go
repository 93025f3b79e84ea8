// Package decoding is what decoders of any format begin and end with: which frames they still take, what becomes of one that is
// invalid, and how a stream closes.
package decoding

import (
	"errors"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// Base is what a decoder holds beside its state. The zero value is ready.
//
// How many frames there were and whether the turn has ended is of the state, where each format has it by its own name; so a Base
// is told where they are.
type Base struct {
	ops    []event.Event // of the frame at hand
	failed error
	closed bool
}

// Emit adds an operation to those of the frame at hand.
func (b *Base) Emit(e event.Event) { b.ops = append(b.ops, e) }

// Failed reports whether a frame was invalid.
func (b *Base) Failed() bool { return b.failed != nil }

// Decode does for a dialect of that name what [dialect.Decoder] asks of Decode: it counts the frame and hands it to read, unless
// the stream is over. Where read fails, best with a [Fault], what it emitted is dropped.
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

// Close does what [dialect.Decoder] asks of Close: where the turn has not ended, flush emits what is held back. The stream was cut
// short then, unless flush knows better and ends the turn.
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

func (b *Base) take() []event.Event {
	ops := b.ops
	b.ops = nil
	return ops
}

// fault is an error with its reason apart, as [dialect.Error] has them.
type fault struct {
	reason string
	err    error
}

func (f *fault) Error() string { return f.reason }
func (f *fault) Unwrap() error { return f.err }

// Fault says what of a frame is invalid. err may be nil.
func Fault(reason string, err error) error { return &fault{reason, err} }

func reason(err error) string {
	if f := (*fault)(nil); errors.As(err, &f) {
		return f.reason
	}
	return err.Error()
}
