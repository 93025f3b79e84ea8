package letta

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

// Decoder decodes either of the two dialects. All that outlives a frame is in its state.
type Decoder struct {
	state
	base decoding.Base
	code bool // what Letta Code writes
}

var (
	_ dialect.Decoder = (*Decoder)(nil)
	_ dialect.Counter = (*Decoder)(nil)
)

// New returns a decoder of the V1 API's stream.
func New() *Decoder { return &Decoder{} }

// NewCode returns a decoder of what Letta Code writes.
func NewCode() *Decoder { return &Decoder{code: true} }

var errNoObject = errors.New("a frame is a JSON object")

// Decode implements [dialect.Decoder].
func (d *Decoder) Decode(f dialect.Frame) ([]event.Event, error) {
	name := nameV1
	if d.code {
		name = nameCode
	}
	return d.base.Decode(name, &d.Frames, d.Over, f, d.read)
}

func (d *Decoder) read(f dialect.Frame) error {
	var err error
	if d.code {
		err = d.frame(f.Data)
	} else {
		err = d.event(f)
	}
	if err != nil {
		return decoding.Fault("invalid frame", err)
	}
	return nil
}

// event takes an event of a V1 stream.
func (d *Decoder) event(f dialect.Frame) error {
	if string(f.Data) == "[DONE]" {
		d.done()
		return nil
	}
	if len(f.Data) == 0 || f.Data[0] != '{' {
		return errNoObject
	}
	var m message
	if err := json.Unmarshal(f.Data, &m); err != nil {
		return err
	}
	switch f.Event {
	case "error":
		return d.errorEvent(&m, f.Data)
	case "cancelled":
		d.end("cancelled")
		return nil
	}
	return d.message(&m)
}

// message takes a message of either dialect.
func (d *Decoder) message(m *message) error {
	// They lie in the state, and whoever sends longer ones means harm.
	for _, id := range []string{m.ID, m.Otid, m.Run, m.Step, m.Stop} {
		if len(id) > event.MaxID {
			return errLong
		}
	}
	if d.code && m.Run != "" && slices.Contains(d.Ended, m.Run) {
		return nil // comes after its turn's end
	}
	if old, err := d.repeated(m); old || err != nil {
		return err
	}
	switch m.Type {
	case "stop_reason", "usage_statistics":
	default:
		d.Exiting = false
	}
	switch m.Type {
	case "assistant_message":
		d.enter(m)
		texts, err := pieces(m.Content)
		if err != nil {
			return err
		}
		for _, raw := range texts {
			if err := d.say(m, event.KindText, raw); err != nil {
				return err
			}
		}
	case "reasoning_message":
		d.enter(m)
		return d.say(m, event.KindReasoning, m.Reasoning)
	case "hidden_reasoning_message":
		d.enter(m)
		return d.hidden(m)
	case "tool_call_message", "approval_request_message":
		return d.calls(m)
	case "tool_return_message":
		return d.returns(m)
	case "usage_statistics":
		d.count(m)
	case "stop_reason":
		d.stopped(m)
	case "error_message":
		return d.errorMessage(m)
	case "event_message":
		d.phase(map[string]string{"retry": "retrying", "compaction": "compacting"}[m.EventType])
	case "ping":
		d.run(m)
	case "retry":
		d.retry()
	case "client_tool_start":
		return d.runs(m)
	case "client_tool_end":
		d.ran(m)
	case "approval_classification_end":
		d.classified(m)
	case "user_message", "system_message", "summary_message", "approval_response_message",
		"loop_error", "status", "command_start", "command_end", "slash_command_start", "slash_command_end":
	default:
		d.unknown(m.Type)
	}
	return nil
}

func (d *Decoder) unknown(name string) {
	if name == "" {
		name = "no message_type"
	}
	d.Seen.Add(name)
}

// run notes the run that a message is of.
func (d *Decoder) run(m *message) {
	if m.Run == "" {
		d.Begun = true
		return
	}
	if !d.Begun {
		d.Begun = true
		if d.code {
			d.Turn = m.Run
		}
	}
	if m.Run != d.Run {
		d.turnTo(m.Run)
		d.emit(event.Event{Type: event.TurnUpdate, Body: &event.Body{Upstream: &event.Upstream{Run: m.Run}}})
	}
	if m.Seq != nil && *m.Seq > d.Seq && m.Type != "ping" {
		d.Seq = *m.Seq
	}
}

