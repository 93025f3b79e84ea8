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

// Sink takes what an [Emitter] says. The gateway implements it.
type Sink interface {
	// Emit hands operations on, in order, with the agent's state after them (nil: unchanged). It may return before they
	// are durable, and blocks while too much waits. After the turn's end it returns ErrTurnOver.
	Emit(ctx context.Context, ops []event.Event, state json.RawMessage) error
	// Flush returns when all that was emitted is durable.
	Flush(ctx context.Context) error
	// Wait opens a request and returns its answer.
	Wait(ctx context.Context, r event.Request) (event.Answer, error)
	// Alive resets the limit on silence. Emit does so if it has operations.
	Alive()
}

// LateSink is a sink that wants to know of what agents say after their turn's end: so many operations, or frames that
// nobody decodes any more. It is dropped whatever the sink does.
type LateSink interface {
	Late(n int)
}

// TroubleSink is a sink that explains a silent turn by what its last attempt failed of.
type TroubleSink interface {
	// Trouble notes why an attempt failed that will be repeated; nil forgets it. Progress forgets it too.
	Trouble(e *Error)
}

// ErrTurnOver says that the turn has ended, and that nothing said from now on is seen.
var ErrTurnOver = errors.New("agent: turn is over")

// Emitter is what an agent speaks through. All methods may be called from several goroutines; each returns
// [ErrTurnOver] once the turn has ended, or the context's error.
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

// message is the upstream key of the one message that the simple methods write; it is that of dialect.Segments.
const message = dialect.SegmentsMessage

// Text appends to the answer.
func (e *Emitter) Text(text string) error {
	return e.emit(func() []event.Event { return append(e.endReasoning(), e.segments.Text(text)...) })
}

// Status shows what the agent is doing. By default it takes the place of the status before it; with [dialect.Append] it extends it.
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
	return e.emit(func() []event.Event {
		ops := append(e.endReasoning(), e.part(event.KindMedia, &event.Body{Media: &m})...)
		return append(ops, event.Event{Type: event.PartEnd, Message: message, Part: ops[len(ops)-1].Part})
	})
}

// Data adds a structured part, JSON that readers who know it can show.
func (e *Emitter) Data(data json.RawMessage) error {
	return e.emit(func() []event.Event {
		ops := append(e.endReasoning(), e.part(event.KindData, &event.Body{Data: data})...)
		return append(ops, event.Event{Type: event.PartEnd, Message: message, Part: ops[len(ops)-1].Part})
	})
}

// Phase tells of progress that is no part of the answer, such as "starting" or "retrying".
func (e *Emitter) Phase(phase string) error {
	return e.Emit([]event.Event{{Type: event.TurnUpdate, Body: &event.Body{Phase: phase}}}, nil)
}

// Model names the model that answers.
func (e *Emitter) Model(name string) error {
	return e.Emit([]event.Event{{Type: event.TurnUpdate, Body: &event.Body{Model: name}}}, nil)
}

// Upstream makes durable, before it returns, under which run the agent is about to call upstream.
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

// End ends the turn in another way than by returning from Run.
func (e *Emitter) End(o event.Outcome, reason string, usage *event.Usage) error {
	return e.emit(func() []event.Event {
		ops := append(e.endReasoning(), e.segments.Close()...)
		return append(ops, event.Event{Type: event.TurnEnd, Body: &event.Body{Outcome: o, Reason: reason, Usage: usage}})
	})
}

// Alive reports progress that gives no operations; it resets the limit on silence. A connection that is only kept open is no progress.
func (e *Emitter) Alive() { e.sink.Alive() }

// Trouble notes why an attempt failed that will be repeated. If the turn then ends for its silence, this is the error that it ends
// with. nil forgets it, as progress does.
func (e *Emitter) Trouble(err *Error) {
	if s, ok := e.sink.(TroubleSink); ok {
		s.Trouble(err)
	}
}

// Log is where the agent logs what concerns this turn; what it writes carries the ids of turn and conversation.
func (e *Emitter) Log() *slog.Logger {
	if l, ok := e.sink.(interface{ Log() *slog.Logger }); ok {
		return l.Log()
	}
	return slog.New(slog.DiscardHandler)
}

// Flush returns when all that was emitted is durable.
func (e *Emitter) Flush() error { return e.sink.Flush(e.ctx) }

// Emit hands a dialect's operations on. state is what a [Resumer] will get after a restart, given with the operations
// that lead to it so that the two can't come apart; nil leaves it unchanged.
func (e *Emitter) Emit(ops []event.Event, state json.RawMessage) error {
	if len(ops) == 0 && state == nil {
		e.sink.Alive()
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return e.late(max(len(ops), 1))
	}
	return e.sink.Emit(e.ctx, ops, state)
}

// Decode runs one step of a decoder under the emitter's lock and emits what it gives, so that the turn's end can't fall
// between the two. A step without operations is no progress; after one that is, call [Emitter.Alive].
func (e *Emitter) Decode(step func() ([]event.Event, json.RawMessage, error)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return e.late(1)
	}
	ops, state, err := step()
	if len(ops) > 0 || state != nil {
		if eerr := e.sink.Emit(e.ctx, ops, state); eerr != nil {
			return eerr
		}
	}
	return err
}

// OnEnd registers what a decoder holds back, to be said when the turn ends, however it ends.
func (e *Emitter) OnEnd(held func() []event.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.release = append(e.release, held)
}

// Close fences the emitter and returns the operations that were held back. The gateway calls it once, at the turn's end.
func (e *Emitter) Close() []event.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	ops := append(e.endReasoning(), e.segments.Close()...)
	for _, held := range e.release {
		ops = append(ops, held()...)
	}
	return ops
}

// late tells the sink of what comes after the turn's end.
func (e *Emitter) late(n int) error {
	if l, ok := e.sink.(LateSink); ok {
		l.Late(n)
	}
	return ErrTurnOver
}

func (e *Emitter) emit(make func() []event.Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return e.late(1)
	}
	ops := make()
	if len(ops) == 0 {
		e.sink.Alive()
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
