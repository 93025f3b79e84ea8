// Tools in the three forms in which the gateway reports them: tool, item and command_output.

package openclaw

import (
	"bytes"
	"strings"

	"github.com/leat-dev/leat/event"
)

// tool decodes a frame of the stream "tool", which only the connection that started the run gets. If the frame with the input
// was missed, the part stays open after the result, because the history has the input. The same call may be reported
// by item and command_output frames before and after. A second result is ignored.
func (d *decoder) tool(r *run, a *agentData) error {
	t, err := d.call(r, a, a.call)
	if t == nil || err != nil || t.IsOver && t.Input {
		return err
	}
	// From now on frames of other streams that repeat this call's output are ignored.
	t.Direct = true
	// The input is complete in one frame and is emitted once, also if a later frame repeats it.
	if len(a.args) > 0 && !t.Input {
		t.Input = true
		d.part(r, t.part(), event.Event{Type: event.PartAppend, Field: event.Input, Text: string(a.args)})
		if t.IsOver {
			d.part(r, t.part(), event.Event{Type: event.PartEnd})
		}
	}
	if t.IsOver {
		return nil
	}
	if text, ok := content(a.partial); ok {
		d.output(r, t, text, false)
	}
	if text, ok := content(a.result); ok {
		d.output(r, t, text, true)
	}
	if string(a.phase) == "result" {
		state := event.PartDone
		if a.isError {
			state = event.PartFailed
		}
		// The part ends only if its input is known: the history may still bring it, and an ended part can't grow.
		d.finish(r, t, state, "")
		if t.Input {
			d.part(r, t.part(), event.Event{Type: event.PartEnd})
		}
		t.IsOver, t.Output, t.Tight = true, snapshot{}, tight{}
	}
	return nil
}

// item decodes a frame of the stream "item", which describes the progress of tools and preambles. Items without a
// call id have it in their own id, behind "tool:".
func (d *decoder) item(r *run, a *agentData) error {
	switch string(a.kind) {
	case "tool":
	case "preamble":
		return d.preamble(r, a)
	default:
		return nil
	}
	call := a.call
	if len(call) == 0 {
		call = bytes.TrimPrefix(a.itemID, []byte("tool:"))
	}
	t, err := d.call(r, a, call)
	if t == nil || err != nil {
		return err
	}
	// Items only report states here. Inputs and outputs come in other streams.
	switch string(a.status) {
	case "completed":
		d.finish(r, t, event.PartDone, "")
	case "failed":
		d.finish(r, t, event.PartFailed, string(a.errorText))
	}
	return nil
}

// preamble decodes a text that the model produced before a tool call, once it is complete. Usually assistant frames have
// streamed it already. A fast model may have none; then only the preamble and the history contain the text.
func (d *decoder) preamble(r *run, a *agentData) error {
	if string(a.phase) != "end" || d.Protocol < protocolKeyed {
		return nil
	}
	text := screenWhole(a.progress)
	var of tight
	if of.add(text.visible); of.N == 0 {
		return nil
	}
	// Streamed segments contain the preamble's beginning. Each segment can be that of one preamble only, so it is marked.
	for _, s := range r.Texts {
		if end, ok := s.endIn(text.visible); ok && s.Tight.N > 0 && !s.InPreamble {
			s.InPreamble = true
			suffix := strings.TrimRight(text.visible[end:], space)
			if s.IsOver { // the model thought before it went on
				text.visible = strings.TrimLeft(suffix, space)
				break
			}
			d.add(r, s, suffix)
			return nil
		}
	}
	if text.visible == "" || r.unnamed(text.visible) != nil {
		return nil
	}
	part := preamblePrefix + string(a.itemID)
	if err := event.CheckID("itemId", part); err != nil {
		return err
	}
	s := begin(&r.Texts, event.KindText, part)
	s.InPreamble = true
	d.show(r, s, text.visible)
	return nil
}

// commandOutput decodes a frame of the stream "command_output". For clients without tool frames it is the only source of a
// command's output; for others it repeats the output without its last line end.
func (d *decoder) commandOutput(r *run, a *agentData) error {
	call := a.call
	if len(call) == 0 {
		call = bytes.TrimPrefix(a.itemID, []byte("command:"))
	}
	t, err := d.call(r, a, call)
	if t == nil || err != nil || t.Direct || !a.hasOutput {
		return err
	}
	d.output(r, t, a.output, string(a.phase) == "end")
	return nil
}

