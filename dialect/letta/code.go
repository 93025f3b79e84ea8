// The frames of Letta Code's app server.

package letta

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
)

// handleFrame handles a frame of the App Server, or a line of the headless mode. Frame types without information for readers
// are listed, so that new ones are counted as unknown.
func (d *Decoder) handleFrame(b []byte) error {
	if len(b) == 0 || b[0] != '{' {
		return errNoObject
	}
	f, err := frames.Read(&d.inFrame, b)
	if err != nil {
		return err
	}
	switch f.Type {
	case "stream_delta":
		if f.Subagent != "" {
			return nil
		}
		return d.handleDelta(f.Delta)
	case "message":
		return d.handleDelta(b)
	case "stream_event":
		return d.handleDelta(f.Event)
	case "turn_finished":
		if len(f.Run) > event.MaxID || len(f.Stop) > event.MaxID {
			return errLong
		}
		d.handleFinished(f.Run, f.Stop, stringValue(f.Error))
	case "result":
		d.handleResult(f)
	case "control_request":
		return d.handleControl(f)
	case "update_loop_status":
		if d.ActiveRun = ""; f.Loop != nil && len(f.Loop.Active) > 0 {
			if d.ActiveRun = f.Loop.Active[len(f.Loop.Active)-1]; len(d.ActiveRun) > event.MaxID {
				return errLong
			}
		}
	case "conversation_messages_list_response":
		return d.repairTurn(f.Messages)
	case "error":
		return d.handleError(f, b)
	case "retry":
		d.retryStep()
	// Without an event: responses to agent/letta's requests, and the state of Letta Code's own interface.
	case "system", "runtime_start_response", "input_accepted", "resume_queue_response", "abort_message_response", "sync_response", "app_server_info_response",
		"update_device_status", "update_queue", "update_subagent_state", "queue_item_enqueued", "queue_batch_dequeued",
		"control_response", "external_tool_call_request":
	default:
		d.countUnknown(f.Type)
	}
	return nil
}

// handleDelta handles the message in a frame.
func (d *Decoder) handleDelta(raw json.RawMessage) error {
	if len(raw) == 0 || raw[0] != '{' {
		return errNoObject
	}
	m, err := messages.Read(&d.inMessage, raw)
	if err != nil {
		return err
	}
	return d.handleMessage(m)
}

// handleFinished ends the turn. The server repeats the end for each viewer that joins, so an end of a run that has ended is
// ignored. If no turn is open, the end belongs to one that failed before its first message.
func (d *Decoder) handleFinished(run, stop, reason string) {
	if run != "" && slices.Contains(d.EndedRuns, run) || !d.TurnOpen && d.HasEnded {
		return
	}
	// A turn that failed before its first message is still shown as a turn, named after its run.
	if !d.TurnOpen && run != "" {
		d.Turn, d.Runs = run, []string{run}
	}
	if d.Error == nil && reason != "" && !completed[stop] {
		if strings.HasPrefix(reason, "{") || stopMessages[stop] != "" {
			reason = stopMessages[stop] // reason is a JSON dump of the model API's error, or repeats the stop reason
		}
		if reason != "" {
			d.Error = &event.Error{Code: stop, Message: truncate(reason, maxMessage), Retryable: retryable[stop]}
		}
	}
	stop = cmp.Or(stop, "error")
	d.endTurn(stop)
}

// handleError handles an error of the headless mode. A retry may follow. If nothing follows, the program has exited because of
// this error. The first error is the cause: the last line repeats it as a JSON dump, which replaces nothing.
func (d *Decoder) handleError(f *frame, b []byte) error {
	if !d.TurnOpen && d.HasEnded {
		return nil // belongs to no turn
	}
	if len(f.Stop) > event.MaxID {
		return errLong
	}
	var m message
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	if f.API != nil {
		m.ErrorType = f.API.ErrorType
	}
	// The first error is the cause. The last line repeats it as a JSON dump, which isn't fit for users.
	if d.Error == nil || !strings.HasPrefix(m.Message, "{") {
		d.Error = errorOf(&m)
	}
	if d.Stop == "" || d.Stop == stopApproval || completed[d.Stop] || f.Stop != "" && f.Stop != "error" {
		d.Stop = f.Stop
	}
	d.Stop = cmp.Or(d.Stop, "error")
	d.MayExit = true
	return nil
}

