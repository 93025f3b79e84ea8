package letta

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
)

func (d *Decoder) findTool(call string) *tool {
	for i := len(d.Tools) - 1; i >= 0; i-- {
		if d.Tools[i].Call == call {
			return d.Tools[i]
		}
	}
	return nil
}

// handleCalls takes a message with one call or several, whole or in deltas.
func (d *Decoder) handleCalls(m *message) error {
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
	isWhole := len(m.Calls) > 0 && m.Calls[0] == '[' || d.isCode && m.Otid == "" && m.Step == ""
	for i := range list {
		if slices.Contains(d.EndedCalls, list[i].ID) {
			continue // it is told again
		}
		d.openMessage(m)
		if err := d.handleCall(m, &list[i], isWhole); err != nil {
			return err
		}
	}
	return nil
}

// handleCall takes a call, whole or a delta of it.
func (d *Decoder) handleCall(m *message, c *call, isWhole bool) error {
	d.endText()
	t := d.findTool(c.ID)
	if c.ID == "" && len(d.Tools) > 0 {
		t = d.Tools[len(d.Tools)-1] // a delta that leaves it out
	}
	if t == nil {
		var err error
		if t, err = d.startTool(m, c.ID, c.Name, m.Type); err != nil {
			return err
		}
		t.Origin = m.ID
	}
	if t.IsEnded {
		return nil
	}
	if t.Name == "" && c.Name != "" && len(c.Name) <= event.MaxID {
		t.Name = c.Name
		d.emit(event.Event{Type: event.PartUpdate, Message: t.Message, Part: t.Part, Body: &event.Body{Name: c.Name}})
	}
	if len(c.Arguments) == 0 {
		return nil
	}
	if isWhole || t.Type != m.Type {
		d.setInput(t, c.Arguments)
		return nil
	}
	raw := c.Arguments
	if raw[0] == '{' {
		raw, _ = json.Marshal(string(raw)) // of a string
	}
	s, err := t.Buffer.JSON(raw)
	if err != nil {
		return err
	}
	d.emitInput(t, s)
	return nil
}

// startTool starts a tool's part, in the message at hand or one of its own.
func (d *Decoder) startTool(m *message, id, name, typ string) (*tool, error) {
	if d.PartCount >= maxParts || len(d.Tools) >= maxParts {
		return nil, errParts
	}
	if len(id) > event.MaxID || len(name) > event.MaxID {
		return nil, errLong
	}
	if d.Key == "" {
		d.openMessage(m)
	}
	d.endText()
	t := &tool{Message: d.Key, Call: id, Name: name, Type: typ}
	if typ != "approval_request_message" {
		t.State = event.PartRunning
	}
	t.Part = d.startPart(&event.Body{Kind: event.KindTool, Name: name, Call: id, State: t.State})
	d.Tools = append(d.Tools, t)
	return t, nil
}

func (d *Decoder) emitInput(t *tool, s string) {
	if s == "" {
		return
	}
	t.Input.Append(s)
	d.emit(event.Event{Type: event.PartAppend, Message: t.Message, Part: t.Part, Field: event.Input, Text: s})
}

func (d *Decoder) flushInput(t *tool) {
	if !t.IsEnded {
		d.emitInput(t, t.Buffer.Close())
	}
}

// setInput takes a call's arguments, whole: a person may have changed them.
func (d *Decoder) setInput(t *tool, raw json.RawMessage) {
	text := returnText(raw)
	if text == "" {
		return
	}
	d.flushInput(t)
	d.emitSnapshot(t, event.Input, &t.Input, text)
}

type snapshot interface {
	Next(string) (event.Type, string)
}

func (d *Decoder) emitSnapshot(t *tool, f event.Field, s snapshot, text string) {
	if op, delta := s.Next(text); op != "" {
		d.emit(event.Event{Type: op, Message: t.Message, Part: t.Part, Field: f, Text: delta})
	}
}

func (d *Decoder) setToolState(t *tool, state event.PartState) {
	if t.State != state {
		t.State = state
		d.emit(event.Event{Type: event.PartUpdate, Message: t.Message, Part: t.Part, Body: &event.Body{State: state}})
	}
}

// streamedPrefix begins the id of a return that a running tool has so far.
const streamedPrefix = "synthetic-tool-return-stream"

