package plugin

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// line is one line that a plugin has written for a turn.
type line struct {
	n    int // from 1, of the process's output
	head fromPlugin
	data []byte
}

// decoder turns the lines of one turn into operations: canonical events, and the two short forms that the gateway writes
// out as events itself. It is pure and not safe for concurrent use.
type decoder struct {
	turn     string
	events   dialect.Decoder
	segments dialect.Segments
	// check finds what does not fit together while the line is still known.
	check      *dialect.Mapper
	ids        int
	hasStarted bool
	hasEnded   bool
}

// newDecoder returns the decoder of a turn; events is one of the dialect leat.
func newDecoder(turn string, events dialect.Decoder) *decoder {
	d := &decoder{turn: turn, events: events}
	d.check = dialect.NewMapper(turn, func() string { d.ids++; return strconv.Itoa(d.ids) })
	// The stream is of this turn, whichever its first event names.
	_, _ = events.Decode(dialect.Frame{Data: fmt.Appendf(nil, `{"type":"turn.start","turn":%q}`, turn)})
	return d
}

// decode returns the operations of a line. An error names the line; the turn is over then.
func (d *decoder) decode(l line) ([]event.Event, error) {
	if d.hasEnded {
		return nil, nil
	}
	var ops []event.Event
	switch l.head.Type {
	case lineText:
		ops = d.segments.Text(l.head.Text)
	case lineCallback:
		ops = d.segments.Callback(l.head.Text, l.head.Merge)
	default:
		decoded, err := d.events.Decode(dialect.Frame{Data: l.data})
		if err != nil {
			return nil, fmt.Errorf("line %d of the plugin's output: %w", l.n, withoutFrame(err))
		}
		for i := range decoded {
			ops = append(ops, d.before(&decoded[i])...)
			ops = append(ops, decoded[i])
		}
	}
	if ops = d.withStart(ops); len(ops) == 0 {
		return nil, nil
	}
	if _, err := d.check.Map(ops, 1); err != nil {
		return nil, fmt.Errorf("line %d of the plugin's output: %w", l.n, err)
	}
	return ops, nil
}

// before returns what the short forms have to say before an event.
func (d *decoder) before(e *event.Event) []event.Event {
	switch {
	case e.Type == event.TurnEnd && (e.Turn == "" || e.Turn == d.turn):
		d.hasEnded = true
		return d.segments.Close()
	case e.Type == event.PartStart && e.Message == dialect.SegmentsMessage:
		return append(d.segments.Begin(), d.segments.Break()...)
	}
	return nil
}

// named makes the turn's first operation name it, so that a turn inside it is never taken for it.
func (d *decoder) withStart(ops []event.Event) []event.Event {
	if d.hasStarted || len(ops) == 0 {
		return ops
	}
	d.hasStarted = true
	return append([]event.Event{{Type: event.TurnStart, Turn: d.turn, Body: &event.Body{}}}, ops...)
}

// held returns what is held back when the turn ends otherwise than by the plugin's word.
func (d *decoder) flush() []event.Event {
	if d.hasEnded {
		return nil
	}
	d.hasEnded = true
	return d.segments.Close()
}

// plain is a dialect's error without the number of its frame, which is not that of the line.
func withoutFrame(err error) error {
	var e *dialect.Error
	if !errors.As(err, &e) {
		return err
	}
	if e.Err == nil {
		return errors.New(e.Reason)
	}
	return fmt.Errorf("%s: %w", e.Reason, e.Err)
}
