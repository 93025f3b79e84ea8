package canvas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

const (
	// maxOpen bounds the parts that are open at once: their keys are in every state.
	maxOpen = 512
	// maxParts bounds the parts of a turn; no reader looks at more.
	maxParts = 10_000
)

// Message is the upstream key of the one message.
const Message = "m"

// Canvas is the one message of a turn as far as it is drawn. It is a decoder's; readers get it with each frame.
type Canvas struct {
	state
	base decoding.Base
}

type state struct {
	Frames     int     `json:"frames"`
	IsOver     bool    `json:"ended,omitempty"`
	HasMessage bool    `json:"begun,omitempty"`
	Parts      int     `json:"parts,omitempty"` // ordinals given away
	Open       []*Part `json:"open,omitempty"`

	Model    string          `json:"model,omitempty"`
	Run      string          `json:"run,omitempty"`
	Phase    string          `json:"phase,omitempty"`
	Usage    event.Usage     `json:"usage,omitzero"`
	Unknowns dialect.Unknown `json:"unknown,omitempty"`
}

// Part is a part that is open.
type Part struct {
	Key  string         `json:"key"` // the upstream's, or the reader's
	ID   string         `json:"id"`
	Kind event.PartKind `json:"kind"`
	// Raw holds what is incomplete of a character, of the field that grows by deltas.
	Raw dialect.Text `json:"raw,omitzero"`
	// The lengths and hashes of its texts. A tool's text is its input.
	Text   dialect.Snapshot `json:"text,omitzero"`
	Output dialect.Snapshot `json:"output,omitzero"`
	Stderr dialect.Snapshot `json:"stderr,omitzero"`

	State event.PartState `json:"state,omitempty"` // of a tool
	Title string          `json:"title,omitempty"`
}

// Unknown counts a frame, or a piece of one, that the reader does not know.
func (c *Canvas) Unknown(name string) { c.Unknowns.Add(name) }

// Draw adds an operation as it is.
func (c *Canvas) Draw(e event.Event) { c.base.Emit(e) }

// Begin starts the message, if that has not happened.
func (c *Canvas) Begin() {
	if !c.HasMessage {
		c.HasMessage = true
		c.Draw(event.Event{Type: event.MessageStart, Message: Message, Body: &event.Body{Role: event.Assistant}})
	}
}

// Find returns the open part of a key, or nil.
func (c *Canvas) Find(key string) *Part {
	for i := len(c.Open) - 1; i >= 0; i-- {
		if c.Open[i].Key == key {
			return c.Open[i]
		}
	}
	return nil
}

