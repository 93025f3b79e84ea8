package letta

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// The readers and writers of the types on the wire and of the state.
var (
	frames     = jsonscan.NewReader[frame]()
	messages   = jsonscan.NewReader[message]()
	pieceLists = jsonscan.NewReader[[]piece]()
	states     = jsonscan.NewWriter[state]()
)

// Decoder decodes either dialect. It isn't safe for concurrent use. Everything that has to survive a restart is in state.
type Decoder struct {
	state
	base   decoding.Base
	isCode bool // the stream is Letta Code's

	// The memory of the current frame.
	inFrame   frame
	inMessage message
	inPieces  []piece
	oneText   [1]piece
}

var (
	_ dialect.Decoder = (*Decoder)(nil)
	_ dialect.Counter = (*Decoder)(nil)
)

// New returns a decoder of the V1 API's stream.
func New() *Decoder { return &Decoder{} }

// NewCode returns a decoder of Letta Code's output.
func NewCode() *Decoder { return &Decoder{isCode: true} }

// errNoObject is the error of a frame that isn't Letta's, such as an HTML page of a proxy.
var errNoObject = errors.New("the frame is not a JSON object")

// Decode implements [dialect.Decoder].
func (d *Decoder) Decode(f dialect.Frame) ([]event.Event, error) {
	name := nameV1
	if d.isCode {
		name = nameCode
	}
	return d.base.Decode(name, &d.Frames, d.IsOver, f, d.decodeFrame)
}

// decodeFrame decodes a frame of either dialect. Its error is a fault of the stream, which ends the turn.
func (d *Decoder) decodeFrame(f dialect.Frame) error {
	var err error
	if d.isCode {
		err = d.handleFrame(f.Data)
	} else {
		err = d.handleEvent(f)
	}
	if err != nil {
		return decoding.Fault("invalid frame", err)
	}
	return nil
}

// handleEvent handles an event of a V1 stream. Most events have no name; "error" and "cancelled" end the turn.
func (d *Decoder) handleEvent(f dialect.Frame) error {
	if string(f.Data) == "[DONE]" {
		d.handleDone()
		return nil
	}
	if len(f.Data) == 0 || f.Data[0] != '{' {
		return errNoObject
	}
	m, err := messages.Read(&d.inMessage, f.Data)
	if err != nil {
		return err
	}
	switch f.Event {
	case "error":
		return d.handleErrorEvent(m, f.Data)
	case "cancelled":
		d.endTurn("cancelled")
		return nil
	}
	return d.handleMessage(m)
}

// handleMessage handles a message of either dialect. Messages of ended turns and repetitions are dropped. Types that need no
// event are listed, so that new ones are counted as unknown.
func (d *Decoder) handleMessage(m *message) error {
	// The state stores these ids, so their length is limited.
	for _, id := range []string{m.ID, m.Otid, m.Run, m.Step, m.Stop} {
		if len(id) > event.MaxID {
			return errLong
		}
	}
	// After an abort the App Server may still send frames of the run.
	if d.isCode && m.Run != "" && slices.Contains(d.EndedRuns, m.Run) {
		return nil // late: its turn has ended
	}
	if old, err := d.isRepeat(m); old || err != nil {
		return err
	}
	// Stop reason and usage may follow an error in the headless mode. Any other message shows that the program continues.
	switch m.Type {
	case "stop_reason", "usage_statistics":
	default:
		d.MayExit = false
	}
	switch m.Type {
	case "assistant_message":
		d.openMessage(m)
		texts, err := d.textPieces(m.Content)
		if err != nil {
			return err
		}
		for i := range texts {
			if err := d.appendDelta(m, event.KindText, texts[i].Text); err != nil {
				return err
			}
		}
	case "reasoning_message":
		d.openMessage(m)
		return d.appendDelta(m, event.KindReasoning, m.Reasoning)
	case "hidden_reasoning_message":
		d.openMessage(m)
		return d.addHidden(m)
	case "tool_call_message", "approval_request_message":
		return d.handleCalls(m)
	case "tool_return_message":
		return d.handleReturns(m)
	case "usage_statistics":
		d.countUsage(m)
	case "stop_reason":
		d.handleStop(m)
	case "error_message":
		return d.handleErrorMessage(m)
	case "event_message":
		d.setPhase(map[string]string{"retry": "retrying", "compaction": "compacting"}[m.EventType])
	case "ping":
		d.noteRun(m)
	case "retry":
		d.retryStep()
	case "client_tool_start":
		return d.toolStarted(m)
	case "client_tool_end":
		d.toolEnded(m)
	case "approval_classification_end":
		d.handleClassification(m)
	// Without an event: the gateway knows users' messages itself, and the others are internal to Letta.
	case "user_message", "system_message", "summary_message", "approval_response_message",
		"loop_error", "status", "command_start", "command_end", "slash_command_start", "slash_command_end":
	default:
		d.countUnknown(m.Type)
	}
	return nil
}