// call returns a tool call and starts or completes its part with what the frame has. The error says that the id can't
// be used. A frame without an id is counted and gives nil.
func (d *decoder) call(r *run, a *agentData, id []byte) (*tool, error) {
	if len(id) == 0 {
		d.Unknowns.Add("tool without id")
		return nil, nil
	}
	title := string(a.meta)
	if title == "" {
		title = string(a.title)
	}
	t := r.tool(id)
	if t == nil {
		t = &tool{Call: string(id), State: event.PartRunning, HasName: len(a.name) > 0, Title: title}
		if err := event.CheckID("toolCallId", t.part()); err != nil {
			return nil, err
		}
		// A new call ends the text before it if that has no item id. Text after the call is another segment.
		d.finishText(r, r.unkeyed(), false)
		r.Tools = append(r.Tools, t)
		b := &event.Body{Kind: event.KindTool, Call: t.Call, Name: string(a.name), State: t.State}
		if title != "" {
			b.Title = &title
		}
		d.start(r, t.part(), b)
		return t, nil
	}
	b := event.Body{}
	if !t.HasName && len(a.name) > 0 {
		t.HasName, b.Name = true, string(a.name)
	}
	// The meta is a better title than the generic one, so it replaces that; nothing replaces a meta but another one.
	if title != "" && title != t.Title && (t.Title == "" || len(a.meta) > 0) {
		t.Title, b.Title = title, &title
	}
	if b.Name != "" || b.Title != nil {
		d.part(r, t.part(), event.Event{Type: event.PartUpdate, Body: &b})
	}
	return t, nil
}

// output decodes a snapshot of a tool's output. The last snapshot is often trimmed, which must not remove visible
// output. An output that differs replaces the visible one, for example that of a progress bar.
func (d *decoder) output(r *run, t *tool, text string, last bool) {
	if last && int64(len(text)) < t.Output.Len() && t.Tight.is(text) {
		return
	}
	typ, suffix := t.Output.next(text)
	if typ == "" {
		return
	}
	// The compact form is computed from the visible output, so it starts again.
	if typ == event.PartReplace {
		t.Tight = tight{}
	}
	t.Tight.add(suffix)
	d.part(r, t.part(), event.Event{Type: typ, Field: event.Output, Text: suffix})
}

// finish ends a tool call, unless it has ended. Its part stays open while its input is missing. Several streams
// report the end of a call, and the first report counts. reason is for users, and may be empty.
func (d *decoder) finish(r *run, t *tool, state event.PartState, reason string) {
	if t.State != event.PartRunning {
		return
	}
	t.State = state
	b := &event.Body{State: state}
	if reason != "" {
		b.Error = &event.Error{Message: reason}
	}
	d.part(r, t.part(), event.Event{Type: event.PartUpdate, Body: b})
}

// part returns the key of the tool's part.
func (t *tool) part() string { return "tool:" + t.Call }

// tool returns the tool call with that id, or nil. It searches from the newest call, which is the one that most
// frames are about.
func (r *run) tool(call []byte) *tool {
	for i := len(r.Tools) - 1; i >= 0; i-- {
		if r.Tools[i].Call == string(call) {
			return r.Tools[i]
		}
	}
	return nil
}

// content returns the text of a message's or result's content, which is a string or a list of blocks. ok is false if it is
// neither. Blocks of text are joined by blank lines. Blocks of other types, such as images, are left out.
func content(object []byte) (text string, ok bool) {
	c := cursor{b: object}
	if len(object) == 0 || !c.enter('{') {
		return "", false
	}
	var key []byte
	for c.next(&key) {
		if string(key) != "content" {
			c.skip()
			continue
		}
		if c.peek() == '"' {
			text, ok = c.snapshot(), true
			continue
		}
		if !c.enter('[') {
			continue
		}
		var texts []string
		for c.hasNext(']') {
			if s, is := textBlock(&c); is {
				texts = append(texts, s)
			}
		}
		text, ok = strings.Join(texts, "\n\n"), len(texts) > 0
	}
	return text, ok
}

// textBlock returns the text of a block. ok is false for blocks of other types.
func textBlock(c *cursor) (text string, ok bool) {
	if !c.enter('{') {
		return "", false
	}
	var key []byte
	for c.next(&key) {
		switch string(key) {
		case "type":
			ok = string(c.bytes()) == "text"
		case "text":
			text = c.snapshot()
		default:
			c.skip()
		}
	}
	return text, ok
}
