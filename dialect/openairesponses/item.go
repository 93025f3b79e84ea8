package openairesponses

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// open is an item of the response, from its first event on.
type open struct {
	Index int    `json:"index"`
	Call  string `json:"call,omitempty"`
	Tool  bool   `json:"tool,omitempty"` // its tool part is open
	Done  bool   `json:"done,omitempty"` // nothing of it follows, but for a call's output
	// Searching is a search for tools that the server runs and whose output has not come.
	Searching bool `json:"searching,omitempty"`
	// Question is the approval that the call was asked for with; the call is shown there.
	Question string  `json:"question,omitempty"`
	Parts    []*part `json:"parts,omitempty"` // those whose text may grow
	// Final are the keys of parts that are done before their item is.
	Final []string `json:"final,omitempty"`
}

// part is one text of an item.
type part struct {
	Key      string           `json:"key"`
	Field    event.Field      `json:"field,omitempty"`
	Text     dialect.Text     `json:"text,omitzero"`
	Streamed dialect.Snapshot `json:"said,omitzero"`
}

// item returns the item of an index.
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

// part returns the part with a key, and creates it if necessary. It returns nil if the part has ended.
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

func (d *decoder) start(o *open, key string, b *event.Body) {
	d.Emit(event.Event{Type: event.PartStart, Message: d.message(), Part: key, Body: b})
}

// grow takes a delta; none starts the part alone.
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

func (d *decoder) say(p *part, text string) {
	if text == "" {
		return
	}
	p.Streamed.Append(text)
	d.Emit(event.Event{Type: event.PartAppend, Message: d.Key, Part: p.Key, Field: p.Field, Text: text})
}

// setText applies the final text of a part. It ends the part, unless that is a tool, whose output may follow.
func (d *decoder) setText(index int, key string, kind event.PartKind, field event.Field, text *string) error {
	p, err := d.part(index, key, kind, field)
	if err != nil || p == nil {
		return err
	}
	p.Text = dialect.Text{} // what was held back is in the whole
	if text == nil {
		partKey := ""
		text = &partKey
		if p.Streamed.Len() > 0 {
			return nil // an event without the text doesn't retract it
		}
	}
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

// final notes that a part's text won't change.
func (d *decoder) final(o *open, p *part, end bool) {
	o.Parts = slices.DeleteFunc(o.Parts, func(q *part) bool { return q == p })
	o.Final = append(o.Final, p.Key)
	if end {
		d.Emit(event.Event{Type: event.PartEnd, Message: d.Key, Part: p.Key})
	}
}

// content takes a content part that is done.
func (d *decoder) content(output, index int, c *content) error {
	if c == nil {
		return nil
	}
	switch c.Type {
	case "output_text", "text":
		return d.setText(output, textKey(output, index), event.KindText, event.Text, c.Text)
	case "refusal":
		return d.setText(output, textKey(output, index), event.KindText, event.Text, c.Refusal)
	case "reasoning_text":
		return d.setText(output, thoughtKey(output, index), event.KindReasoning, event.Text, c.Text)
	}
	d.Unknowns.Add("content " + c.Type)
	return nil
}

// added takes the beginning of an item. All but a tool begins with its parts.
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

// finishItem applies a complete item.
func (d *decoder) finishItem(index int, in *item) error {
	if err := d.added(index, in); err != nil {
		return err
	}
	o, err := d.item(index)
	if err != nil {
		return err
	}
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
			if err := d.setText(index, summaryKey(index, i), event.KindReasoning, event.Text, c.Text); err != nil {
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
	for len(o.Parts) > 0 {
		p := o.Parts[0]
		d.say(p, p.Text.Close())
		d.final(o, p, p.Field == event.Text)
	}
	o.Final = nil
	o.Done = true
}

// close ends an item with the response.
func (d *decoder) close(o *open) {
	d.endParts(o)
	if o.Searching && o.Tool {
		d.Emit(event.Event{Type: event.PartUpdate, Message: d.Key, Part: toolKey(o.Index), Body: &event.Body{State: event.PartDone}})
	}
	d.endTool(o)
}

func (d *decoder) endTool(o *open) {
	if o.Tool {
		o.Tool = false
		d.Emit(event.Event{Type: event.PartEnd, Message: d.Key, Part: toolKey(o.Index)})
	}
}

// compact is JSON on one line; empty for null and what is absent or empty.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Compact(&b, raw) != nil {
		return ""
	}
	switch s := b.String(); s {
	case "null", "{}", "[]", `""`:
		return ""
	default:
		return s
	}
}