// countUnknown counts a type that the decoder doesn't know. The gateway shows the counts as a metric.
func (d *Decoder) countUnknown(name string) {
	name = cmp.Or(name, "no message_type")
	d.UnknownTypes.Add(name)
}

// noteRun starts the turn if necessary, and records the run and the seq_id of a message. Readers learn of each new run.
func (d *Decoder) noteRun(m *message) {
	if m.Run == "" {
		d.TurnOpen = true
		return
	}
	if !d.TurnOpen {
		d.TurnOpen = true
		if d.isCode {
			d.Turn = m.Run
		}
	}
	if m.Run != d.Run {
		d.setRun(m.Run)
		d.emit(event.Event{Type: event.TurnUpdate, Body: &event.Body{Upstream: &event.Upstream{Run: m.Run}}})
	}
	if m.Seq != nil && *m.Seq > d.Seq && m.Type != "ping" {
		d.Seq = *m.Seq
	}
}

// setRun makes a run the current one and stores the position in the previous one. A run that was current before continues at
// its stored position.
func (d *Decoder) setRun(run string) {
	if d.Run != "" {
		d.PastRuns = append(d.PastRuns, runCursor{d.Run, d.Seq, d.HasUsage})
		d.PastRuns = d.PastRuns[max(0, len(d.PastRuns)-maxKnown):]
	}
	d.Run, d.Seq, d.HasUsage = run, 0, false
	if i := d.pastRun(run); i >= 0 {
		d.Seq, d.HasUsage = d.PastRuns[i].Seq, d.PastRuns[i].HasUsage
		d.PastRuns = slices.Delete(d.PastRuns, i, i+1)
		return
	}
	d.Runs = lastIDs(append(d.Runs, run))
}

// pastRun returns the index of a run in d.PastRuns, or -1.
func (d *Decoder) pastRun(run string) int {
	return slices.IndexFunc(d.PastRuns, func(c runCursor) bool { return c.Run == run })
}

// isRepeat records a message's run and seq_id, and reports whether the message was seen before and so changes nothing. A
// snapshot of the open text part may have a low seq_id: after a broken stream it supplies the missing text, which isRepeat
// appends.
func (d *Decoder) isRepeat(m *message) (bool, error) {
	switch m.Type {
	case "user_message", "loop_error", "status", "ping":
		return false, nil
	}
	// seq_ids count per run, so a chunk is compared with the position in its own run.
	if i := d.pastRun(m.Run); i >= 0 && m.Seq != nil && *m.Seq <= d.PastRuns[i].Seq {
		return true, nil // the server repeats an earlier run
	}
	isOld := m.Run != "" && m.Run == d.Run && m.Seq != nil && *m.Seq > 0 && *m.Seq <= d.Seq
	if !isOld {
		if d.isCode && !d.TurnOpen && m.Run == "" {
			return true, nil // belongs to no turn
		}
		d.noteRun(m)
		return false, nil
	}
	t := d.openText()
	if t == nil || !t.continues(m) {
		return true, nil
	}
	text, err := d.fullText(m)
	if err != nil {
		return true, err
	}
	d.extendText(t, text)
	return true, nil
}

