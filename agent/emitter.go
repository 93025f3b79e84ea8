// The emitter: the API with which agents in Go write their answers, as operations to a sink.

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// Sink receives the output of an [Emitter]. The gateway implements it, and may implement the optional sinks of this package too; the
// Emitter looks for each of them with a type assertion.
type Sink interface {
	// Emit appends operations, in order, and the agent's state after them; a nil state leaves it unchanged. It may return before they
	// are durable, and blocks while too many are pending. After the turn's end it returns ErrTurnOver.
	Emit(ctx context.Context, ops []event.Event, state json.RawMessage) error
	// Flush blocks until everything that was emitted is durable.
	Flush(ctx context.Context) error
	// Wait opens a request and blocks until it is answered.
	Wait(ctx context.Context, r event.Request) (event.Answer, error)
	// ReportProgress restarts the turn's limit on silence, as Emit does if it has operations.
	ReportProgress()
}

// LateSink is a sink that counts output which arrives after the turn's end. n is the number of operations, or 1 for a frame that was
// not decoded. The Emitter drops them in any case.
type LateSink interface {
	CountLate(n int)
}

// TroubleSink is a sink that remembers why the last attempt failed, to explain a turn that then fails for its silence.
type TroubleSink interface {
	// Trouble stores the error of an attempt that will be retried. A nil error and any progress clear it.
	Trouble(e *Error)
}

// ErrTurnOver is returned after the turn has ended. Later output is dropped.
var ErrTurnOver = errors.New("agent: turn is over")

// Emitter writes the output of one turn. Its methods may be called from several goroutines. Those that return an error return
// [ErrTurnOver] after the turn has ended, or the context's error.
type Emitter struct {
	ctx  context.Context
	sink Sink

	mu       sync.Mutex
	closed   bool
	segments dialect.Segments
	ordinal  int
	open     string // key of the open reasoning part
	release  []func() []event.Event
}

// NewEmitter returns the emitter of one turn. The context is that of the turn.
func NewEmitter(ctx context.Context, sink Sink) *Emitter { return &Emitter{ctx: ctx, sink: sink} }

// message is the upstream key of the message that Text, Status and the like write to. It equals the key that [dialect.Segments] uses,
// so that they all write to the same message.
const message = dialect.SegmentsMessage

// Text appends to the answer.
func (e *Emitter) Text(text string) error {
	return e.emit(func() []event.Event { return append(e.endReasoning(), e.segments.Text(text)...) })
}

// Status shows what the agent is doing. By default it replaces the previous status; with [dialect.Append] it is appended to it.
func (e *Emitter) Status(text string, merge dialect.Merge) error {
	return e.emit(func() []event.Event { return append(e.endReasoning(), e.segments.Callback(text, merge)...) })
}

// Reasoning appends to the agent's thinking.
func (e *Emitter) Reasoning(text string) error {
	return e.emit(func() []event.Event {
		var ops []event.Event
		if e.open == "" {
			ops = e.part(event.KindReasoning, &event.Body{})
			e.open = ops[len(ops)-1].Part
		}
		return append(ops, event.Event{Type: event.PartAppend, Message: message, Part: e.open, Text: text})
	})
}

// Media shows a picture, sound or file.
func (e *Emitter) Media(m event.Media) error {
	return e.wholePart(event.KindMedia, &event.Body{Media: &m})
}

// Data adds a structured part: JSON that clients may render.
func (e *Emitter) Data(data json.RawMessage) error {
	return e.wholePart(event.KindData, &event.Body{Data: data})
}

// wholePart emits a part that is complete from the beginning.
func (e *Emitter) wholePart(kind event.PartKind, b *event.Body) error {
	return e.emit(func() []event.Event {
		ops := append(e.endReasoning(), e.part(kind, b)...)
		return append(ops, event.Event{Type: event.PartEnd, Message: message, Part: ops[len(ops)-1].Part})
	})
}

// Phase shows progress that isn't part of the answer, such as "starting" or "retrying".
func (e *Emitter) Phase(phase string) error {
	return e.Emit([]event.Event{{Type: event.TurnUpdate, Body: &event.Body{Phase: phase}}}, nil)
}

// Model sets the name of the model that answers.
func (e *Emitter) Model(name string) error {
	return e.Emit([]event.Event{{Type: event.TurnUpdate, Body: &event.Body{Model: name}}}, nil)
}

// Upstream stores the id of the upstream's run and blocks until it is durable. Call it before the request that starts the run, so that the
// run can be found again after a crash.
func (e *Emitter) Upstream(u event.Upstream, state json.RawMessage) error {
	if err := e.Emit([]event.Event{{Type: event.TurnUpdate, Body: &event.Body{Upstream: &u}}}, state); err != nil {
		return err
	}
	return e.sink.Flush(e.ctx)
}