// handleResult handles the last line of the headless mode, which ends the turn.
func (d *Decoder) handleResult(f *frame) {
	if !d.TurnOpen && d.HasEnded {
		return
	}
	switch f.Subtype {
	case "success":
		if !completed[d.Stop] {
			d.Stop = "end_turn"
		}
		d.endTurn(d.Stop)
	case "interrupted":
		d.endTurn("cancelled")
	default:
		stop := f.Stop
		if stop == "" || completed[stop] && d.Error != nil {
			stop = d.Stop
		}
		if stop == "" || stop == stopApproval {
			stop = "error"
		}
		d.endTurn(stop)
	}
}

// joinTurn reports whether a turn is open. If the App Server is running a turn that the decoder hasn't seen from its start, it
// opens that turn.
func (d *Decoder) joinTurn() bool {
	if !d.TurnOpen && d.ActiveRun != "" && !slices.Contains(d.EndedRuns, d.ActiveRun) {
		d.TurnOpen, d.Turn = true, d.ActiveRun
	}
	return d.TurnOpen
}

// repairTurn adds what the open turn is missing from a list of the conversation's stored messages, the newest first. It appends
// the missing ends of open parts, and parts that are missing; text that was shown never changes. If no message of the list is
// known, the list belongs to an earlier turn, unless nothing of the running turn was seen yet.
func (d *Decoder) repairTurn(list []json.RawMessage) error {
	if !d.joinTurn() {
		return nil
	}
	var turn []*message
	for _, raw := range list {
		m := message{isHistory: true}
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		if m.Type == "user_message" {
			break
		}
		turn = append(turn, &m)
	}
	slices.Reverse(turn)
	start := slices.IndexFunc(turn, d.hasPart)
	if start < 0 {
		if d.Key != "" || d.ActiveRun == "" {
			return nil
		}
		start = 0
	}
	for _, m := range turn[start:] {
		if err := d.repairPart(m); err != nil {
			return err
		}
	}
	return nil
}

// hasPart reports whether a message of the history belongs to a part of the open message.
func (d *Decoder) hasPart(m *message) bool {
	return d.textOf(m) != nil || m.Call != nil && d.findTool(m.Call.ID) != nil
}

// textOf returns the text part that a message belongs to, or nil.
func (d *Decoder) textOf(m *message) *text {
	for _, t := range d.Texts {
		if t.Kind == kinds[m.Type] && t.ID == m.ID {
			return t
		}
	}
	// When a tool call follows a text in the history, the text's id there differs, except for the step's prefix.
	for _, t := range d.Texts {
		if m.isHistory && t.Kind == kinds[m.Type] && t.ID != "" && stepPrefix(t.ID) == stepPrefix(m.ID) {
			return t
		}
	}
	return nil
}

// repairPart adds what a message of the history has and the turn is missing.
func (d *Decoder) repairPart(m *message) error {
	switch m.Type {
	case "assistant_message", "reasoning_message":
		t := d.textOf(m)
		if t == nil {
			return d.handleMessage(m)
		}
		text, err := d.fullText(m)
		if err == nil && t.IsOpen {
			d.extendText(t, text)
		}
		return err
	case "approval_request_message":
		if m.Call != nil && d.findTool(m.Call.ID) == nil {
			return d.handleMessage(m)
		}
	case "tool_return_message":
		if t := d.findTool(m.CallID); t != nil && !t.IsEnded {
			return d.handleMessage(m)
		}
	}
	return nil
}