// openMessage opens the message of a step, and closes the previous one. A message of Letta Code without a run and step belongs
// to the current step. Messages of the history are grouped by the prefix of their ids, because the history has no steps.
func (d *Decoder) openMessage(m *message) {
	// Most messages are deltas of the current step.
	if d.Key != "" && !d.IsRetry && !m.isHistory && isGroup(d.Group, m.Run, m.Step) {
		return
	}
	group, past := m.Run+" "+m.Step, historyGroup+stepPrefix(m.ID)
	switch {
	case m.isHistory:
		group = past
	case m.Run == "" && m.Step == "":
		group = d.Group
	case d.Key != "" && d.Group == past:
		d.Group = group // the start of the step came from the history
	}
	// The next attempt of a step has another run and step, but continues the open message.
	if d.IsRetry && !m.isHistory {
		d.IsRetry, d.Group = false, group
	}
	if d.Key != "" && group == d.Group {
		return
	}
	d.closeMessage("")
	d.MessageCount++
	d.Key, d.Group, d.PartCount, d.LastKind = strconv.Itoa(d.MessageCount), group, 0, ""
	d.emit(event.Event{Type: event.MessageStart, Message: d.Key, Body: &event.Body{Role: event.Assistant}})
}

// isGroup reports whether a group is that of a run and step.
func isGroup(group, run, step string) bool {
	n := len(run)
	return len(group) == n+1+len(step) && group[:n] == run && group[n] == ' ' && group[n+1:] == step
}

// historyGroup is the prefix of Group for messages that were read from a history.
const historyGroup = "history "

// stepPrefix returns the part of an id that all parts of a step share.
func stepPrefix(id string) string {
	before, _, _ := strings.Cut(id, ":")
	return before
}

// closeMessage ends the open message, if any. Tools that have ended are forgotten, except for their call ids; the others stay,
// because their results may follow in later messages.
func (d *Decoder) closeMessage(reason string) {
	if d.Key == "" {
		return
	}
	d.endText()
	e := event.Event{Type: event.MessageEnd, Message: d.Key}
	if reason != "" {
		e.Body = &event.Body{Reason: reason}
	}
	d.emit(e)
	d.Key, d.Group, d.Texts, d.IsRetry = "", "", nil, false
	d.Tools = slices.DeleteFunc(d.Tools, func(t *tool) bool {
		if t.IsEnded {
			d.EndedCalls = lastIDs(append(d.EndedCalls, t.Call))
		}
		return t.IsEnded
	})
}

// lastIDs returns the newest maxKnown ids.
func lastIDs(ids []string) []string {
	if n := len(ids) - maxKnown; n > 0 {
		ids = slices.Clone(ids[n:])
	}
	return ids
}

// startPart starts a part of the open message and returns its key.
func (d *Decoder) startPart(b *event.Body) string {
	key := strconv.Itoa(d.PartCount)
	d.PartCount++
	d.LastKind = b.Kind
	d.emit(event.Event{Type: event.PartStart, Message: d.Key, Part: key, Body: b})
	return key
}

// setPhase shows what the turn is doing, unless name is empty.
func (d *Decoder) setPhase(name string) {
	if name != "" {
		d.emit(event.Event{Type: event.TurnUpdate, Body: &event.Body{Phase: name}})
	}
}

// emit adds an event of the current turn to the result of Decode.
func (d *Decoder) emit(e event.Event) {
	e.Turn = d.Turn
	d.base.Emit(e)
}

// Close implements [dialect.Decoder]. A connection of Letta Code has no last frame, so its stream is complete if a turn has
// ended and no other is open. A headless stream that ends after an error is complete too: the program has exited, and the turn
// has failed.
func (d *Decoder) Close() ([]event.Event, error) {
	isOver := d.IsOver || d.isCode && !d.TurnOpen && d.HasEnded
	return d.base.Close(&isOver, func() {
		if !d.MayExit {
			d.flushAll()
			return
		}
		isOver = true
		d.endTurn(d.Stop)
	})
}

// flushAll emits the incomplete characters that are buffered.
func (d *Decoder) flushAll() {
	if t := d.openText(); t != nil {
		d.flushText(t)
	}
	for _, t := range d.Tools {
		d.flushInput(t)
	}
}

// Unknown implements [dialect.Counter].
func (d *Decoder) Unknown() dialect.Unknown { return d.UnknownTypes }
