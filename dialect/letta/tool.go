// Tool calls, their arguments in pieces, and their results.

package letta

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
)

// findTool returns the newest tool with the given call id that has not been forgotten, or nil.
func (d *Decoder) findTool(call string) *tool {
	for i := len(d.Tools) - 1; i >= 0; i-- {
		if d.Tools[i].Call == call {
			return d.Tools[i]
		}
	}
	return nil
}

// handleCalls handles a message with one tool call or several, each complete or a delta. V1 has tool_call and tool_calls; the
// latter is an object, a list or null, and replaces the former if it is a list. A list contains complete calls, as do messages
// of the App Server without otid and step.
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
			continue // the server repeats the call
		}
		d.openMessage(m)
		if err := d.handleCall(m, &list[i], isWhole); err != nil {
			return err
		}
	}
	return nil
}

// handleCall handles a tool call. If isWhole is true, or the type of the message differs from the one that started the tool,
// the arguments are complete; otherwise they are a delta.
func (d *Decoder) handleCall(m *message, c *call, isWhole bool) error {
	d.endText()
	t := d.findTool(c.ID)
	if c.ID == "" && len(d.Tools) > 0 {
		t = d.Tools[len(d.Tools)-1] // some servers omit the id in deltas
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
	// The first delta of a call may lack the name.
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
	// A delta is a JSON string that contains a piece of the arguments. Some servers send a complete object instead.
	raw := c.Arguments
	if raw[0] == '{' {
		raw, _ = json.Marshal(string(raw)) // a string can always be encoded
	}
	s, err := t.Buffer.JSON(raw)
	if err != nil {
		return err
	}
	d.emitInput(t, s)
	return nil
}

// startTool starts a tool's part in the open message, or in a new one. A tool that a request for approval has started has no
// state until its approval is decided.
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

// emitInput appends s to a tool's input.
func (d *Decoder) emitInput(t *tool, s string) {
	if s == "" {
		return
	}
	t.Input.Append(s)
	d.emit(event.Event{Type: event.PartAppend, Message: t.Message, Part: t.Part, Field: event.Input, Text: s})
}

// flushInput emits the incomplete character at the end of a tool's input.
func (d *Decoder) flushInput(t *tool) {
	if !t.IsEnded {
		d.emitInput(t, t.Buffer.Close())
	}
}

// setInput takes a call's complete arguments. They may differ from the deltas, because a user can edit them before approving.
func (d *Decoder) setInput(t *tool, raw json.RawMessage) {
	text := returnText(raw)
	if text == "" {
		return
	}
	d.flushInput(t)
	d.emitSnapshot(t, event.Input, &t.Input, text)
}

// snapshot is the content of a field: Next returns the event that turns it into the given text, and the event's text.
type snapshot interface {
	Next(string) (event.Type, string)
}

// emitSnapshot changes a tool's field to text: by an append if text only extends the field, by a replacement if it doesn't.
func (d *Decoder) emitSnapshot(t *tool, f event.Field, s snapshot, text string) {
	if op, delta := s.Next(text); op != "" {
		d.emit(event.Event{Type: op, Message: t.Message, Part: t.Part, Field: f, Text: delta})
	}
}

// setToolState changes a tool's state.
func (d *Decoder) setToolState(t *tool, state event.PartState) {
	if t.State != state {
		t.State = state
		d.emit(event.Event{Type: event.PartUpdate, Message: t.Message, Part: t.Part, Body: &event.Body{State: state}})
	}
}

// streamedPrefix starts the id of a message with the output so far of a tool that is still running.
const streamedPrefix = "synthetic-tool-return-stream"

// handleReturns handles a message with the results of one tool or several. A result may belong to a call of an earlier stream,
// in which case a part is started for it. A message whose id starts with streamedPrefix has the output so far and doesn't end
// the tool.
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
			// The call was in an earlier stream.
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

// endTool ends a tool's part with its result; r is nil if the server sent no result. A pending request for approval is closed
// first, since the result proves that another client has decided it.
func (d *Decoder) endTool(t *tool, status string, r *toolReturn) {
	d.flushInput(t)
	b := &event.Body{State: event.PartDone}
	if r != nil {
		text := cmp.Or(returnText(r.Return), returnText(r.Func))
		if !d.isCode {
			// V1 sends the printed output next to the result; the App Server includes it in the result.
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

// askUser makes the turn wait for a user's decision on a tool.
func (d *Decoder) askUser(t *tool, r event.Request) {
	t.Request, t.WasAsked = r.ID, true
	r.Tool, r.Part = t.Name, t.Part
	d.emit(event.Event{Type: event.TurnWait, Message: t.Message, Body: &event.Body{Request: &r}})
}

// closeRequest closes the tool's open request, if any. The server doesn't say that another client has answered it; the caller
// has concluded it from a later frame.
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

// handleClassification handles the App Server's decisions about the calls of a step. It records the denied ones, so that their results
// show as denied instead of failed.
func (d *Decoder) handleClassification(m *message) {
	for _, t := range d.Tools {
		if slices.Contains(m.Denied, t.Call) && !t.IsEnded {
			t.IsDenied = true
		}
	}
}

// handleControl handles the App Server's question whether it may run a tool. It is sent again to each viewer that joins. For
// the question tool, the request asks for input instead of approval.
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
	// A tool with a state has been decided already, so a repeated question changes nothing.
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

// toolStarted handles the start of a tool, which proves that it was approved.
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

// toolEnded handles the end of a tool, which the result follows. A tool that ends with an error before it started was denied.
func (d *Decoder) toolEnded(m *message) {
	t := d.findTool(m.CallID)
	if t == nil || t.IsEnded || m.Status != "error" || t.State == event.PartRunning {
		return
	}
	t.IsDenied = true
	d.closeRequest(t, false)
}
