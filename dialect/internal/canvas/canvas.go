package canvas

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

const (
	// maxOpen is the limit of open parts, because the keys of all open parts are stored with every commit.
	maxOpen = 512
	// maxParts is the limit of parts in a turn. A turn with more is an attack or a fault, and no user reads it.
	maxParts = 10_000
)

// Message is the upstream key of the one message.
const Message = "m"

// Canvas is the message that a dialect's reader builds: the open parts, and the operations of the current frame. The decoder owns it and
// passes it to the reader with each frame; a reader must not retain it.
type Canvas struct {
	state
	base decoding.Base
}

// state is the part of a canvas that is stored with every commit.
type state struct {
	Frames     int     `json:"frames"`
	IsOver     bool    `json:"ended,omitempty"` // the turn has ended
	HasMessage bool    `json:"begun,omitempty"`
	Parts      int     `json:"parts,omitempty"` // the number of parts started; the last one's id
	Open       []*Part `json:"open,omitempty"`  // in order of their start

	// The last values that were emitted, so that a repeated one emits nothing.
	Model string `json:"model,omitempty"`
	Run   string `json:"run,omitempty"`
	Phase string `json:"phase,omitempty"`

	Usage    event.Usage     `json:"usage,omitzero"` // of the turn; readers of dialects update it, and End reports it
	Unknowns dialect.Unknown `json:"unknown,omitempty"`
}

// Part is an open part.
type Part struct {
	Key  string         `json:"key"` // from the upstream, or chosen by the reader
	ID   string         `json:"id"`
	Kind event.PartKind `json:"kind"`
	// Raw buffers an incomplete character of the field that grows by deltas.
	Raw dialect.Text `json:"raw,omitzero"`
	// The lengths and hashes of the part's fields. The Text of a tool is its input.
	Text   dialect.Snapshot `json:"text,omitzero"`
	Output dialect.Snapshot `json:"output,omitzero"`
	Stderr dialect.Snapshot `json:"stderr,omitzero"`

	State event.PartState `json:"state,omitempty"` // only for tools
	Title string          `json:"title,omitempty"`
}

// Unknown counts a frame, or an element of one, that the reader doesn't recognize.
func (c *Canvas) Unknown(name string) { c.Unknowns.Add(name) }

// Draw emits an operation unchanged. Prefer the other methods, which keep the state of the parts.
func (c *Canvas) Draw(e event.Event) { c.base.Emit(e) }

// Begin starts the message if it hasn't been started.
func (c *Canvas) Begin() {
	if !c.HasMessage {
		c.HasMessage = true
		c.Draw(event.Event{Type: event.MessageStart, Message: Message, Body: &event.Body{Role: event.Assistant}})
	}
}

// Find returns the open part with a key, or nil. The newest wins if several have the key.
func (c *Canvas) Find(key string) *Part {
	for i := len(c.Open) - 1; i >= 0; i-- {
		if c.Open[i].Key == key {
			return c.Open[i]
		}
	}
	return nil
}

// Key returns prefix and id as one key. If a part with that key is open, the result is the part's, so that a delta needs no memory for it.
func (c *Canvas) Key(prefix, id string) string {
	for _, p := range c.Open {
		if len(p.Key) == len(prefix)+len(id) && strings.HasPrefix(p.Key, prefix) && p.Key[len(prefix):] == id {
			return p.Key
		}
	}
	return prefix + id
}

// Start opens a part with the given key and starts the message if needed. It fails if a key or a number of parts exceeds its limit. At
// maxOpen it first ends the oldest part that isn't a running tool.
func (c *Canvas) Start(key string, b event.Body) (*Part, error) {
	if err := event.CheckID("id", key); err != nil {
		return nil, decoding.Fault("id of a part", err)
	}
	if c.Parts >= maxParts {
		return nil, decoding.Fault(fmt.Sprintf("more than %d parts", maxParts), nil)
	}
	if len(c.Open) >= maxOpen {
		// Readers leave texts open that a later snapshot could change, so the oldest one is probably finished.
		i := slices.IndexFunc(c.Open, func(p *Part) bool { return p.Kind != event.KindTool || p.State != event.PartRunning })
		if i < 0 {
			return nil, decoding.Fault(fmt.Sprintf("more than %d tools run at once", maxOpen), nil)
		}
		c.EndPart(c.Open[i])
	}
	c.Begin()
	c.Parts++
	p := &Part{Key: key, ID: strconv.Itoa(c.Parts), Kind: b.Kind, State: b.State}
	c.Open = append(c.Open, p)
	c.Draw(event.Event{Type: event.PartStart, Message: Message, Part: p.ID, Body: &b})
	return p, nil
}

