package letta

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
)

func (d *Decoder) tool(call string) *tool {
	for i := len(d.Tools) - 1; i >= 0; i-- {
		if d.Tools[i].Call == call {
			return d.Tools[i]
		}
	}
	return nil
}

// calls takes a message with one call or several, whole or in deltas.
func (d *Decoder) calls(m *message) error {
	var list []call
	switch {
	case len(m.Calls) > 0 && m.Calls[0] == '[':
		if err := json.Unmarshal(m.Calls, &list); err != nil {
			return err
		}
	case m.Call == nil && len(m.Calls) > 0 && m.Calls[0] == '{':
		list = make([]call, 1)
		if err := json.Unmarshal(m.Calls, &list[0]); err != nil {
			return err
		}
	}
	if len(list) == 0 && m.Call != nil {
		list = []call{*m.Call}
	}
	whole := len(m.Calls) > 0 && m.Calls[0] == '[' || d.code && m.Otid == "" && m.Step == ""
	for i := range list {
		if slices.Contains(d.Done, list[i].ID) {
			continue // it is told again
		}
		d.enter(m)
		if err := d.call(m, &list[i], whole); err != nil {
			return err
		}
	}
	return nil
}

// call takes a call, whole or a delta of it.
func (d *Decoder) call(m *message, c *call, whole bool) error {
	d.endText()
	t := d.tool(c.ID)
	if c.ID == "" && len(d.Tools) > 0 {
		t = d.Tools[len(d.Tools)-1] // a delta that leaves it out
	}
	if t == nil {
		var err error
		if t, err = d.beginTool(m, c.ID, c.Name, m.Type); err != nil {
			return err
		}
		t.Origin = m.ID
	}
	if t.Over {
		return nil
	}
	if t.Name == "" && c.Name != "" && len(c.Name) <= event.MaxID {
		t.Name = c.Name
		d.emit(event.Event{Type: event.PartUpdate, Message: t.Message, Part: t.Part, Body: &event.Body{Name: c.Name}})
	}
	if len(c.Arguments) == 0 {
		return nil
	}
	if whole || t.Type != m.Type {
		d.input(t, c.Arguments)
		return nil
	}
	raw := c.Arguments
	if raw[0] == '{' {
		raw, _ = json.Marshal(string(raw)) // of a string
	}
	s, err := t.Held.JSON(raw)
	if err != nil {
		return err
	}
	d.growInput(t, s)
	return nil
}

// beginTool starts a tool's part, in the message at hand or one of its own.
func (d *Decoder) beginTool(m *message, id, name, typ string) (*tool, error) {
	if d.Count >= maxParts || len(d.Tools) >= maxParts {
		return nil, errParts
	}
	if len(id) > event.MaxID || len(name) > event.MaxID {
		return nil, errLong
	}
	if d.Key == "" {
		d.enter(m)
	}
	d.endText()
	t := &tool{Message: d.Key, Call: id, Name: name, Type: typ}
	if typ != "approval_request_message" {
		t.State = event.PartRunning
	}
	t.Part = d.part(&event.Body{Kind: event.KindTool, Name: name, Call: id, State: t.State})
	d.Tools = append(d.Tools, t)
	return t, nil
}

func (d *Decoder) growInput(t *tool, s string) {
	if s == "" {
		return
	}
	t.Input.Append(s)
	d.emit(event.Event{Type: event.PartAppend, Message: t.Message, Part: t.Part, Field: event.Input, Text: s})
}

func (d *Decoder) flushInput(t *tool) {
	if !t.Over {
		d.growInput(t, t.Held.Close())
	}
}

// input takes a call's arguments, whole: a person may have changed them.
func (d *Decoder) input(t *tool, raw json.RawMessage) {
	whole := plain(raw)
	if whole == "" {
		return
	}
	d.flushInput(t)
	d.set(t, event.Input, &t.Input, whole)
}

type snapshot interface {
	Next(string) (event.Type, string)
}

func (d *Decoder) set(t *tool, f event.Field, s snapshot, whole string) {
	if op, delta := s.Next(whole); op != "" {
		d.emit(event.Event{Type: op, Message: t.Message, Part: t.Part, Field: f, Text: delta})
	}
}

func (d *Decoder) toolState(t *tool, state event.PartState) {
	if t.State != state {
		t.State = state
		d.emit(event.Event{Type: event.PartUpdate, Message: t.Message, Part: t.Part, Body: &event.Body{State: state}})
	}
}

// streamed begins the id of a return that a running tool has so far.
const streamed = "synthetic-tool-return-stream"

