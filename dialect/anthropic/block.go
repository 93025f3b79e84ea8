package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
)

const resultSuffix = "_tool_result"

// block returns the open block of an index, or nil.
func (d *decoder) block(index int) *open {
	for i := len(d.Open) - 1; i >= 0; i-- {
		if d.Open[i].Index == index {
			return d.Open[i]
		}
	}
	return nil
}

// start takes a content_block_start.
func (d *decoder) start(in *frame) error {
	if d.Key == "" {
		return errNoMessage
	}
	c := in.Block
	if c == nil {
		return fmt.Errorf("content_block: %w", errMissing)
	}
	if b := d.block(in.Index); b != nil {
		d.stop(b) // its stop was left out
	}
	if d.Parts == maxParts || len(d.Open) == maxOpen {
		return errMany
	}
	b := &open{Index: in.Index, Type: c.Type}
	before := d.Before
	d.Before = c.Type
	var err error
	switch {
	case c.Type == "text":
		body := &event.Body{Kind: event.KindText, Join: event.JoinBlank}
		if before == "text" {
			body.Join = ""
		}
		d.part(b, body)
		err = d.append(b, event.Text, c.Text)
	case c.Type == "thinking":
		d.part(b, &event.Body{Kind: event.KindReasoning})
		err = d.append(b, event.Text, c.Thinking)
	case c.Type == "redacted_thinking":
		title := "redacted"
		d.part(b, &event.Body{Kind: event.KindReasoning, Title: &title})
	case c.Type == "tool_use", c.Type == "server_tool_use", c.Type == "mcp_tool_use":
		d.call(b, c)
	case strings.HasSuffix(c.Type, resultSuffix):
		d.result(c)
	case c.Type == "fallback":
		if c.To != nil {
			d.model(c.To.Model)
		}
	default:
		d.Unknowns.Add(c.Type)
	}
	d.Open = append(d.Open, b)
	return err
}

// part starts a block's part.
func (d *decoder) part(b *open, body *event.Body) {
	b.Part = strconv.Itoa(d.Parts)
	d.Parts++
	d.Emit(event.Event{Type: event.PartStart, Message: d.Key, Part: b.Part, Body: body})
}

func (d *decoder) call(b *open, c *block) {
	t := &tool{Call: c.ID, Message: d.Key, Server: c.Type != "tool_use"}
	body := &event.Body{Kind: event.KindTool, Name: c.Name, Call: c.ID}
	if t.Server {
		body.State = event.PartRunning
	}
	d.part(b, body)
	t.Part = b.Part
	d.Tools = append(d.Tools, t)
	// An upstream without deltas brings all of the input here; the usual one brings {} and then deltas.
	var input bytes.Buffer
	if len(c.Input) > 0 && json.Compact(&input, c.Input) == nil && input.String() != "{}" && input.String() != "null" {
		b.HasInput = true
		d.Emit(event.Event{Type: event.PartAppend, Message: d.Key, Part: b.Part, Field: event.Input, Text: input.String()})
	}
}

// delta takes a content_block_delta.
func (d *decoder) delta(in *frame) error {
	c := in.Delta
	if c == nil {
		return fmt.Errorf("delta: %w", errMissing)
	}
	switch c.Type {
	case "text_delta":
		return d.grow(in.Index, event.Text, c.Text)
	case "thinking_delta":
		return d.grow(in.Index, event.Text, c.Thinking)
	case "input_json_delta":
		return d.grow(in.Index, event.Input, c.PartialJSON)
	case "citations_delta", "signature_delta":
	default:
		d.Unknowns.Add(c.Type)
	}
	return nil
}

// grow takes a delta of a text, as scan finds it.
func (d *decoder) grow(index int, f event.Field, token []byte) error {
	b := d.block(index)
	if b == nil {
		return fmt.Errorf("index %d: %w", index, errNoBlock)
	}
	if b.Part == "" {
		return nil // of a block that is not shown
	}
	return d.append(b, f, token)
}

// append says a text that came as a JSON token; an absent one is empty.
func (d *decoder) append(b *open, f event.Field, token json.RawMessage) error {
	if token == nil {
		return nil
	}
	text, err := b.Text.JSON(token)
	if err != nil {
		return err
	}
	d.say(b, f, text)
	return nil
}

func (d *decoder) say(b *open, f event.Field, text string) {
	if text == "" {
		return
	}
	op := event.PartAppend
	if f == event.Input {
		if b.HasInput && !b.Input {
			op = event.PartReplace // the deltas repeat the input from its beginning
		}
		b.Input = true
	}
	d.Emit(event.Event{Type: op, Message: d.Key, Part: b.Part, Field: f, Text: text})
}

func (d *decoder) flush(b *open) {
	f := event.Text
	if b.tool() {
		f = event.Input
	}
	d.say(b, f, b.Text.Close())
}

func (b *open) tool() bool {
	return b.Part != "" && strings.HasSuffix(b.Type, "tool_use")
}

// stop ends a block, and its part unless that is a tool's: its output may follow.
func (d *decoder) stop(b *open) {
	d.Open = slices.DeleteFunc(d.Open, func(o *open) bool { return o == b })
	if b.Part == "" {
		return
	}
	d.flush(b)
	if b.tool() {
		if !b.HasInput && !b.Input {
			d.say(b, event.Input, "{}")
		}
		return
	}
	d.Emit(event.Event{Type: event.PartEnd, Message: d.Key, Part: b.Part})
}

// result takes what a tool gave. It ends the tool's part.
func (d *decoder) result(c *block) {
	i := slices.IndexFunc(d.Tools, func(t *tool) bool { return t.Call == c.ToolUseID })
	var t *tool
	if i >= 0 {
		t = d.Tools[i]
		d.Tools = slices.Delete(d.Tools, i, i+1)
	} else {
		// The call was in a stream before this one.
		var b open
		d.part(&b, &event.Body{Kind: event.KindTool, Name: strings.TrimSuffix(c.Type, resultSuffix), Call: c.ToolUseID, State: event.PartRunning})
		t = &tool{Message: d.Key, Part: b.Part}
	}
	r := parseResult(c)
	for _, f := range []struct {
		field event.Field
		text  string
	}{{event.Output, r.output}, {event.Stderr, r.stderr}} {
		if f.text != "" {
			d.Emit(event.Event{Type: event.PartAppend, Message: t.Message, Part: t.Part, Field: f.field, Text: f.text})
		}
	}
	body := &event.Body{State: event.PartDone, Error: r.err}
	if r.err != nil {
		body.State = event.PartFailed
	}
	d.Emit(event.Event{Type: event.PartUpdate, Message: t.Message, Part: t.Part, Body: body})
	d.Emit(event.Event{Type: event.PartEnd, Message: t.Message, Part: t.Part})
}
