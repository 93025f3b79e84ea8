package letta

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
)

// frame takes a frame of the App Server, or a line of the headless mode.
func (d *Decoder) frame(b []byte) error {
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
		return d.delta(f.Delta)
	case "message":
		return d.delta(b)
	case "stream_event":
		return d.delta(f.Event)
	case "turn_finished":
		if len(f.Run) > event.MaxID || len(f.Stop) > event.MaxID {
			return errLong
		}
		d.finished(f.Run, f.Stop, str(f.Error))
	case "result":
		d.result(&f)
	case "control_request":
		return d.control(&f)
	case "update_loop_status":
		if d.Live = ""; f.Loop != nil && len(f.Loop.Active) > 0 {
			if d.Live = f.Loop.Active[len(f.Loop.Active)-1]; len(d.Live) > event.MaxID {
				return errLong
			}
		}
	case "conversation_messages_list_response":
		return d.recall(f.Messages)
	case "error":
		return d.failed(&f, b)
	case "retry":
		d.retry()
	case "system", "runtime_start_response", "input_accepted", "resume_queue_response", "abort_message_response", "sync_response", "app_server_info_response",
		"update_device_status", "update_queue", "update_subagent_state", "queue_item_enqueued", "queue_batch_dequeued",
		"control_response", "external_tool_call_request":
	default:
		d.unknown(f.Type)
	}
	return nil
}

func (d *Decoder) delta(raw json.RawMessage) error {
	if len(raw) == 0 || raw[0] != '{' {
		return errNoObject
	}
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	return d.message(&m)
}

// finished takes the end of a turn. One without a run is that of a turn that never began.
func (d *Decoder) finished(run, stop, why string) {
	if run != "" && slices.Contains(d.Ended, run) || !d.Begun && d.Whole {
		return
	}
	if !d.Begun && run != "" {
		d.Turn, d.Runs = run, []string{run}
	}
	if d.Error == nil && why != "" && !completed[stop] {
		if strings.HasPrefix(why, "{") || said[stop] != "" {
			why = said[stop] // a dump of what the model's API said, or no more than the stop reason
		}
		if why != "" {
			d.Error = &event.Error{Code: stop, Message: short(why, maxMessage), Retryable: retryable[stop]}
		}
	}
	if stop == "" {
		stop = "error"
	}
	d.end(stop)
}

// failed takes an error of the headless mode. A retry may follow. If nothing does, the program has exited with this error, and
// its cause is the first one that was named: the last line repeats it as a dump.
func (d *Decoder) failed(f *frame, b []byte) error {
	if !d.Begun && d.Whole {
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
		d.Error = failure(&m)
	}
	if d.Stop == "" || d.Stop == waits || completed[d.Stop] || f.Stop != "" && f.Stop != "error" {
		d.Stop = f.Stop
	}
	if d.Stop == "" {
		d.Stop = "error"
	}
	d.Exiting = true
	return nil
}

// result takes the last line of the headless mode.
func (d *Decoder) result(f *frame) {
	if !d.Begun && d.Whole {
		return
	}
	switch f.Subtype {
	case "success":
		if !completed[d.Stop] {
			d.Stop = "end_turn"
		}
		d.end(d.Stop)
	case "interrupted":
		d.end("cancelled")
	default:
		stop := f.Stop
		if stop == "" || completed[stop] && d.Error != nil {
			stop = d.Stop
		}
		if stop == "" || stop == waits {
			stop = "error"
		}
		d.end(stop)
	}
}

// joins reports whether a turn is open, or runs already and begins here.
func (d *Decoder) joins() bool {
	if !d.Begun && d.Live != "" && !slices.Contains(d.Ended, d.Live) {
		d.Begun, d.Turn = true, d.Live
	}
	return d.Begun
}

// recall takes the list of a conversation's messages, the newest first, while a turn is open. What is missing at the end of
// a part is added, and so are parts that are not known; nothing that was shown is changed.
func (d *Decoder) recall(list []json.RawMessage) error {
	if !d.joins() {
		return nil
	}
	var turn []*message
	for _, raw := range list {
		m := message{past: true}
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		if m.Type == "user_message" {
			break
		}
		turn = append(turn, &m)
	}
	slices.Reverse(turn)
	from := slices.IndexFunc(turn, d.knows)
	if from < 0 {
		if d.Key != "" || d.Live == "" {
			return nil // of a turn before, or by ids of which nothing is known
		}
		from = 0
	}
	for _, m := range turn[from:] {
		if err := d.repair(m); err != nil {
			return err
		}
	}
	return nil
}

// knows reports whether a message of the history is one of the parts at hand.
func (d *Decoder) knows(m *message) bool {
	return d.known(m) != nil || m.Call != nil && d.tool(m.Call.ID) != nil
}

func (d *Decoder) known(m *message) *text {
	for _, t := range d.Texts {
		if t.Kind == kinds[m.Type] && t.ID == m.ID {
			return t
		}
	}
	// A text that stood alone in its step gets another id in the history when a tool's call follows it there.
	for _, t := range d.Texts {
		if m.past && t.Kind == kinds[m.Type] && t.ID != "" && base(t.ID) == base(m.ID) {
			return t
		}
	}
	return nil
}

// repair takes a message of the history.
func (d *Decoder) repair(m *message) error {
	switch m.Type {
	case "assistant_message", "reasoning_message":
		t := d.known(m)
		if t == nil {
			return d.message(m)
		}
		whole, err := m.whole()
		if err == nil && t.Open {
			d.extend(t, whole)
		}
		return err
	case "approval_request_message":
		if m.Call != nil && d.tool(m.Call.ID) == nil {
			return d.message(m)
		}
	case "tool_return_message":
		if t := d.tool(m.CallID); t != nil && !t.Over {
			return d.message(m)
		}
	}
	return nil
}
