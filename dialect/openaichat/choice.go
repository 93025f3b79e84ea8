package openaichat

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

// choice is one answer of the stream, with the state that its next delta needs. After its end only the first three fields are set.
type choice struct {
	Index    int    `json:"index"`
	Finished bool   `json:"finished,omitempty"`
	Reason   string `json:"reason,omitempty"`

	Texting  bool         `json:"texting,omitempty"` // its text has begun
	Text     dialect.Text `json:"text,omitzero"`
	Thinking bool         `json:"thinking,omitempty"` // a reasoning part is open
	Thoughts int          `json:"thoughts,omitempty"` // the number of reasoning parts
	Thought  dialect.Text `json:"thought,omitzero"`
	Tools    []*tool      `json:"tools,omitempty"`
}

// tool is a call of a choice. The key of its part is its position among the calls, because servers send indexes twice or not at all.
type tool struct {
	Index    *int         `json:"index,omitempty"` // nil if the server sends none
	ID       string       `json:"id,omitempty"`
	HasInput bool         `json:"said,omitempty"` // it has some input
	Text     dialect.Text `json:"text,omitzero"`
}

func (c *choice) key() string { return strconv.Itoa(c.Index) }

// textKey, thoughtKey and toolKey are the keys of parts within the message of a choice.
const textKey = "text"

func (c *choice) thoughtKey() string { return "reasoning" + strconv.Itoa(c.Thoughts) }

// toolKey returns the key of the part of a tool call, by its index.
func toolKey(i int) string { return "tool" + strconv.Itoa(i+1) }

// delta applies what a chunk adds to a choice, in the order in which a model writes it: reasoning, text, calls. An empty string in a delta is
// not a text, so that a part starts with its first character.
func (d *decoder) delta(c *choice, in *delta) error {
	thought := in.ReasoningContent
	if null(thought) {
		thought = in.Reasoning // a server that sends both keys sends the same text in them
	}
	if err := d.think(c, thought); err != nil {
		return err
	}
	if err := d.content(c, in.Content); err != nil {
		return err
	}
	if err := d.text(c, in.Refusal); err != nil {
		return err
	}
	for i := range in.ToolCalls {
		if err := d.call(c, &in.ToolCalls[i]); err != nil {
			return err
		}
	}
	if in.FunctionCall != nil {
		index := 0
		return d.call(c, &call{Index: &index, Function: *in.FunctionCall})
	}
	return nil
}

// content applies a content: a string, or a list of texts and thoughts, as Mistral's reasoning models send it.
func (d *decoder) content(c *choice, raw json.RawMessage) error {
	if !bytes.HasPrefix(raw, []byte("[")) {
		return d.text(c, raw)
	}
	var pieces []piece
	if err := json.Unmarshal(raw, &pieces); err != nil {
		return err
	}
	for _, p := range pieces {
		switch p.Type {
		case "text":
			if err := d.text(c, p.Text); err != nil {
				return err
			}
		case "thinking":
			for _, t := range p.Thinking {
				if err := d.think(c, t.Text); err != nil {
					return err
				}
			}
		default:
			d.Unknowns.Add(p.Type)
		}
	}
	return nil
}

// think appends to the open reasoning part, and starts one if none is open.
func (d *decoder) think(c *choice, raw json.RawMessage) error {
	if null(raw) {
		return nil
	}
	text, err := c.Thought.JSON(raw)
	if err != nil || text == "" {
		return err
	}
	if !c.Thinking {
		c.Thinking = true
		c.Thoughts++
		d.start(c, c.thoughtKey(), &event.Body{Kind: event.KindReasoning})
	}
	d.append(c, c.thoughtKey(), event.Text, text)
	return nil
}

// thought ends the open reasoning part, because a text or a call follows. The last part within the limit stays open until the choice
// ends, so that later reasoning can be appended to it.
func (d *decoder) thought(c *choice) {
	if !c.Thinking || c.Thoughts == maxThoughts {
		return
	}
	d.append(c, c.thoughtKey(), event.Text, c.Thought.Close())
	d.Emit(event.Event{Type: event.PartEnd, Message: c.key(), Part: c.thoughtKey()})
	c.Thinking = false
}

