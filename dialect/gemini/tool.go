package gemini

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

// serverCall is a call that the server runs itself. Its part stays open until the result arrives, even if other parts are in between. A call
// without an id is matched by a result without one.
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

// serve applies a toolCall. Its arguments are complete.
func (d *decoder) serve(a *answer, t *serverTool) error {
	if err := d.beginServed(a, t); err != nil {
		return err
	}
	d.input(a, object(t.Args))
	return nil
}

// beginServed starts the part of a call that the server runs. The part doesn't count as the open one, so other parts may start before its
// result arrives. The tool is named by its type, such as "google_search_web".
func (d *decoder) beginServed(a *answer, t *serverTool) error {
	if err := d.begin(a, kindCall, &event.Body{Kind: event.KindTool, Name: strings.ToLower(t.Type), Call: t.ID, State: event.PartRunning}); err != nil {
		return err
	}
	a.Open = ""
	a.ServerCalls = append(a.ServerCalls, serverCall{ID: t.ID, Part: a.part()})
	return nil
}

// finishServed applies a toolResponse: the output of the call with the same id. If the call was in an earlier stream, its part is started
// here, so that the output is shown.
func (d *decoder) finishServed(a *answer, t *serverTool) error {
	i := slices.IndexFunc(a.ServerCalls, func(s serverCall) bool { return s.ID == t.ID })
	if i < 0 {
		i = len(a.ServerCalls)
		if err := d.beginServed(a, t); err != nil {
			return err
		}
	}
	part := a.ServerCalls[i].Part
	a.ServerCalls = slices.Delete(a.ServerCalls, i, i+1)
	if output := decoding.Compact(t.Response); output != "null" {
		d.append(a, part, event.Output, output)
	}
	d.Emit(event.Event{Type: event.PartUpdate, Message: a.key(), Part: part, Body: &event.Body{State: event.PartDone}})
	d.Emit(event.Event{Type: event.PartEnd, Message: a.key(), Part: part})
	return nil
}

// endServed ends the calls without a result as failed, because their candidate has ended.
func (d *decoder) endServed(a *answer) {
	for _, s := range a.ServerCalls {
		d.Emit(event.Event{Type: event.PartUpdate, Message: a.key(), Part: s.Part, Body: &event.Body{State: event.PartFailed, Error: &event.Error{Message: "no result"}}})
		d.Emit(event.Event{Type: event.PartEnd, Message: a.key(), Part: s.Part})
	}
	a.ServerCalls = nil
}
