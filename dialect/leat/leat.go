package leat

import (
	"cmp"
	"fmt"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// name is that of the format, in configurations and requests.
const name = "leat"

// Dialect describes canonical NDJSON.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:    name,
		Summary: "Leat's canonical events, NDJSON",
		Framing: dialect.Lines,
		Decoder: func() dialect.Decoder { return &decoder{} },
		Encoder: func() dialect.Encoder { return encoder{} },
	}
}

// states writes the decoder's state.
var states = jsonscan.NewWriter[state]()

// decoder decodes Leat's own operations, which need no translation.
type decoder struct {
	state
	decoding.Base
}

var _ dialect.Counter = (*decoder)(nil)

// state is what a resumed decoder needs.
type state struct {
	Frames   int             `json:"frames"`
	Turn     string          `json:"turn,omitempty"` // key of the turn that the stream answers
	IsOver   bool            `json:"ended,omitempty"`
	Unknowns dialect.Unknown `json:"unknown,omitempty"`
}

// types has the event types that this version applies. A newer producer may send others, which are counted as unknown.
var types = map[event.Type]bool{
	event.MessageAdd: true, event.MessageUpdate: true, event.MessageStart: true, event.MessageEnd: true,
	event.TurnQueue: true, event.TurnStart: true, event.TurnUpdate: true, event.TurnWait: true, event.TurnResume: true, event.TurnEnd: true,
	event.PartStart: true, event.PartAppend: true, event.PartReplace: true, event.PartUpdate: true, event.PartEnd: true,
	event.ConversationUpdate: true, event.ConversationTruncate: true, event.ConversationDelete: true,
	event.Record: true,
}

// Decode implements [dialect.Decoder].
func (d *decoder) Decode(f dialect.Frame) ([]event.Event, error) {
	return d.Base.Decode(name, &d.Frames, d.IsOver, f, d.decodeFrame)
}

// decodeFrame turns an event into an operation. It drops what the log assigns: the seq, the time and the offset. The first turn that an event
// names is the one that the stream answers, so its end is the end of the stream.
func (d *decoder) decodeFrame(f dialect.Frame) error {
	var e event.Event
	if err := e.UnmarshalJSON(f.Data); err != nil { // directly, because json.Unmarshal would first scan the whole frame for errors
		return decoding.Fault("invalid JSON", err)
	}
	if e.Type != "" && !types[e.Type] {
		d.Unknowns.Add(string(e.Type))
		return nil
	}
	if err := e.Validate(); err != nil {
		return decoding.Fault("invalid event", err)
	}
	d.Turn = cmp.Or(d.Turn, e.Turn)
	if e.Type == event.TurnEnd && (e.Turn == "" || e.Turn == d.Turn) {
		d.IsOver = true
	}
	e.Seq, e.MergedFrom, e.At, e.Offset, e.Partial = 0, 0, 0, 0, false
	d.Emit(e)
	return nil
}

// Close implements [dialect.Decoder].
func (d *decoder) Close() ([]event.Event, error) { return d.Base.Close(&d.IsOver, func() {}) }

// Unknown implements [dialect.Counter].
func (d *decoder) Unknown() dialect.Unknown { return d.Unknowns }

// State implements [dialect.Decoder].
func (d *decoder) State() ([]byte, error) { return decoding.State(&d.Base, states, &d.state) }

// Restore implements [dialect.Decoder].
func (d *decoder) Restore(b []byte) error { return decoding.Restore(b, &d.state, nil) }

// encoder writes operations as they are.
type encoder struct{}

// Encode implements [dialect.Encoder]. It returns one frame for each event.
func (encoder) Encode(events []event.Event) ([]dialect.Frame, error) {
	frames := make([]dialect.Frame, 0, len(events))
	for i := range events {
		b, err := events[i].AppendJSON(nil)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		frames = append(frames, dialect.Frame{Data: b})
	}
	return frames, nil
}