// Prose returns the open part with a key, and starts one if needed. Each text and each status is a separate paragraph.
func (c *Canvas) Prose(key string, kind event.PartKind) (*Part, error) {
	if p := c.Find(key); p != nil {
		return p, nil
	}
	b := event.Body{Kind: kind}
	if kind != event.KindReasoning {
		b.Join = event.JoinBlank
	}
	return c.Start(key, b)
}

// GrowProse appends a delta, given as a JSON token, to the part that [Canvas.Prose] returns. An absent or empty delta does nothing, so
// that a part starts with its first text: many upstreams announce texts that then stay empty.
func (c *Canvas) GrowProse(key string, kind event.PartKind, token json.RawMessage) error {
	if token == nil || string(token) == `""` {
		return nil
	}
	p, err := c.Prose(key, kind)
	if err != nil {
		return err
	}
	return c.Grow(p, event.Text, token)
}

// SetProse applies a snapshot to the part that [Canvas.Prose] returns. An empty text does nothing: upstreams leave the text out of
// messages that only have tools, and such a message doesn't retract a text.
func (c *Canvas) SetProse(key string, kind event.PartKind, text string) error {
	if text == "" {
		return nil
	}
	p, err := c.Prose(key, kind)
	if err == nil {
		c.Set(p, event.Text, text)
	}
	return err
}

// Tool returns the open tool part with a key, and starts one if needed. call is the upstream's id of the call. It may be empty, and
// so may state, if the stream doesn't say whether the tool runs.
func (c *Canvas) Tool(key, call, name string, state event.PartState) (*Part, error) {
	if p := c.Find(key); p != nil {
		return p, nil
	}
	if err := event.CheckID("call", call); err != nil {
		return nil, decoding.Fault("id of a call", err)
	}
	return c.Start(key, event.Body{Kind: event.KindTool, Name: name, Call: call, State: state})
}

// Grow appends a delta, given as a JSON token so that a character can be split between deltas. A nil token is an empty delta.
func (c *Canvas) Grow(p *Part, f event.Field, token json.RawMessage) error {
	if token == nil {
		return nil
	}
	text, err := p.Raw.JSON(token)
	if err != nil {
		return decoding.Fault("text of a delta", err)
	}
	c.Append(p, f, text)
	return nil
}

// field returns the length and hash of one of a part's texts. A tool's input is its Text.
func (p *Part) field(f event.Field) *dialect.Snapshot {
	switch f {
	case event.Output:
		return &p.Output
	case event.Stderr:
		return &p.Stderr
	}
	return &p.Text
}

// Append appends text, which must not end inside a character. An empty text emits nothing.
func (c *Canvas) Append(p *Part, f event.Field, text string) {
	if text == "" {
		return
	}
	p.field(f).Append(text)
	c.Draw(event.Event{Type: event.PartAppend, Message: Message, Part: p.ID, Field: f, Text: text})
}

// Set applies a snapshot: text is the field's whole content. It emits only the difference.
func (c *Canvas) Set(p *Part, f event.Field, text string) {
	if f != event.Output && f != event.Stderr {
		p.Raw = dialect.Text{} // the snapshot includes the buffered bytes
	}
	if op, delta := p.field(f).Next(text); op != "" {
		c.Draw(event.Event{Type: op, Message: Message, Part: p.ID, Field: f, Text: delta})
	}
}

// SetToken is Set for a JSON token. An incomplete character at its end is buffered until the next delta.
func (c *Canvas) SetToken(p *Part, f event.Field, token json.RawMessage) error {
	var raw dialect.Text
	text, err := raw.JSON(token)
	if err != nil {
		return decoding.Fault("text of a snapshot", err)
	}
	c.Set(p, f, text)
	p.Raw = raw
	return nil
}

