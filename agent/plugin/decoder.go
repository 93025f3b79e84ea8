package plugin

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// line is a line that a plugin printed for a turn.
type line struct {
	n    int        // line number in the process's output, from 1
	head fromPlugin // the fields that the gateway needs
	data []byte     // the whole line
}

// decoder converts the lines of one turn to events. Lines are either events of the dialect leat or the short forms "text" and
// "callback", which it expands to messages and parts. It is pure and not safe for concurrent use.
type decoder struct {
	turn     string
	events   dialect.Decoder
	segments dialect.Segments
	// check maps the events a first time and drops the result. It finds events that contradict each other, such as a delta for a
	// part that was never started, while the line number is still known.
	check      *dialect.Mapper
	ids        int  // ids that check has generated
	hasStarted bool // the first event was returned
	hasEnded   bool // the plugin has ended the turn, or flush was called
}

// newDecoder returns the decoder of a turn. events decodes the dialect leat.
func newDecoder(turn string, events dialect.Decoder) *decoder {
	d := &decoder{turn: turn, events: events}
	d.check = dialect.NewMapper(turn, func() string { d.ids++; return strconv.Itoa(d.ids) })
	// The dialect takes the turn of the first event for the stream's own. This event makes it this turn, even if the plugin's first
	// event belongs to a nested turn.
	_, _ = events.Decode(dialect.Frame{Data: fmt.Appendf(nil, `{"type":"turn.start","turn":%q}`, turn)})
	return d
}

// decode returns the events of a line, none after the end of the turn. An error names the line and ends the
// turn. The events of a line are returned all together or, if one of them is invalid, not at all.
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

// before returns the events that must precede e so that the short forms' open message is valid: it is closed at the end of the
// turn, and its text part is closed before the plugin adds another part to that message.
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

// withStart inserts a turn.start before the first event. Without it, the first nested turn that the plugin starts would be
// taken for this one.
func (d *decoder) withStart(ops []event.Event) []event.Event {
	if d.hasStarted || len(ops) == 0 {
		return ops
	}
	d.hasStarted = true
	return append([]event.Event{{Type: event.TurnStart, Turn: d.turn, Body: &event.Body{}}}, ops...)
}

// flush returns the events that close the open message if the turn ends without the plugin's turn.end, for example when it is
// stopped.
func (d *decoder) flush() []event.Event {
	if d.hasEnded {
		return nil
	}
	d.hasEnded = true
	return d.segments.Close()
}

// withoutFrame returns a dialect's error without its frame number, which counts the frames of the turn, not the lines of the
// process.
func withoutFrame(err error) error {
	e, ok := errors.AsType[*dialect.Error](err)
	switch {
	case !ok:
		return err
	case e.Err == nil:
		return errors.New(e.Reason)
	}
	return fmt.Errorf("%s: %w", e.Reason, e.Err)
}
