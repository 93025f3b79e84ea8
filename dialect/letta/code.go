package letta

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
)

// handleFrame takes a frame of the App Server, or a line of the headless mode.
func (d *Decoder) handleFrame(b []byte) error {
	if len(b) == 0 || b[0] != '{' {
		return errNoObject
	}
	var f frame
	if err := json.Unmarshal(b, &f); err != nil {
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
		d.handleResult(&f)
	case "control_request":
		return d.handleControl(&f)
	case "update_loop_status":
		if d.ActiveRun = ""; f.Loop != nil && len(f.Loop.Active) > 0 {
			if d.ActiveRun = f.Loop.Active[len(f.Loop.Active)-1]; len(d.ActiveRun) > event.MaxID {
				return errLong
			}
		}
	case "conversation_messages_list_response":
		return d.repairTurn(f.Messages)
	case "error":
		return d.handleError(&f, b)
	case "retry":
		d.retryStep()
	case "system", "runtime_start_response", "input_accepted", "resume_queue_response", "abort_message_response", "sync_response", "app_server_info_response",
		"update_device_status", "update_queue", "update_subagent_state", "queue_item_enqueued", "queue_batch_dequeued",
		"control_response", "external_tool_call_request":
	default:
		d.countUnknown(f.Type)
	}
	return nil
}

func (d *Decoder) handleDelta(raw json.RawMessage) error {
	if len(raw) == 0 || raw[0] != '{' {
		return errNoObject
	}
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	return d.handleMessage(&m)
}

// handleFinished takes the end of a turn. One without a run is that of a turn that never began.
func (d *Decoder) handleFinished(run, stop, reason string) {
	if run != "" && slices.Contains(d.EndedRuns, run) || !d.TurnOpen && d.HasEnded {
		return
	}
	if !d.TurnOpen && run != "" {
		d.Turn, d.Runs = run, []string{run}
	}
	if d.Error == nil && reason != "" && !completed[stop] {
		if strings.HasPrefix(reason, "{") || stopMessages[stop] != "" {
			reason = stopMessages[stop] // a dump of what the model's API said, or no more than the stop reason
		}
		if reason != "" {
			d.Error = &event.Error{Code: stop, Message: truncate(reason, maxMessage), Retryable: retryable[stop]}
		}
	}
	if stop == "" {
		stop = "error"
	}
	d.endTurn(stop)
}

// handleError takes an error of the headless mode. A retry may follow. If nothing does, the program has exited with this error, and
// its cause is the first one that was named: the last line repeats it as a dump.
func (d *Decoder) handleError(f *frame, b []byte) error {
	if !d.TurnOpen && d.HasEnded {
		return nil // of no turn
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
	if d.Error == nil || !strings.HasPrefix(m.Message, "{") {
		d.Error = errorOf(&m)
	}
	if d.Stop == "" || d.Stop == stopApproval || completed[d.Stop] || f.Stop != "" && f.Stop != "error" {
		d.Stop = f.Stop
	}
	if d.Stop == "" {
		d.Stop = "error"
	}
	d.MayExit = true
	return nil
}

// handleResult takes the last line of the headless mode.
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

// joinTurn reports whether a turn is open, or runs already and begins here.
func (d *Decoder) joinTurn() bool {
	if !d.TurnOpen && d.ActiveRun != "" && !slices.Contains(d.EndedRuns, d.ActiveRun) {
		d.TurnOpen, d.Turn = true, d.ActiveRun
	}
	return d.TurnOpen
}

// repairTurn takes the list of a conversation's messages, the newest first, while a turn is open. What is missing at the end of
// a part is added, and so are parts that are not known; nothing that was shown is changed.
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
			return nil // of a turn before, or by ids of which nothing is known
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

// hasPart reports whether a message of the history is one of the parts at hand.
func (d *Decoder) hasPart(m *message) bool {
	return d.textOf(m) != nil || m.Call != nil && d.findTool(m.Call.ID) != nil
}

func (d *Decoder) textOf(m *message) *text {
	for _, t := range d.Texts {
		if t.Kind == kinds[m.Type] && t.ID == m.ID {
			return t
		}
	}
	// A text that stood alone in its step gets another id in the history when a tool's call follows it there.
	for _, t := range d.Texts {
		if m.isHistory && t.Kind == kinds[m.Type] && t.ID != "" && stepPrefix(t.ID) == stepPrefix(m.ID) {
			return t
		}
	}
	return nil
}

// repairPart takes a message of the history.
func (d *Decoder) repairPart(m *message) error {
	switch m.Type {
	case "assistant_message", "reasoning_message":
		t := d.textOf(m)
		if t == nil {
			return d.handleMessage(m)
		}
		text, err := m.fullText()
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