// Start opens a part.
func (c *Canvas) Start(key string, b event.Body) (*Part, error) {
	if err := event.CheckID("id", key); err != nil {
		return nil, Fault("id of a part", err)
	}
	if c.Parts >= maxParts {
		return nil, Fault(fmt.Sprintf("more than %d parts", maxParts), nil)
	}
	if len(c.Open) >= maxOpen {
		// The oldest that may well be over: dialects leave texts open that could yet be told anew.
		i := slices.IndexFunc(c.Open, func(p *Part) bool { return p.Kind != event.KindTool || p.State != event.PartRunning })
		if i < 0 {
			return nil, Fault(fmt.Sprintf("more than %d tools run at once", maxOpen), nil)
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

// Prose returns the part of a key, which it starts if need be: a text that is a paragraph of its own, or a reasoning.
func (c *Canvas) Prose(key string, kind event.PartKind) (*Part, error) {
	if p := c.Find(key); p != nil {
		return p, nil
	}
	b := event.Body{Kind: kind}
	if kind == event.KindText {
		b.Join = event.JoinBlank
	}
	return c.Start(key, b)
}

// Tool returns the tool part of a call, which it starts if need be.
func (c *Canvas) Tool(key, call, name string, state event.PartState) (*Part, error) {
	if p := c.Find(key); p != nil {
		return p, nil
	}
	if err := event.CheckID("call", call); err != nil {
		return nil, Fault("id of a call", err)
	}
	return c.Start(key, event.Body{Kind: event.KindTool, Name: name, Call: call, State: state})
}

// Grow appends a delta that came as a JSON token; an absent one is empty.
func (c *Canvas) Grow(p *Part, f event.Field, token json.RawMessage) error {
	if token == nil {
		return nil
	}
	text, err := p.Raw.JSON(token)
	if err != nil {
		return Fault("text of a delta", err)
	}
	c.Append(p, f, text)
	return nil
}

func (p *Part) field(f event.Field) *dialect.Snapshot {
	switch f {
	case event.Output:
		return &p.Output
	case event.Stderr:
		return &p.Stderr
	}
	return &p.Text
}

// Append appends whole characters.
func (c *Canvas) Append(p *Part, f event.Field, text string) {
	if text == "" {
		return
	}
	p.field(f).Append(text)
	c.Draw(event.Event{Type: event.PartAppend, Message: Message, Part: p.ID, Field: f, Text: text})
}

// Set takes a snapshot: the text as it is now.
func (c *Canvas) Set(p *Part, f event.Field, text string) {
	if f != event.Output && f != event.Stderr {
		p.Raw = dialect.Text{} // what was incomplete is told anew
	}
	if op, delta := p.field(f).Next(text); op != "" {
		c.Draw(event.Event{Type: op, Message: Message, Part: p.ID, Field: f, Text: delta})
	}
}

// SetToken takes a snapshot that came as a JSON token. What it has incomplete at its end waits for a delta.
func (c *Canvas) SetToken(p *Part, f event.Field, token json.RawMessage) error {
	var raw dialect.Text
	text, err := raw.JSON(token)
	if err != nil {
		return Fault("text of a snapshot", err)
	}
	c.Set(p, f, text)
	p.Raw = raw
	return nil
}

// Update tells of a tool's state, title and error, as far as they are new.
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

// EndPart ends a part. nil is none.
func (c *Canvas) EndPart(p *Part) {
	if p == nil {
		return
	}
	c.flush(p)
	c.Open = slices.DeleteFunc(c.Open, func(o *Part) bool { return o == p })
	c.Draw(event.Event{Type: event.PartEnd, Message: Message, Part: p.ID})
}

// flush says what is held back of a part's text.
func (c *Canvas) flush(p *Part) {
	f := event.Text
	if p.Kind == event.KindTool {
		f = event.Input
	}
	c.Append(p, f, p.Raw.Close())
}

// noResult is the error message of a tool that was still running when the turn ended.
const noResult = "no result"

// EndTools ends the tools that are open. One that was running has failed.
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

// SetModel names the model that answers.
func (c *Canvas) SetModel(name string) {
	if name != "" && name != c.Model {
		c.Model = name
		c.Draw(event.Event{Type: event.TurnUpdate, Body: &event.Body{Model: name}})
	}
}

// SetRun names the upstream's run.
func (c *Canvas) SetRun(id string) {
	if id != "" && id != c.Run {
		c.Run = id
		c.Draw(event.Event{Type: event.TurnUpdate, Body: &event.Body{Upstream: &event.Upstream{Run: id}}})
	}
}

// SetPhase tells of progress.
func (c *Canvas) SetPhase(phase string) {
	if phase != "" && phase != c.Phase {
		c.Phase = phase
		c.Draw(event.Event{Type: event.TurnUpdate, Body: &event.Body{Phase: phase}})
	}
}

// Ask asks whoever follows the turn.
func (c *Canvas) Ask(r event.Request) error {
	if err := event.CheckID("request", r.ID); err != nil || r.ID == "" {
		return Fault("id of a request", err)
	}
	e := event.Event{Type: event.TurnWait, Body: &event.Body{Request: &r}}
	if r.Part != "" {
		e.Message = Message
	}
	c.Draw(e)
	return nil
}

// Complete ends the turn as the upstream wanted it to end.
func (c *Canvas) Complete(reason string) {
	c.End(event.Body{Outcome: event.Completed, Reason: reason})
}

// Fail ends the turn with an error.
func (c *Canvas) Fail(e event.Error) {
	if e.Message == "" {
		e.Message = "the agent failed"
	}
	c.End(event.Body{Outcome: event.Failed, Error: &e})
}

// End ends all that is open, the message and the turn.
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
		if usage.Model == "" {
			usage.Model = c.Model
		}
		b.Usage = &usage
	}
	c.IsOver = true
	c.Draw(event.Event{Type: event.TurnEnd, Body: &b})
}

// compact removes the white space between the tokens of raw. Invalid JSON is returned unchanged.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// Texts returns the parts that are open and no tools.
func (c *Canvas) Texts() []*Part {
	return slices.DeleteFunc(slices.Clone(c.Open), func(p *Part) bool { return p.Kind == event.KindTool })
}