// handleReturns takes a message with what one tool gave, or several.
func (d *Decoder) handleReturns(m *message) error {
	list := m.Returns
	if len(list) == 0 {
		list = []toolReturn{{CallID: m.CallID, Status: m.Status, Return: m.Return, Stdout: m.Stdout, Stderr: m.Stderr}}
	}
	for i := range list {
		r := &list[i]
		t := d.findTool(r.CallID)
		if t == nil {
			if slices.Contains(d.EndedCalls, r.CallID) {
				continue
			}
			// The call was in a stream before this one.
			var err error
			if t, err = d.startTool(m, r.CallID, "", m.Type); err != nil {
				return err
			}
		}
		if t.IsEnded {
			continue
		}
		if strings.HasPrefix(m.ID, streamedPrefix) {
			d.setToolState(t, event.PartRunning)
			d.appendOutput(t, returnText(r.Return))
			continue
		}
		d.endTool(t, r.Status, r)
	}
	return nil
}

// endTool ends a tool with what it gave.
func (d *Decoder) endTool(t *tool, status string, r *toolReturn) {
	d.flushInput(t)
	b := &event.Body{State: event.PartDone}
	if r != nil {
		text := returnText(r.Return)
		if text == "" {
			text = returnText(r.Func)
		}
		if !d.isCode {
			// What a tool printed stands beside its value on V1, and is part of it on the App Server.
			if stdout := strings.Join(r.Stdout, "\n"); stdout != "" {
				text = strings.TrimSuffix(stdout, "\n") + "\n" + text
			}
			if stderr := strings.Join(r.Stderr, "\n"); stderr != "" {
				d.emit(event.Event{Type: event.PartAppend, Message: t.Message, Part: t.Part, Field: event.Stderr, Text: stderr})
			}
		}
		b.Data = d.setOutput(t, text)
	}
	switch {
	case t.IsDenied || t.State == event.PartDenied:
		b.State = event.PartDenied
	case status == "error":
		b.State, b.Error = event.PartFailed, &event.Error{Message: "the tool failed"}
	}
	d.closeRequest(t, !t.IsDenied)
	t.State, t.IsEnded = b.State, true
	d.emit(event.Event{Type: event.PartUpdate, Message: t.Message, Part: t.Part, Body: b})
	d.emit(event.Event{Type: event.PartEnd, Message: t.Message, Part: t.Part})
}

// askUser makes the turn wait for a person.
func (d *Decoder) askUser(t *tool, r event.Request) {
	t.Request, t.WasAsked = r.ID, true
	r.Tool, r.Part = t.Name, t.Part
	d.emit(event.Event{Type: event.TurnWait, Message: t.Message, Body: &event.Body{Request: &r}})
}

// closeRequest closes a request that somebody has answered of whom nothing else tells.
func (d *Decoder) closeRequest(t *tool, allowed bool) {
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

// handleClassification takes the App Server's own decision on the calls of a step.
func (d *Decoder) handleClassification(m *message) {
	for _, t := range d.Tools {
		if slices.Contains(m.Denied, t.Call) && !t.IsEnded {
			t.IsDenied = true
		}
	}
}

// handleControl takes the App Server's question whether a tool may be used. It comes twice to who joins.
func (d *Decoder) handleControl(f *frame) error {
	if f.Request == nil || f.Request.Subtype != "can_use_tool" || f.RequestID == "" {
		d.UnknownTypes.Add("control_request")
		return nil
	}
	if err := event.CheckID("request_id", f.RequestID); err != nil {
		return err
	}
	t := d.findTool(f.Request.CallID)
	if t == nil {
		if slices.Contains(d.EndedCalls, f.Request.CallID) || !d.joinTurn() {
			return nil
		}
		var err error
		if t, err = d.startTool(&message{}, f.Request.CallID, f.Request.Tool, "approval_request_message"); err != nil {
			return err
		}
	}
	if !t.WasAsked && !t.IsEnded && t.State == "" {
		r := event.Request{ID: f.RequestID, Kind: event.RequestApproval}
		if f.Request.Tool == AskTool {
			r.Kind = event.RequestInput
			r.Prompt, r.Options = promptOf(f.Request.Input)
		}
		d.askUser(t, r)
	}
	return nil
}

// toolStarted takes the start of a tool.
func (d *Decoder) toolStarted(m *message) error {
	t := d.findTool(m.CallID)
	if t == nil {
		if slices.Contains(d.EndedCalls, m.CallID) {
			return nil
		}
		var err error
		if t, err = d.startTool(m, m.CallID, m.ToolName, m.Type); err != nil {
			return err
		}
	}
	if t.IsEnded {
		return nil
	}
	d.closeRequest(t, true)
	d.setInput(t, m.ToolArgs)
	d.setToolState(t, event.PartRunning)
	return nil
}

// toolEnded takes the end of a tool, after which its last return comes. One that never began was denied.
func (d *Decoder) toolEnded(m *message) {
	t := d.findTool(m.CallID)
	if t == nil || t.IsEnded || m.Status != "error" || t.State == event.PartRunning {
		return
	}
	t.IsDenied = true
	d.closeRequest(t, false)
}
