package openairesponses

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

// open is an item of the response, from its first event to the end of the response.
type open struct {
	Index int    `json:"index"`
	Call  string `json:"call,omitempty"` // call_id of a tool, by which its output is matched
	Tool  bool   `json:"tool,omitempty"` // its tool part is open
	Done  bool   `json:"done,omitempty"` // it is complete, except for the output of a call
	// Searching is true for a tool search that the server runs and whose output has not arrived.
	Searching bool `json:"searching,omitempty"`
	// Question is the id of the approval that permitted the call. The call is shown in the part of that question.
	Question string   `json:"question,omitempty"`
	Parts    []*part  `json:"parts,omitempty"` // those whose text may still grow
	Final    []string `json:"final,omitempty"` // keys of parts that were complete before the item
}

// part is one text of an item: a content, a summary, or the input of a tool.
type part struct {
	Key      string           `json:"key"`
	Field    event.Field      `json:"field,omitempty"`
	Text     dialect.Text     `json:"text,omitzero"`
	Streamed dialect.Snapshot `json:"said,omitzero"`
}

// item returns the item with an index, and adds it if it is new: servers may leave out the event that announces it.
func (d *decoder) item(index int) (*open, error) {
	for i := len(d.Items) - 1; i >= 0; i-- {
		if d.Items[i].Index == index {
			return d.Items[i], nil
		}
	}
	if len(d.Items) == maxItems {
		return nil, errManyItems
	}
	o := &open{Index: index}
	d.Items = append(d.Items, o)
	return o, nil
}

// part returns the part with a key, and starts it if necessary: a server that imitates the API may leave out the events that
// announce parts. It returns nil if the part has ended, so that late and repeated events change nothing.
func (d *decoder) part(index int, key string, kind event.PartKind, field event.Field) (*part, error) {
	o, err := d.item(index)
	if err != nil || o.Done || slices.Contains(o.Final, key) {
		return nil, err
	}
	for _, p := range o.Parts {
		if p.Key == key {
			return p, nil
		}
	}
	if len(o.Parts)+len(o.Final) == maxParts {
		return nil, errManyParts
	}
	p := &part{Key: key, Field: field}
	o.Parts = append(o.Parts, p)
	// The event that announces a tool starts its part. If a server leaves it out, the tool starts here, without its name.
	if kind == event.KindTool {
		if !o.Tool {
			d.start(o, key, &event.Body{Kind: kind})
			o.Tool = true
		}
		return p, nil
	}
	b := &event.Body{Kind: kind}
	if kind == event.KindText && strings.HasSuffix(key, "/0") {
		b.Join = event.JoinBlank // only the first text of an item begins a paragraph
	}
	d.start(o, key, b)
	return p, nil
}

// start emits the start of a part, after that of the message if needed.
func (d *decoder) start(o *open, key string, b *event.Body) {
	d.Emit(event.Event{Type: event.PartStart, Message: d.message(), Part: key, Body: b})
}

// grow appends a delta to a part. A nil delta only starts the part.
func (d *decoder) grow(index int, key string, kind event.PartKind, field event.Field, delta json.RawMessage) error {
	p, err := d.part(index, key, kind, field)
	if err != nil || p == nil || delta == nil {
		return err
	}
	text, err := p.Text.JSON(delta)
	if err != nil {
		return err
	}
	d.say(p, text)
	return nil
}

// say appends text to a part and records it, so that the final text can be compared with it.
func (d *decoder) say(p *part, text string) {
	if text == "" {
		return
	}
	p.Streamed.Append(text)
	d.Emit(event.Event{Type: event.PartAppend, Message: d.Key, Part: p.Key, Field: p.Field, Text: text})
}

// setText applies the final text of a part, which emits only the difference to the streamed text. It ends the part, unless that is
// a tool, whose output may follow. An event without the text doesn't retract what was streamed.
func (d *decoder) setText(index int, key string, kind event.PartKind, field event.Field, text *string) error {
	p, err := d.part(index, key, kind, field)
	if err != nil || p == nil {
		return err
	}
	p.Text = dialect.Text{} // the whole text includes the buffered character
	if text == nil {
		if p.Streamed.Len() > 0 {
			return nil
		}
		text = new(string)
	}
	// Only the difference is emitted. A text that doesn't extend the streamed one replaces it.
	if typ, delta := p.Streamed.Next(*text); typ != "" {
		d.Emit(event.Event{Type: typ, Message: d.Key, Part: key, Field: field, Text: delta})
	}
	o, err := d.item(index)
	if err != nil {
		return err
	}
	d.final(o, p, kind != event.KindTool)
	return nil
}

