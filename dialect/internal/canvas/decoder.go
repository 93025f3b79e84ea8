package canvas

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

// Reader applies the frames of one dialect to a canvas. Its exported fields are stored as JSON with every commit and restored from it, so
// it must not depend on unexported fields.
type Reader interface {
	Read(c *Canvas, f dialect.Frame) error
}

// NewDecoder returns the decoder of a stream whose frames r reads. r must be a pointer, because Restore decodes into it.
func NewDecoder(name string, r Reader) dialect.Decoder { return &decoder{name: name, reader: r} }

type decoder struct {
	name   string
	reader Reader
	canvas Canvas
}

var (
	_ dialect.Decoder = (*decoder)(nil)
	_ dialect.Counter = (*decoder)(nil)
)

// Decode implements [dialect.Decoder].
func (d *decoder) Decode(f dialect.Frame) ([]event.Event, error) {
	return d.canvas.base.Decode(d.name, &d.canvas.Frames, d.canvas.IsOver, f, d.decodeFrame)
}

func (d *decoder) decodeFrame(f dialect.Frame) error { return d.reader.Read(&d.canvas, f) }

// Close implements [dialect.Decoder].
func (d *decoder) Close() ([]event.Event, error) {
	return d.canvas.base.Close(&d.canvas.IsOver, d.flushOpen)
}

// flushOpen emits the buffered text of the open parts when the stream is cut short.
func (d *decoder) flushOpen() {
	for _, p := range d.canvas.Open {
		d.canvas.flush(p)
	}
}

// Unknown implements [dialect.Counter].
func (d *decoder) Unknown() dialect.Unknown { return d.canvas.Unknowns }

type decoderState struct {
	Canvas json.RawMessage `json:"canvas"`
	Reader json.RawMessage `json:"reader"`
}

// State implements [dialect.Decoder].
func (d *decoder) State() ([]byte, error) {
	canvas, err := json.Marshal(&d.canvas.state)
	if err != nil {
		return nil, fmt.Errorf("state of the canvas: %w", err)
	}
	reader, err := json.Marshal(d.reader)
	if err != nil {
		return nil, fmt.Errorf("state of the reader: %w", err)
	}
	// Appended by hand, because encoding/json would validate both again with every commit.
	b := append(make([]byte, 0, len(canvas)+len(reader)+24), `{"canvas":`...)
	b = append(append(b, canvas...), `,"reader":`...)
	return append(append(b, reader...), '}'), nil
}

// Restore implements [dialect.Decoder].
func (d *decoder) Restore(b []byte) error {
	var st decoderState
	if err := json.Unmarshal(b, &st); err != nil {
		return err
	}
	var c state
	if err := json.Unmarshal(st.Canvas, &c); err != nil {
		return err
	}
	for _, p := range c.Open {
		if p == nil {
			return errors.New("a part is missing")
		}
	}
	if err := json.Unmarshal(st.Reader, d.reader); err != nil {
		return err
	}
	c.Unknowns = maps.Clone(c.Unknowns)
	d.canvas.state = c
	return nil
}

// Fault returns the error for an invalid frame: the reason names the field or rule, and err is the cause, which may be nil.
func Fault(reason string, err error) error { return decoding.Fault(reason, err) }

// Unmarshal decodes a frame that must be one JSON object. encoding/json alone would accept null.
func Unmarshal(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return Fault("invalid JSON", err)
	}
	if i := firstByte(data); i != '{' {
		return Fault("a frame must be a JSON object", nil)
	}
	return nil
}

func firstByte(data []byte) byte {
	for _, b := range data {
		switch b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

// String decodes a JSON string. It returns "" for any other JSON value.
func String(token json.RawMessage) string {
	if token == nil {
		return ""
	}
	var t dialect.Text
	s, err := t.JSON(token)
	if err != nil {
		return ""
	}
	return s + t.Close()
}

// Plain returns a JSON value as the text of a tool: a string decoded, null as "", and anything else as compact JSON.
func Plain(token json.RawMessage) string {
	if len(token) == 0 || string(token) == "null" {
		return ""
	}
	if token[0] == '"' {
		return String(token)
	}
	return compact(token)
}
