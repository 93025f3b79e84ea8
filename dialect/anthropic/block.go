// The blocks of a message: text, thinking and tools, each with deltas.

package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

// resultSuffix ends the types of all blocks that have the result of a tool, such as web_search_tool_result.
const resultSuffix = "_tool_result"

// block returns the open block with an index, or nil. The newest wins, because indexes restart at 0 in a message that replaces another one.
func (d *decoder) block(index int) *open {
	for i := len(d.Open) - 1; i >= 0; i-- {
		if d.Open[i].Index == index {
			return d.Open[i]
		}
	}
	return nil
}

// start applies a content_block_start. Text and thinking may already have their first characters here, and a result is complete. A
// block that is not shown is stored too, so that its deltas are not taken for an error.
func (d *decoder) start(in *frame) error {
	if d.Key == "" {
		return errNoMessage
	}
	c := in.Block
	if c == nil {
		return fmt.Errorf("content_block: %w", errMissing)
	}
	if b := d.block(in.Index); b != nil {
		d.stop(b) // the upstream has left out its content_block_stop
	}
	// The limits are checked for every block, also for those that are not shown: each is in the state until its stop.
	if d.Parts == maxParts || len(d.Open) == maxOpen {
		return errMany
	}
	// A block of an unknown type keeps Part empty, so that its deltas and its stop change nothing.
	b := &open{Index: in.Index, Type: c.Type}
	// Two texts in a row are one paragraph, so the type of the block before decides about the join.
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
	// The content of redacted thinking is encrypted, so only its place is shown.
	case c.Type == "redacted_thinking":
		title := "redacted"
		d.part(b, &event.Body{Kind: event.KindReasoning, Title: &title})
	case c.Type == "tool_use", c.Type == "server_tool_use", c.Type == "mcp_tool_use":
		d.call(b, c)
	case strings.HasSuffix(c.Type, resultSuffix):
		d.result(c)
	case c.Type == "fallback":
		if c.To != nil {
			d.SetModel(&d.Model, c.To.Model) // another model continues the message
		}
	default:
		d.Unknowns.Add(c.Type)
	}
	d.Open = append(d.Open, b)
	return err
}

// part starts a block's part. Its key is the number of the part within the message, which unlike the index never repeats.
func (d *decoder) part(b *open, body *event.Body) {
	b.Part = strconv.Itoa(d.Parts)
	d.Parts++
	d.Emit(event.Event{Type: event.PartStart, Message: d.Key, Part: b.Part, Body: body})
}

// call starts the part of a tool. The input is usually {} here and arrives by deltas, but an upstream without deltas sends all of it here.
func (d *decoder) call(b *open, c *block) {
	t := &tool{Call: c.ID, Message: d.Key, Server: c.Type != "tool_use"}
	body := &event.Body{Kind: event.KindTool, Name: c.Name, Call: c.ID}
	if t.Server {
		body.State = event.PartRunning
	}
	d.part(b, body)
	t.Part = b.Part
	d.Tools = append(d.Tools, t)
	if input := decoding.Compact(c.Input); input != "" && input != "{}" && input != "null" {
		b.HasInput = true
		d.Emit(event.Event{Type: event.PartAppend, Message: d.Key, Part: b.Part, Field: event.Input, Text: input})
	}
}

// delta applies a content_block_delta that scan could not read.
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

// grow appends a delta, given as a JSON token, to the open block with an index. The deltas of a block that is not shown are ignored.
func (d *decoder) grow(index int, f event.Field, token []byte) error {
	b := d.block(index)
	if b == nil {
		return fmt.Errorf("index %d: %w", index, errNoBlock)
	}
	if b.Part == "" {
		return nil
	}
	return d.append(b, f, token)
}

// append decodes a JSON token and appends the text to a block's part. An absent token is an empty text.
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

// say emits text for a block's part. If the start of a tool's block had an input and deltas follow, the deltas repeat the input from its
// beginning, so the first one replaces it.
func (d *decoder) say(b *open, f event.Field, text string) {
	if text == "" {
		return
	}
	op := event.PartAppend
	if f == event.Input {
		if b.HasInput && !b.Input {
			op = event.PartReplace
		}
		b.Input = true
	}
	d.Emit(event.Event{Type: op, Message: d.Key, Part: b.Part, Field: f, Text: text})
}

// flush emits the incomplete character that is buffered in a block.
func (d *decoder) flush(b *open) {
	f := event.Text
	if b.tool() {
		f = event.Input
	}
	d.say(b, f, b.Text.Close())
}

// tool reports whether the block is a tool that is shown.
func (b *open) tool() bool { return b.Part != "" && strings.HasSuffix(b.Type, "tool_use") }

// stop ends a block. The part of a tool stays open, because its output may follow; a tool without arguments gets {} as its input,
// which is what the model meant. All other parts end with their block.
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

// result applies the result of a tool and ends the tool's part. A result whose call was in an earlier stream, for example before a
// pause, gets a new tool part, which is named by the type of the result.
func (d *decoder) result(c *block) {
	i := slices.IndexFunc(d.Tools, func(t *tool) bool { return t.Call == c.ToolUseID })
	var t *tool
	if i >= 0 {
		t = d.Tools[i]
		d.Tools = slices.Delete(d.Tools, i, i+1)
	} else {
		var b open
		d.part(&b, &event.Body{Kind: event.KindTool, Name: strings.TrimSuffix(c.Type, resultSuffix), Call: c.ToolUseID, State: event.PartRunning})
		t = &tool{Message: d.Key, Part: b.Part}
	}
	// The part may belong to an earlier message, which has ended; its operations still name that message.
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
