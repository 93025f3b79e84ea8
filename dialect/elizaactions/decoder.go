package elizaactions

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

const name = "eliza-actions"

// Dialect describes the NDJSON of Eliza's action callbacks.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "text chunks and action callbacks of an Eliza runtime, NDJSON",
		Framing:  dialect.Lines,
		Progress: progress,
		Decoder:  func() dialect.Decoder { return &decoder{} },
	}
}

type decoder struct {
	state
	segments dialect.Segments
	failed   error
	closed   bool
}

var (
	_ dialect.Decoder = (*decoder)(nil)
	_ dialect.Counter = (*decoder)(nil)
)

// state is what outlives a frame beside the segments.
type state struct {
	Frames   int             `json:"frames"`
	IsOver   bool            `json:"ended,omitempty"`
	Text     dialect.Text    `json:"text,omitzero"`
	Unknowns dialect.Unknown `json:"unknown,omitempty"`
	Segments json.RawMessage `json:"segments,omitempty"`
}

// frame is a line. What may have the wrong type without harm is read raw.
type frame struct {
	Type      string          `json:"type"`
	Text      json.RawMessage `json:"text"`
	Merge     json.RawMessage `json:"merge"`
	Message   json.RawMessage `json:"message"`
	Code      json.RawMessage `json:"code"`
	Retryable json.RawMessage `json:"retryable"`
}

// Decode implements [dialect.Decoder].
func (d *decoder) Decode(f dialect.Frame) ([]event.Event, error) {
	if d.failed != nil {
		return nil, d.failed
	}
	if d.IsOver || d.closed {
		return nil, nil
	}
	d.Frames++
	if token, ok := scan(f.Data); ok {
		return d.chunk(token)
	}
	var in frame
	if err := json.Unmarshal(f.Data, &in); err != nil {
		return nil, d.fail("invalid JSON", err)
	}
	switch in.Type {
	case "chunk":
		return d.chunk(optional(in.Text))
	case "callback":
		var decoded dialect.Text
		text, err := decoded.JSON(optional(in.Text))
		if err != nil {
			return nil, d.fail("text of a callback", err)
		}
		return d.segments.Callback(text+decoded.Close(), merge(in.Merge)), nil
	case "done":
		return d.end(&event.Body{Outcome: event.Completed}), nil
	case "error":
		return d.end(&event.Body{Outcome: event.Failed, Error: in.failure()}), nil
	case "":
		return nil, d.fail("no type", errNoType)
	}
	d.Unknowns.Add(in.Type)
	return nil, nil
}

// scan reads a chunk as it is usually written: nine frames of ten.
func scan(b []byte) (token []byte, ok bool) {
	s := jsonscan.New(b)
	if !s.Lit(`{"type":"chunk","text":`) {
		return nil, false
	}
	if token, ok = s.String(); !ok {
		return nil, false
	}
	return token, s.Lit("}") && s.End()
}

func (d *decoder) chunk(token []byte) ([]event.Event, error) {
	text, err := d.Text.JSON(token)
	if err != nil {
		return nil, d.fail("text of a chunk", err)
	}
	return d.segments.Text(text), nil
}

var errNoType = errors.New("a frame is an object with a type")

// optional takes an absent text for an empty one.
func optional(token json.RawMessage) []byte {
	if token == nil {
		return []byte("null")
	}
	return token
}

func merge(token json.RawMessage) dialect.Merge {
	if string(token) == `"append"` {
		return dialect.Append
	}
	return dialect.Replace
}

func (f *frame) failure() *event.Error {
	e := &event.Error{Code: word(f.Code), Message: word(f.Message), Retryable: string(f.Retryable) == "true"}
	if e.Message == "" {
		e.Message = "the agent failed"
	}
	return e
}

// word returns a string, and nothing for whatever else an upstream puts in its place.
func word(token json.RawMessage) string {
	var t dialect.Text
	s, err := t.JSON(optional(token))
	if err != nil {
		return ""
	}
	return s + t.Close()
}

func (d *decoder) end(b *event.Body) []event.Event {
	d.IsOver = true
	return append(d.release(), event.Event{Type: event.TurnEnd, Body: b})
}

// release says what is held back.
func (d *decoder) release() []event.Event {
	ops := d.segments.Text(d.Text.Close())
	return append(ops, d.segments.Close()...)
}

func (d *decoder) fail(reason string, err error) error {
	d.failed = &dialect.Error{Dialect: name, Frame: d.Frames, Reason: reason, Err: err}
	return d.failed
}

// Close implements [dialect.Decoder].
func (d *decoder) Close() ([]event.Event, error) {
	if d.IsOver || d.closed {
		d.closed = true
		return nil, nil
	}
	d.closed = true
	return d.release(), dialect.ErrCutShort
}

// Unknown implements [dialect.Counter].
func (d *decoder) Unknown() dialect.Unknown { return d.Unknowns }

// State implements [dialect.Decoder].
func (d *decoder) State() ([]byte, error) {
	segments, err := d.segments.State()
	if err != nil {
		return nil, fmt.Errorf("state of segments: %w", err)
	}
	st := d.state
	st.Segments = nil
	b, err := json.Marshal(&st)
	if err != nil {
		return nil, err
	}
	// The segments are JSON as they are, which encoding/json would read again.
	b = append(append(b[:len(b)-1], `,"segments":`...), segments...)
	return append(b, '}'), nil
}

// Restore implements [dialect.Decoder].
func (d *decoder) Restore(b []byte) error {
	var st state
	if err := json.Unmarshal(b, &st); err != nil {
		return err
	}
	if err := d.segments.Restore(st.Segments); err != nil {
		return err
	}
	st.Segments = nil
	d.state = st
	return nil
}
