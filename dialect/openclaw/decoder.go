package openclaw

import (
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

const name = "openclaw"

// Dialect describes the frames of an OpenClaw gateway.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:    name,
		Summary: "WebSocket frames of an OpenClaw gateway, protocol 3 and 4",
		Framing: dialect.Lines,
		Decoder: func() dialect.Decoder { return &decoder{} },
	}
}

// decoder is the dialect's decoder. All that outlives a frame is in its state.
type decoder struct {
	state
	out    []event.Event // of the frame at hand
	failed error
	closed bool
}

var (
	_ dialect.Decoder = (*decoder)(nil)
	_ dialect.Counter = (*decoder)(nil)
)

// Decode implements [dialect.Decoder].
func (d *decoder) Decode(f dialect.Frame) ([]event.Event, error) {
	if d.failed != nil {
		return nil, d.failed
	}
	if d.closed {
		return nil, nil
	}
	d.Frames++
	var fr frame
	if err := fr.read(f.Data); err != nil {
		return nil, d.fail(err)
	}
	if err := d.route(&fr); err != nil {
		return nil, d.fail(err)
	}
	if err := d.bounded(); err != nil {
		return nil, d.fail(err)
	}
	return d.take(), nil
}

// Close implements [dialect.Decoder]. A connection has no end of its own: it was not cut short if a run has ended and
// none is open.
func (d *decoder) Close() ([]event.Event, error) {
	cut := len(d.Runs) > 0 || !d.Whole
	if !d.closed {
		d.closed = true
		for _, r := range d.Runs {
			d.settle(r, r.text(), true)
		}
	}
	if cut {
		return d.take(), dialect.ErrCutShort
	}
	return d.take(), nil
}

// Unknown implements [dialect.Counter].
func (d *decoder) Unknown() dialect.Unknown { return d.Seen }

// fail drops the operations of a frame that turned out to be invalid.
func (d *decoder) fail(err error) error {
	d.out = nil
	d.failed = &dialect.Error{Dialect: name, Frame: d.Frames, Reason: "invalid frame", Err: err}
	return d.failed
}

func (d *decoder) take() []event.Event {
	out := d.out
	d.out = nil
	return out
}