// final moves a part from the open ones to the final ones, so that repeated events don't change it. end says whether the part ends with its
// text.
func (d *decoder) final(o *open, p *part, end bool) {
	o.Parts = slices.DeleteFunc(o.Parts, func(q *part) bool { return q == p })
	o.Final = append(o.Final, p.Key)
	if end {
		d.Emit(event.Event{Type: event.PartEnd, Message: d.Key, Part: p.Key})
	}
}

// content applies a complete content part: the final text of an answer, a refusal or a reasoning.
func (d *decoder) content(output, index int, c *content) error {
	if c == nil {
		return nil
	}
	switch c.Type {
	case "output_text", "text":
		return d.setText(output, d.textKey(output, index), event.KindText, event.Text, c.Text)
	case "refusal":
		return d.setText(output, d.textKey(output, index), event.KindText, event.Text, c.Refusal)
	case "reasoning_text":
		return d.setText(output, d.thoughtKey(output, index), event.KindReasoning, event.Text, c.Text)
	}
	d.Unknowns.Add("content " + c.Type)
	return nil
}

// added applies the first event of an item, or a complete item that had none. A tool starts its part here; all other items start with their
// first content. A call that a person has approved is shown in the part of its question, so it gets no other part.
func (d *decoder) added(index int, in *item) error {
	if in == nil {
		return errNoItem
	}
	o, err := d.item(index)
	if err != nil || o.Done || o.Tool {
		return err
	}
	if in.Request != "" && in.tool() && d.question(in.Request) != nil {
		o.Question, o.Done = in.Request, true
		return nil
	}
	switch {
	// A server tool may have no call_id. Its id then matches the output.
	case in.tool():
		if o.Call = in.CallID; o.Call == "" {
			o.Call = in.ID
		}
		b := &event.Body{Kind: event.KindTool, Name: in.title(), Call: in.CallID}
		if in.runsOnServer() {
			b.State = event.PartRunning
		}
		o.Searching = in.Type == search && in.runsOnServer()
		d.start(o, toolKey(index), b)
		o.Tool = true
	case in.Type == "message", in.Type == "reasoning", in.Type == approvalResponse, in.output():
	default:
		d.Unknowns.Add("item " + in.Type)
	}
	return nil
}

// finishItem applies a complete item: whatever its deltas have missed, and the result of a tool. A repeated event
// of an item that is already complete changes nothing.
func (d *decoder) finishItem(index int, in *item) error {
	if err := d.added(index, in); err != nil {
		return err
	}
	o, err := d.item(index)
	if err != nil {
		return err
	}
	// An approved call is shown in the part of its question, which ends with the result.
	if q := d.question(o.Question); q != nil {
		d.ran(q, in)
		return nil
	}
	if o.Done {
		return nil
	}
	switch {
	case in.Type == "message", in.Type == "reasoning":
		for i, c := range pieces(in.Summary) {
			if err := d.setText(index, d.summaryKey(index, i), event.KindReasoning, event.Text, c.Text); err != nil {
				return err
			}
		}
		for i, c := range pieces(in.Content) {
			if err := d.content(index, i, &c); err != nil {
				return err
			}
		}
	case in.tool():
		if err := d.finishCall(o, in); err != nil {
			return err
		}
	case in.output():
		d.returned(in)
	case in.Type == approvalResponse:
		d.applyDecision(in)
	}
	d.endParts(o)
	return nil
}

// endParts ends the open parts of an item, except a call whose output may follow.
func (d *decoder) endParts(o *open) {
	// final removes the part from the list.
	for len(o.Parts) > 0 {
		p := o.Parts[0]
		d.say(p, p.Text.Close())
		d.final(o, p, p.Field == event.Text)
	}
	// A complete item refuses all further events of its parts, so their keys need not be stored any longer.
	o.Final = nil
	o.Done = true
}

// close ends an item at the end of its response. A tool search without output is complete: not every server sends the output.
func (d *decoder) close(o *open) {
	d.endParts(o)
	if o.Searching && o.Tool {
		d.Emit(event.Event{Type: event.PartUpdate, Message: d.Key, Part: toolKey(o.Index), Body: &event.Body{State: event.PartDone}})
	}
	d.endTool(o)
}

// endTool ends the item's tool part, if it has one that is open.
func (d *decoder) endTool(o *open) {
	if o.Tool {
		o.Tool = false
		d.Emit(event.Event{Type: event.PartEnd, Message: d.Key, Part: toolKey(o.Index)})
	}
}

// compact returns a value as compact JSON. It returns "" for null, for an empty value and for an absent one.
func compact(raw json.RawMessage) string {
	switch s := decoding.Compact(raw); s {
	case "null", "{}", "[]", `""`:
		return ""
	default:
		return s
	}
}