// Update emits the state and title of a tool if they have changed, and its error. Empty values mean no change.
func (c *Canvas) Update(p *Part, state event.PartState, title string, failure *event.Error) {
	b := &event.Body{Error: failure}
	if state != "" && state != p.State {
		b.State, p.State = state, state
	}
	if title != "" && title != p.Title {
		b.Title, p.Title = &title, title
	}
	if b.State != "" || b.Title != nil || b.Error != nil {
		c.Draw(event.Event{Type: event.PartUpdate, Message: Message, Part: p.ID, Body: b})
	}
}

// EndPart ends a part. It does nothing if p is nil. End a running tool only after Update has set its final state, or readers see it
// as failed.
func (c *Canvas) EndPart(p *Part) {
	if p == nil {
		return
	}
	c.flush(p)
	c.Open = slices.DeleteFunc(c.Open, func(o *Part) bool { return o == p })
	c.Draw(event.Event{Type: event.PartEnd, Message: Message, Part: p.ID})
}

// flush emits the buffered character of a part.
func (c *Canvas) flush(p *Part) {
	f := event.Text
	if p.Kind == event.KindTool {
		f = event.Input
	}
	c.Append(p, f, p.Raw.Close())
}

// noResult is the error message of a tool that was still running when the turn ended.
const noResult = "no result"

// EndTools ends all open tools. It marks running ones as failed, with the error noResult: a tool that is still shown as running after its
// turn would never end for readers.
func (c *Canvas) EndTools() {
	for _, p := range slices.Clone(c.Open) {
		if p.Kind != event.KindTool {
			continue
		}
		if p.State == event.PartRunning {
			c.Update(p, event.PartFailed, "", &event.Error{Message: noResult})
		}
		c.EndPart(p)
	}
}

// AddPart adds a part that arrives complete, such as media or data.
func (c *Canvas) AddPart(b event.Body) error {
	p, err := c.Start("", b)
	if err == nil {
		c.EndPart(p)
	}
	return err
}

// SetModel sets the turn's model. It does nothing if name is empty or unchanged.
func (c *Canvas) SetModel(name string) { c.base.SetModel(&c.Model, name) }

// SetRun sets the id of the upstream's run. It does nothing if id is empty or unchanged.
func (c *Canvas) SetRun(id string) {
	if id != "" && id != c.Run {
		c.Run = id
		c.Draw(event.Event{Type: event.TurnUpdate, Body: &event.Body{Upstream: &event.Upstream{Run: id}}})
	}
}

// SetPhase sets the turn's phase, a short text about its progress. It does nothing if phase is empty or unchanged.
func (c *Canvas) SetPhase(phase string) {
	if phase != "" && phase != c.Phase {
		c.Phase = phase
		c.Draw(event.Event{Type: event.TurnUpdate, Body: &event.Body{Phase: phase}})
	}
}

// Ask emits a question. The turn then waits for its answer.
func (c *Canvas) Ask(r event.Request) error {
	if err := event.CheckID("request", r.ID); err != nil || r.ID == "" {
		return decoding.Fault("id of a request", err)
	}
	e := event.Event{Type: event.TurnWait, Body: &event.Body{Request: &r}}
	if r.Part != "" {
		e.Message = Message
	}
	c.Draw(e)
	return nil
}

// Complete ends the turn as completed.
func (c *Canvas) Complete(reason string) {
	c.End(event.Body{Outcome: event.Completed, Reason: reason})
}

// Fail ends the turn as failed. If e has no message, a general one is set.
func (c *Canvas) Fail(e event.Error) {
	e.Message = cmp.Or(e.Message, "the agent failed")
	c.End(event.Body{Outcome: event.Failed, Error: &e})
}

// End ends all open parts, the message and the turn, in that order. The decoder ignores later frames.
func (c *Canvas) End(b event.Body) {
	c.EndTools()
	for _, p := range slices.Clone(c.Open) {
		c.EndPart(p)
	}
	if c.HasMessage {
		c.Draw(event.Event{Type: event.MessageEnd, Message: Message})
	}
	if c.Usage != (event.Usage{}) {
		usage := c.Usage
		usage.Model = cmp.Or(usage.Model, c.Model)
		b.Usage = &usage
	}
	c.IsOver = true
	c.Draw(event.Event{Type: event.TurnEnd, Body: &b})
}

// Texts returns the open parts that aren't tools.
func (c *Canvas) Texts() []*Part {
	return slices.DeleteFunc(slices.Clone(c.Open), func(p *Part) bool { return p.Kind == event.KindTool })
}