// returns takes a message with what one tool gave, or several.
func (d *Decoder) returns(m *message) error {
	list := m.Returns
	if len(list) == 0 {
		list = []returned{{CallID: m.CallID, Status: m.Status, Return: m.Return, Stdout: m.Stdout, Stderr: m.Stderr}}
	}
	for i := range list {
		r := &list[i]
		t := d.tool(r.CallID)
		if t == nil {
			if slices.Contains(d.Done, r.CallID) {
				continue
			}
			// The call was in a stream before this one.
			var err error
			if t, err = d.beginTool(m, r.CallID, "", m.Type); err != nil {
				return err
			}
		}
		if t.Over {
			continue
		}
		if strings.HasPrefix(m.ID, streamed) {
			d.toolState(t, event.PartRunning)
			d.printed(t, plain(r.Return))
			continue
		}
		d.finish(t, r.Status, r)
	}
	return nil
}

// finish ends a tool with what it gave.
func (d *Decoder) finish(t *tool, status string, r *returned) {
	d.flushInput(t)
	b := &event.Body{State: event.PartDone}
	if r != nil {
		text := plain(r.Return)
		if text == "" {
			text = plain(r.Func)
		}
		if !d.code {
			// What a tool printed stands beside its value on V1, and is part of it on the App Server.
			if out := strings.Join(r.Stdout, "\n"); out != "" {
				text = strings.TrimSuffix(out, "\n") + "\n" + text
			}
			if stderr := strings.Join(r.Stderr, "\n"); stderr != "" {
				d.emit(event.Event{Type: event.PartAppend, Message: t.Message, Part: t.Part, Field: event.Stderr, Text: stderr})
			}
		}
		b.Data = d.output(t, text)
	}
	switch {
	case t.Denied || t.State == event.PartDenied:
		b.State = event.PartDenied
	case status == "error":
		b.State, b.Error = event.PartFailed, &event.Error{Message: "the tool failed"}
	}
	d.resolve(t, !t.Denied)
	t.State, t.Over = b.State, true
	d.emit(event.Event{Type: event.PartUpdate, Message: t.Message, Part: t.Part, Body: b})
	d.emit(event.Event{Type: event.PartEnd, Message: t.Message, Part: t.Part})
}

// ask makes the turn wait for a person.
func (d *Decoder) ask(t *tool, r event.Request) {
	t.Request, t.Asked = r.ID, true
	r.Tool, r.Part = t.Name, t.Part
	d.emit(event.Event{Type: event.TurnWait, Message: t.Message, Body: &event.Body{Request: &r}})
}

// resolve closes a request that somebody has answered of whom nothing else tells.
func (d *Decoder) resolve(t *tool, allowed bool) {
	if t.Request == "" {
		return
	}
	a := &event.Answer{ID: t.Request, Decision: event.Deny}
	if allowed {
		a.Decision = event.Approve
	}
	t.Request = ""
	d.emit(event.Event{Type: event.TurnResume, Body: &event.Body{Answer: a}})
}

// classified takes the App Server's own decision on the calls of a step.
func (d *Decoder) classified(m *message) {
	for _, t := range d.Tools {
		if slices.Contains(m.Refused, t.Call) && !t.Over {
			t.Denied = true
		}
	}
}

// control takes the App Server's question whether a tool may be used. It comes twice to who joins.
func (d *Decoder) control(f *frame) error {
	if f.Request == nil || f.Request.Subtype != "can_use_tool" || f.RequestID == "" {
		d.Seen.Add("control_request")
		return nil
	}
	if err := event.CheckID("request_id", f.RequestID); err != nil {
		return err
	}
	t := d.tool(f.Request.CallID)
	if t == nil {
		if slices.Contains(d.Done, f.Request.CallID) || !d.joins() {
			return nil
		}
		var err error
		if t, err = d.beginTool(&message{}, f.Request.CallID, f.Request.Tool, "approval_request_message"); err != nil {
			return err
		}
	}
	if !t.Asked && !t.Over && t.State == "" {
		r := event.Request{ID: f.RequestID, Kind: event.RequestApproval}
		if f.Request.Tool == AskTool {
			r.Kind = event.RequestInput
			r.Prompt, r.Options = question(f.Request.Input)
		}
		d.ask(t, r)
	}
	return nil
}

// runs takes the start of a tool.
func (d *Decoder) runs(m *message) error {
	t := d.tool(m.CallID)
	if t == nil {
		if slices.Contains(d.Done, m.CallID) {
			return nil
		}
		var err error
		if t, err = d.beginTool(m, m.CallID, m.ToolName, m.Type); err != nil {
			return err
		}
	}
	if t.Over {
		return nil
	}
	d.resolve(t, true)
	d.input(t, m.ToolArgs)
	d.toolState(t, event.PartRunning)
	return nil
}

// ran takes the end of a tool, after which its last return comes. One that never began was denied.
func (d *Decoder) ran(m *message) {
	t := d.tool(m.CallID)
	if t == nil || t.Over || m.Status != "error" || t.State == event.PartRunning {
		return
	}
	t.Denied = true
	d.resolve(t, false)
}
