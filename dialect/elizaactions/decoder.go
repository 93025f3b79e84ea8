package elizaactions

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// name is that of the format, in configurations and requests.
const name = "eliza-actions"

// The readers and writers of the types on the wire and of the state.
var (
	frames = jsonscan.NewReader[frame]()
	states = jsonscan.NewWriter[state]()
)

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

// decoder maps chunks and callbacks to [dialect.Segments], which decides how they combine.
type decoder struct {
	state
	decoding.Base
	segments dialect.Segments
	in       frame
}

var _ dialect.Counter = (*decoder)(nil)

// state is the stored state. Segments is only set while it is encoded or restored: the live value is decoder.segments.
type state struct {
	Frames   int             `json:"frames"`
	IsOver   bool            `json:"ended,omitempty"`
	Text     dialect.Text    `json:"text,omitzero"`
	Unknowns dialect.Unknown `json:"unknown,omitempty"`
	Segments json.RawMessage `json:"segments,omitempty"`
}

// frame is a line. Optional fields are kept raw, so that a wrong type in one of them doesn't make the line invalid.
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
	return d.Base.Decode(name, &d.Frames, d.IsOver, f, d.decodeFrame)
}

// decodeFrame applies a line by its type. A callback is complete in its line, so its text needs no buffer for split characters.
func (d *decoder) decodeFrame(f dialect.Frame) error {
	if token, ok := scan(f.Data); ok {
		return d.chunk(token)
	}
	in, err := frames.Read(&d.in, f.Data)
	if err != nil {
		return decoding.Fault("invalid JSON", err)
	}
	switch in.Type {
	case "chunk":
		return d.chunk(optional(in.Text))
	case "callback":
		var decoded dialect.Text
		text, err := decoded.JSON(optional(in.Text))
		if err != nil {
			return decoding.Fault("text of a callback", err)
		}
		d.Emit(d.segments.Callback(text+decoded.Close(), merge(in.Merge))...)
	case "done":
		d.end(&event.Body{Outcome: event.Completed})
	case "error":
		d.end(&event.Body{Outcome: event.Failed, Error: in.failure()})
	case "":
		return decoding.Fault("no type", errNoType)
	default:
		d.Unknowns.Add(in.Type)
	}
	return nil
}

// scan returns the text token of a chunk in the form that every known runtime writes, without encoding/json: nine of ten frames are
// chunks. Any other form of the same JSON fails here and is read the slow way.
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

// chunk appends a token to the answer.
func (d *decoder) chunk(token []byte) error {
	text, err := d.Text.JSON(token)
	if err != nil {
		return decoding.Fault("text of a chunk", err)
	}
	d.Emit(d.segments.Text(text)...)
	return nil
}

// errNoType means that a line isn't a frame of this format.
var errNoType = errors.New("a frame must be an object with a type")

// optional replaces an absent token with null, which [dialect.Text.JSON] reads as the empty text.
func optional(token json.RawMessage) []byte {
	if token == nil {
		return []byte("null")
	}
	return token
}

// merge returns how a callback changes the status. Any other value than "append" replaces it, as Eliza's callback contract says.
func merge(token json.RawMessage) dialect.Merge {
	if string(token) == `"append"` {
		return dialect.Append
	}
	return dialect.Replace
}

// failure returns the error of a frame, in the form of events.
func (f *frame) failure() *event.Error {
	return &event.Error{
		Code: decoding.String(f.Code), Message: cmp.Or(decoding.String(f.Message), "the agent failed"), Retryable: string(f.Retryable) == "true",
	}
}

// end emits the buffered text and ends the turn.
func (d *decoder) end(b *event.Body) {
	d.IsOver = true
	d.flush()
	d.Emit(event.Event{Type: event.TurnEnd, Body: b})
}

// flush emits the buffered text, then ends the open parts and the message.
func (d *decoder) flush() {
	d.Emit(d.segments.Text(d.Text.Close())...)
	d.Emit(d.segments.Close()...)
}

// Close implements [dialect.Decoder].
func (d *decoder) Close() ([]event.Event, error) { return d.Base.Close(&d.IsOver, d.flush) }

// Unknown implements [dialect.Counter].
func (d *decoder) Unknown() dialect.Unknown { return d.Unknowns }

// usualState is the length of a state in bytes unless there is a status.
const usualState = 384

// State implements [dialect.Decoder].
func (d *decoder) State() ([]byte, error) {
	b, err := states.Append(make([]byte, 0, usualState), &d.state)
	if err != nil {
		return nil, err
	}
	b, err = d.segments.AppendState(append(b[:len(b)-1], `,"segments":`...))
	if err != nil {
		return nil, fmt.Errorf("state of segments: %w", err)
	}
	return append(b, '}'), nil
}

// Restore implements [dialect.Decoder].
func (d *decoder) Restore(b []byte) error {
	return decoding.Restore(b, &d.state, func(st *state) error {
		err := d.segments.Restore(st.Segments)
		st.Segments = nil
		return err
	})
}

// progress recognizes chunks and callbacks with a text. Some of them give no operations: a chunk that is buffered because it repeats the
// status, and a callback that repeats it.
func progress(f dialect.Frame) bool {
	var in struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
	}
	if json.Unmarshal(f.Data, &in) != nil || in.Type != "chunk" && in.Type != "callback" {
		return false
	}
	return decoding.String(in.Text) != ""
}
