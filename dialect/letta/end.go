// The ends of a run: stop reasons, errors and usage.

package letta

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

// stopApproval is the stop reason of a step whose tool calls need approval.
const stopApproval = "requires_approval"

// completed are the stop reasons of successful turns.
var completed = map[string]bool{"end_turn": true, "max_steps": true, "tool_rule": true, "max_tokens_exceeded": true}

// Completed reports whether a stop reason is that of a successful turn.
func Completed(stop string) bool { return completed[stop] }

// retryable are the error types and stop reasons after which another attempt may succeed.
var retryable = map[string]bool{
	"llm_timeout": true, "llm_rate_limit": true, "llm_empty_response": true, "llm_error": true,
	"internal_error": true, "stream_incomplete": true, "llm_api_error": true,
}

// stopMessages are the error messages for stop reasons that come without an error.
var stopMessages = map[string]string{
	"llm_api_error":                            "the model's API failed",
	"invalid_llm_response":                     "the model sent an invalid answer",
	"invalid_tool_call":                        "the model sent an invalid tool call",
	"no_tool_call":                             "the model called no tool",
	"insufficient_credits":                     "insufficient credits",
	"context_window_overflow_in_system_prompt": "the system prompt is larger than the model's context window",
}

// countUsage adds the token usage of a run to the turn's. Input excludes cached tokens, which event.Usage counts separately. On V1, usage
// that follows the stop reason ends the turn.
func (d *Decoder) countUsage(m *message) {
	if d.HasUsage {
		return
	}
	d.HasUsage = true
	u := &d.Usage
	u.Input += max(m.Prompt-m.CacheRead-m.CacheWritten, 0)
	u.Output += m.Completion
	u.CacheRead += m.CacheRead
	u.CacheWrite += m.CacheWritten
	u.Reasoning += m.ReasoningTokens
	if !d.isCode && d.Stop != "" && d.Stop != stopApproval {
		d.endTurn(d.Stop)
	}
}

// handleStop handles the stop reason of a step. On V1, requires_approval makes the turn wait for each call that has no
// decision; any other reason ends the turn if the usage was received. On the App Server it ends only the open text:
// turn_finished ends the turn.
func (d *Decoder) handleStop(m *message) {
	d.Stop = m.Stop
	if d.isCode {
		if completed[m.Stop] || m.Stop == stopApproval {
			d.endText() // after another reason a retry may continue in the text
		}
		return
	}
	d.endText()
	switch {
	case m.Stop == stopApproval:
		for _, t := range d.Tools {
			if !t.IsEnded && t.Type == "approval_request_message" && !t.WasAsked && t.State == "" {
				d.flushInput(t)
				d.askUser(t, event.Request{ID: t.Call, Kind: event.RequestApproval})
			}
		}
	case d.HasUsage: // usage came first; otherwise countUsage or handleDone ends the turn
		d.endTurn(m.Stop)
	}
}

// handleDone handles [DONE]. It ends the turn if there was a stop reason; a turn that waits for approvals continues in another
// stream.
func (d *Decoder) handleDone() {
	if d.Stop != "" && d.Stop != stopApproval {
		d.endTurn(d.Stop)
	}
	d.HasUsage = false
}

// handleErrorMessage handles an error that is sent as a message. On V1 it ends the turn; on the App Server a retry may follow.
func (d *Decoder) handleErrorMessage(m *message) error {
	if d.isCode {
		d.Error = errorOf(m)
		return nil
	}
	return d.handleErrorEvent(m, nil)
}

// handleErrorEvent ends a V1 turn with an error. After a successful stop reason the error comes from the server's cleanup, and
// the turn is completed.
func (d *Decoder) handleErrorEvent(m *message, raw json.RawMessage) error {
	if completed[d.Stop] {
		d.endTurn(d.Stop)
		return nil
	}
	d.Error = errorOf(m)
	if m.Message == "" && len(raw) > 0 {
		var last struct {
			Error string `json:"error"`
			Code  string `json:"code"`
		}
		if json.Unmarshal(raw, &last) == nil && last.Error != "" {
			d.Error = &event.Error{Code: truncate(last.Code, event.MaxID), Message: truncate(last.Error, maxMessage), Retryable: last.Code == "INTERNAL_SERVER_ERROR"}
		}
	}
	stop := d.Stop
	if stop == "" || stop == stopApproval {
		stop = "error"
	}
	d.endTurn(stop)
	return nil
}

// maxMessage limits error messages, in bytes, because some upstreams return whole HTML pages.
const maxMessage = 2 << 10

// truncate shortens s to at most n bytes plus an ellipsis, without splitting a character.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// errorOf converts an error message of the server.
func errorOf(m *message) *event.Error {
	e := &event.Error{Code: truncate(m.ErrorType, event.MaxID), Message: truncate(m.Message, maxMessage), Retryable: m.Retryable || retryable[m.ErrorType]}
	e.Message = cmp.Or(e.Message, "the upstream failed")
	return e
}

// endTurn ends the current turn with a stop reason, and resets the state except for what identifies repetitions.
func (d *Decoder) endTurn(stop string) {
	if d.Key != "" {
		d.closeMessage(decoding.StopReason(stop))
	}
	b := &event.Body{Outcome: event.Completed, Reason: decoding.StopReason(stop)}
	switch {
	case completed[stop]:
	case stop == "cancelled":
		b.Outcome = event.Cancelled
	default:
		b.Outcome = event.Failed
		b.Error = d.Error
		if b.Error == nil {
			b.Error = &event.Error{Code: stop, Message: stopMessages[stop], Retryable: retryable[stop]}
			b.Error.Message = cmp.Or(b.Error.Message, "the turn ended with the stop reason "+stop)
		}
	}
	if d.Usage != (event.Usage{}) {
		usage := d.Usage
		b.Usage = &usage
	}
	d.emit(event.Event{Type: event.TurnEnd, Body: b})
	// MessageCount continues, so that the keys of messages stay unique if the stream has several turns.
	d.state = state{
		Frames: d.Frames, UnknownTypes: d.UnknownTypes, MessageCount: d.MessageCount,
		HasEnded: true, IsOver: !d.isCode, EndedRuns: lastIDs(append(d.EndedRuns, d.Runs...)), Run: d.Run, Seq: d.Seq,
	}
}
