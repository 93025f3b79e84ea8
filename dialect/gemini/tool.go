package gemini

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
)

// serverCall is a call that the server runs itself. Its part stays open until the result arrives, even if other parts come between.
type serverCall struct {
	ID   string `json:"id,omitempty"`
	Part string `json:"part"`
}

// serverTool is a call that the server runs, or its result.
type serverTool struct {
	ID       string          `json:"id"`
	Type     string          `json:"toolType"`
	Args     json.RawMessage `json:"args"`
	Response json.RawMessage `json:"response"`
}

// serve takes a call that the server runs.
func (d *decoder) serve(a *answer, t *serverTool) error {
	if err := d.beginServed(a, t); err != nil {
		return err
	}
	d.input(a, object(t.Args))
	return nil
}

func (d *decoder) beginServed(a *answer, t *serverTool) error {
	if err := d.begin(a, kindCall, &event.Body{Kind: event.KindTool, Name: strings.ToLower(t.Type), Call: t.ID, State: event.PartRunning}); err != nil {
		return err
	}
	a.Open = "" // the part is not the one at hand: what comes next may be of any kind
	a.ServerCalls = append(a.ServerCalls, serverCall{ID: t.ID, Part: a.part()})
	return nil
}

// finishServed applies the result of a call that the server ran. The call may have been in an earlier stream.
func (d *decoder) finishServed(a *answer, t *serverTool) error {
	find := func() int { return slices.IndexFunc(a.ServerCalls, func(s serverCall) bool { return s.ID == t.ID }) }
	if find() < 0 {
		if err := d.beginServed(a, t); err != nil {
			return err
		}
	}
	i := find()
	part := a.ServerCalls[i].Part
	a.ServerCalls = slices.Delete(a.ServerCalls, i, i+1)
	if output := compact(t.Response); output != "" && output != "null" {
		d.Emit(event.Event{Type: event.PartAppend, Message: a.key(), Part: part, Field: event.Output, Text: output})
	}
	d.Emit(event.Event{Type: event.PartUpdate, Message: a.key(), Part: part, Body: &event.Body{State: event.PartDone}})
	d.Emit(event.Event{Type: event.PartEnd, Message: a.key(), Part: part})
	return nil
}

// endServed ends the calls whose results never came.
func (d *decoder) endServed(a *answer) {
	for _, s := range a.ServerCalls {
		d.Emit(event.Event{Type: event.PartUpdate, Message: a.key(), Part: s.Part, Body: &event.Body{State: event.PartFailed, Error: &event.Error{Message: "no result"}}})
		d.Emit(event.Event{Type: event.PartEnd, Message: a.key(), Part: s.Part})
	}
	a.ServerCalls = nil
}
