package canvas

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// reader applies the frames of one dialect to a canvas. Its exported fields are stored as JSON with every commit and restored from it, so
// it must not depend on unexported fields.
type reader interface {
	// Read applies one frame. If it returns an error, what it has emitted is dropped, and no further frame follows.
	Read(c *Canvas, f dialect.Frame) error
}

// NewDecoder returns the decoder of a stream of the dialect called name. r reads its frames; it must be a pointer, because Restore
// decodes into it. w writes its exported fields.
func NewDecoder[R any, P interface {
	*R
	reader
}](name string, r P, w jsonscan.Writer[R]) dialect.Decoder {
	return &decoder{name: name, reader: r, appendReader: func(b []byte) ([]byte, error) { return w.Append(b, r) }}
}

// states writes the states of canvases.
var states = jsonscan.NewWriter[state]()

// decoder makes a decoder of a reader and its canvas.
type decoder struct {
	name   string // of the dialect, for errors
	reader reader
	// appendReader appends the exported fields of the reader as JSON.
	appendReader func([]byte) ([]byte, error)
	canvas       Canvas
	size         int // of the last encoded state
}

var _ dialect.Counter = (*decoder)(nil)

// Decode implements [dialect.Decoder].
func (d *decoder) Decode(f dialect.Frame) ([]event.Event, error) {
	return d.canvas.base.Decode(d.name, &d.canvas.Frames, d.canvas.IsOver, f, d.decodeFrame)
}

func (d *decoder) decodeFrame(f dialect.Frame) error { return d.reader.Read(&d.canvas, f) }

// Close implements [dialect.Decoder].
func (d *decoder) Close() ([]event.Event, error) {
	return d.canvas.base.Close(&d.canvas.IsOver, d.flushOpen)
}

// flushOpen emits the buffered characters of the open parts when the stream is cut short. It ends neither the parts nor the turn,
// because no frame has marked them as complete.
func (d *decoder) flushOpen() {
	for _, p := range d.canvas.Open {
		d.canvas.flush(p)
	}
}

// Unknown implements [dialect.Counter].
func (d *decoder) Unknown() dialect.Unknown { return d.canvas.Unknowns }

// decoderState is the stored state as JSON.
type decoderState struct {
	Canvas json.RawMessage `json:"canvas"`
	Reader json.RawMessage `json:"reader"`
}

// State implements [dialect.Decoder].
func (d *decoder) State() ([]byte, error) {
	b, err := states.Append(append(make([]byte, 0, d.size+16), `{"canvas":`...), &d.canvas.state)
	if err != nil {
		return nil, fmt.Errorf("state of the canvas: %w", err)
	}
	b, err = d.appendReader(append(b, `,"reader":`...))
	if err != nil {
		return nil, fmt.Errorf("state of the reader: %w", err)
	}
	d.size = len(b)
	return append(b, '}'), nil
}

// Restore implements [dialect.Decoder]. It rejects null parts, because a stored state may be damaged and the canvas dereferences them.
func (d *decoder) Restore(b []byte) error {
	var st decoderState
	if err := json.Unmarshal(b, &st); err != nil {
		return err
	}
	var c state
	if err := json.Unmarshal(st.Canvas, &c); err != nil {
		return err
	}
	if slices.Contains(c.Open, nil) {
		return errors.New("a part is missing")
	}
	if err := json.Unmarshal(st.Reader, d.reader); err != nil {
		return err
	}
	d.canvas.state = c
	return nil
}