// Ask opens a request and blocks until a person has answered it.
func (e *Emitter) Ask(ctx context.Context, r event.Request) (event.Answer, error) {
	if err := e.emit(e.endReasoning); err != nil {
		return event.Answer{}, err
	}
	return e.sink.Wait(ctx, r)
}

// End ends the turn before Run returns, with an outcome and its usage.
func (e *Emitter) End(o event.Outcome, reason string, usage *event.Usage) error {
	return e.emit(func() []event.Event {
		ops := append(e.endReasoning(), e.segments.Close()...)
		return append(ops, event.Event{Type: event.TurnEnd, Body: &event.Body{Outcome: o, Reason: reason, Usage: usage}})
	})
}

// ReportProgress reports progress that has no operations and restarts the turn's limit on silence. Don't call it for keep-alives of
// a connection, since a turn whose upstream hangs would then never fail.
func (e *Emitter) ReportProgress() { e.sink.ReportProgress() }

// Trouble stores the error of an attempt that will be retried. If the turn then fails for its silence, it fails with this error. A nil
// error and any progress clear it.
func (e *Emitter) Trouble(err *Error) {
	if s, ok := e.sink.(TroubleSink); ok {
		s.Trouble(err)
	}
}

// Log returns a logger whose records have the ids of the turn and the conversation.
func (e *Emitter) Log() *slog.Logger {
	if l, ok := e.sink.(interface{ Log() *slog.Logger }); ok {
		return l.Log()
	}
	return slog.New(slog.DiscardHandler)
}

// Flush blocks until everything that was emitted is durable.
func (e *Emitter) Flush() error { return e.sink.Flush(e.ctx) }

// Emit appends operations of a dialect, together with the state that a [Resumer] gets after a restart. Both are stored in one commit, so
// the state always matches the log. A nil state leaves it unchanged.
func (e *Emitter) Emit(ops []event.Event, state json.RawMessage) error {
	if len(ops) == 0 && state == nil {
		e.sink.ReportProgress()
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return e.countLate(max(len(ops), 1))
	}
	return e.sink.Emit(e.ctx, ops, state)
}

// Decode runs one step of a decoder and emits its result, both under the emitter's lock, so that the turn can't end between the two. A
// step without operations doesn't count as progress; if it was progress, call [Emitter.ReportProgress].
func (e *Emitter) Decode(step func() ([]event.Event, json.RawMessage, error)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return e.countLate(1)
	}
	ops, state, err := step()
	if len(ops) > 0 || state != nil {
		if eerr := e.sink.Emit(e.ctx, ops, state); eerr != nil {
			return eerr
		}
	}
	return err
}

// OnEnd registers a function that returns operations which a decoder still buffers. [Emitter.Close] calls it at the turn's end.
func (e *Emitter) OnEnd(flush func() []event.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.release = append(e.release, flush)
}

// CloseOnEnd is [Emitter.OnEnd] with the operations that a decoder still buffers. Its lock is the emitter's.
func (e *Emitter) CloseOnEnd(d dialect.Decoder) {
	e.OnEnd(func() []event.Event {
		ops, _ := d.Close() // an error for an incomplete stream is expected, since the turn ended before it
		return ops
	})
}

// Close rejects all further output and returns the operations that were still buffered. The gateway calls it at the turn's end; further
// calls return nil.
func (e *Emitter) Close() []event.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	ops := append(e.endReasoning(), e.segments.Close()...)
	for _, flush := range e.release {
		ops = append(ops, flush()...)
	}
	return ops
}

// countLate reports output after the turn's end to the sink. It returns ErrTurnOver.
func (e *Emitter) countLate(n int) error {
	if l, ok := e.sink.(LateSink); ok {
		l.CountLate(n)
	}
	return ErrTurnOver
}

// emit makes operations and passes them to the sink with the lock held, so that concurrent callers can't mix their operations. A
// call that makes none, such as an empty delta, still counts as progress.
func (e *Emitter) emit(make func() []event.Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return e.countLate(1)
	}
	ops := make()
	if len(ops) == 0 {
		e.sink.ReportProgress()
		return nil
	}
	return e.sink.Emit(e.ctx, ops, nil)
}

// part returns the operations that start a part; the last of them is its part.start.
func (e *Emitter) part(kind event.PartKind, b *event.Body) []event.Event {
	ops := append(e.segments.Begin(), e.segments.Break()...)
	e.ordinal++
	b.Kind = kind
	return append(ops, event.Event{Type: event.PartStart, Message: message, Part: fmt.Sprintf("%s%d", kind, e.ordinal), Body: b})
}

func (e *Emitter) endReasoning() []event.Event {
	if e.open == "" {
		return nil
	}
	end := event.Event{Type: event.PartEnd, Message: message, Part: e.open}
	e.open = ""
	return []event.Event{end}
}