// text decodes a piece of the answer and appends it to the choice's only text.
func (d *decoder) text(c *choice, raw json.RawMessage) error {
	if null(raw) {
		return nil
	}
	text, err := c.Text.JSON(raw)
	if err != nil || text == "" {
		return err
	}
	d.thought(c)
	d.say(c, text)
	return nil
}

// say appends to the choice's only text, which starts with its first character.
func (d *decoder) say(c *choice, text string) {
	if text == "" {
		return
	}
	if !c.Texting {
		c.Texting = true
		d.start(c, textKey, &event.Body{Kind: event.KindText, Join: event.JoinBlank})
	}
	d.append(c, textKey, event.Text, text)
}

// call appends a piece of a tool call to the input of its tool, and starts the tool if the call is new. The arguments are a string of JSON;
// some servers send the object itself, which is then complete.
func (d *decoder) call(c *choice, in *call) error {
	i := c.tool(in)
	if i < 0 {
		if len(c.Tools) == maxTools {
			return errManyTools
		}
		d.thought(c)
		i = len(c.Tools)
		t := &tool{ID: in.ID}
		if in.Index != nil {
			index := *in.Index // in is valid for this frame only
			t.Index = &index
		}
		c.Tools = append(c.Tools, t)
		d.start(c, toolKey(i), &event.Body{Kind: event.KindTool, Name: in.Function.Name, Call: in.ID})
	}
	t, args := c.Tools[i], in.Function.Arguments
	if null(args) {
		return nil
	}
	if args[0] == '{' {
		d.input(c, i, decoding.Compact(args))
		return nil
	}
	text, err := t.Text.JSON(args)
	if err != nil {
		return err
	}
	d.input(c, i, text)
	return nil
}

// tool returns the position of the call that a piece belongs to, or -1 if it is a new call. The index decides. Without one, a piece with
// neither id nor name continues the last call, and any other piece belongs to the call with its id. A server that reuses an index for a new
// call is recognized by a new id together with a name, which only the first piece of a call has.
func (c *choice) tool(in *call) int {
	for i := len(c.Tools) - 1; i >= 0; i-- {
		t := c.Tools[i]
		switch {
		case in.Index == nil && in.ID == "" && in.Function.Name == "":
			return i
		case in.Index == nil:
			if in.ID != "" && in.ID == t.ID {
				return i
			}
		case t.Index != nil && *t.Index == *in.Index:
			if in.ID != "" && t.ID != "" && in.ID != t.ID && in.Function.Name != "" {
				return -1
			}
			return i
		}
	}
	return -1
}

// input appends to the arguments of a tool call.
func (d *decoder) input(c *choice, i int, text string) {
	if text == "" {
		return
	}
	c.Tools[i].HasInput = true
	d.append(c, toolKey(i), event.Input, text)
}

// start starts a part of a choice.
func (d *decoder) start(c *choice, part string, b *event.Body) {
	d.Emit(event.Event{Type: event.PartStart, Message: c.key(), Part: part, Body: b})
}

// append emits text for a part. An empty text emits nothing.
func (d *decoder) append(c *choice, part string, f event.Field, text string) {
	if text != "" {
		d.Emit(event.Event{Type: event.PartAppend, Message: c.key(), Part: part, Field: f, Text: text})
	}
}

// finish ends the open parts of a choice and its message. A call without arguments gets {} as its input, which is what the model meant.
func (d *decoder) finish(c *choice, reason string) {
	d.flush(c)
	if c.Thinking {
		d.Emit(event.Event{Type: event.PartEnd, Message: c.key(), Part: c.thoughtKey()})
	}
	if c.Texting {
		d.Emit(event.Event{Type: event.PartEnd, Message: c.key(), Part: textKey})
	}
	for i, t := range c.Tools {
		if !t.HasInput {
			d.input(c, i, "{}")
		}
		d.Emit(event.Event{Type: event.PartEnd, Message: c.key(), Part: toolKey(i)})
	}
	d.EndMessage(c.key(), reason)
	*c = choice{Index: c.Index, Finished: true, Reason: reason}
}

// flush emits the incomplete characters that are buffered in the choice's texts.
func (d *decoder) flush(c *choice) {
	if c.Thinking {
		d.append(c, c.thoughtKey(), event.Text, c.Thought.Close())
	}
	d.say(c, c.Text.Close())
	for i, t := range c.Tools {
		d.input(c, i, t.Text.Close())
	}
}
