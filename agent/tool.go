package agent

import (
	"strconv"

	"github.com/leat-dev/leat/event"
)

// Tool is one call of a tool, shown while it runs. It may be used from several goroutines.
type Tool struct {
	e   *Emitter
	key string
}

// Tool shows a call of the named tool; call is its id upstream and may be empty.
func (e *Emitter) Tool(name, call string) (*Tool, error) {
	t := &Tool{e: e}
	err := e.emit(func() []event.Event {
		ops := append(e.endReasoning(), e.part(event.KindTool, &event.Body{Name: name, Call: call, State: event.PartRunning})...)
		t.key = ops[len(ops)-1].Part
		return ops
	})
	return t, err
}

// Input appends to the call's arguments.
func (t *Tool) Input(text string) error { return t.append(event.Input, text) }

// Output appends to the output of the tool.
func (t *Tool) Output(text string) error { return t.append(event.Output, text) }

// Stderr appends to the standard error of the tool.
func (t *Tool) Stderr(text string) error { return t.append(event.Stderr, text) }

// Title sets a short description of the call.
func (t *Tool) Title(title string) error {
	return t.e.emit(func() []event.Event {
		return []event.Event{{Type: event.PartUpdate, Message: message, Part: t.key, Body: &event.Body{Title: &title}}}
	})
}

// Done ends the call.
func (t *Tool) Done() error { return t.end(&event.Body{State: event.PartDone}) }

// Fail ends the call with an error.
func (t *Tool) Fail(reason string) error {
	return t.end(&event.Body{State: event.PartFailed, Error: &event.Error{Message: reason}})
}

// Exit ends the call by the exit status of a process.
func (t *Tool) Exit(status int) error {
	if status == 0 {
		return t.Done()
	}
	return t.Fail("exit status " + strconv.Itoa(status))
}

func (t *Tool) append(f event.Field, text string) error {
	if text == "" {
		return nil
	}
	return t.e.emit(func() []event.Event {
		return []event.Event{{Type: event.PartAppend, Message: message, Part: t.key, Field: f, Text: text}}
	})
}

func (t *Tool) end(b *event.Body) error {
	return t.e.emit(func() []event.Event {
		return []event.Event{
			{Type: event.PartUpdate, Message: message, Part: t.key, Body: b},
			{Type: event.PartEnd, Message: message, Part: t.key},
		}
	})
}