// turnTo makes a run the one at hand. A run that was it before goes on where it was.
func (d *Decoder) turnTo(run string) {
	if d.Run != "" {
		d.Past = append(d.Past, runCursor{d.Run, d.Seq, d.Counted})
		d.Past = d.Past[max(0, len(d.Past)-maxKnown):]
	}
	d.Run, d.Seq, d.Counted = run, 0, false
	if i := d.pastRun(run); i >= 0 {
		d.Seq, d.Counted = d.Past[i].Seq, d.Past[i].Counted
		d.Past = slices.Delete(d.Past, i, i+1)
		return
	}
	d.Runs = last(append(d.Runs, run))
}

func (d *Decoder) pastRun(run string) int {
	return slices.IndexFunc(d.Past, func(c runCursor) bool { return c.Run == run })
}

// repeated notes a message's run and seq, and reports whether it changes nothing since it has been seen. A snapshot of the
// text at hand, with a low seq, may bring what a broken stream left out.
func (d *Decoder) repeated(m *message) (bool, error) {
	switch m.Type {
	case "user_message", "loop_error", "status", "ping":
		return false, nil
	}
	if i := d.pastRun(m.Run); i >= 0 && m.Seq != nil && *m.Seq <= d.Past[i].Seq {
		return true, nil // of a run that is told again
	}
	old := m.Run != "" && m.Run == d.Run && m.Seq != nil && *m.Seq > 0 && *m.Seq <= d.Seq
	if !old {
		if d.code && !d.Begun && m.Run == "" {
			return true, nil // of no turn
		}
		d.run(m)
		return false, nil
	}
	t := d.open()
	if t == nil || !t.same(m) {
		return true, nil
	}
	whole, err := m.whole()
	if err != nil {
		return true, err
	}
	d.extend(t, whole)
	return true, nil
}

// enter opens the message of a step, and ends the one before. What names no run on Letta Code belongs to the step at hand,
// unless it comes from the history, which tells steps by the beginning of ids.
func (d *Decoder) enter(m *message) {
	group, past := m.Run+" "+m.Step, history+base(m.ID)
	switch {
	case m.past:
		group = past
	case m.Run == "" && m.Step == "":
		group = d.Group
	case d.Key != "" && d.Group == past:
		d.Group = group // the history had its beginning
	}
	if d.Retried && !m.past {
		d.Retried, d.Group = false, group
	}
	if d.Key != "" && group == d.Group {
		return
	}
	d.leave("")
	d.Messages++
	d.Key, d.Group, d.Count, d.Last = strconv.Itoa(d.Messages), group, 0, ""
	d.emit(event.Event{Type: event.MessageStart, Message: d.Key, Body: &event.Body{Role: event.Assistant}})
}

// history begins the groups of messages that were read from it.
const history = "history "

// base is what the ids of a step's parts have in common.
func base(id string) string {
	before, _, _ := strings.Cut(id, ":")
	return before
}

// leave ends the message at hand.
func (d *Decoder) leave(reason string) {
	if d.Key == "" {
		return
	}
	d.endText()
	e := event.Event{Type: event.MessageEnd, Message: d.Key}
	if reason != "" {
		e.Body = &event.Body{Reason: reason}
	}
	d.emit(e)
	d.Key, d.Group, d.Texts, d.Retried = "", "", nil, false
	d.Tools = slices.DeleteFunc(d.Tools, func(t *tool) bool {
		if t.Over {
			d.Done = last(append(d.Done, t.Call))
		}
		return t.Over
	})
}

// last bounds what is remembered.
func last(ids []string) []string {
	if n := len(ids) - maxKnown; n > 0 {
		ids = slices.Clone(ids[n:])
	}
	return ids
}

// part starts a part of the message at hand and returns its key.
func (d *Decoder) part(b *event.Body) string {
	key := strconv.Itoa(d.Count)
	d.Count++
	d.Last = b.Kind
	d.emit(event.Event{Type: event.PartStart, Message: d.Key, Part: key, Body: b})
	return key
}

func (d *Decoder) phase(name string) {
	if name != "" {
		d.emit(event.Event{Type: event.TurnUpdate, Body: &event.Body{Phase: name}})
	}
}

func (d *Decoder) emit(e event.Event) {
	e.Turn = d.Turn
	d.base.Emit(e)
}

// Close implements [dialect.Decoder]. A connection has no end of its own: it was not cut short if a turn has ended and none
// is open.
func (d *Decoder) Close() ([]event.Event, error) {
	over := d.Over || d.code && !d.Begun && d.Whole
	return d.base.Close(&over, func() {
		if !d.Exiting {
			d.rest()
			return
		}
		over = true
		d.end(d.Stop)
	})
}

// rest says what is held back.
func (d *Decoder) rest() {
	if t := d.open(); t != nil {
		d.flush(t)
	}
	for _, t := range d.Tools {
		d.flushInput(t)
	}
}

// Unknown implements [dialect.Counter].
func (d *Decoder) Unknown() dialect.Unknown { return d.Seen }
