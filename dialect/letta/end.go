package letta

import (
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

// stopApproval is the stop reason of a step whose tools have to be approved.
const stopApproval = "requires_approval"

// completed are the stop reasons of turns that went well.
var completed = map[string]bool{"end_turn": true, "max_steps": true, "tool_rule": true, "max_tokens_exceeded": true}

// Completed reports whether a stop reason is that of a turn that went well.
func Completed(stop string) bool { return completed[stop] }

// retryable are the errors that another try may not meet.
var retryable = map[string]bool{
	"llm_timeout": true, "llm_rate_limit": true, "llm_empty_response": true, "llm_error": true,
	"internal_error": true, "stream_incomplete": true, "llm_api_error": true,
}

// stopMessages are stop reasons in words, where no error tells more.
var stopMessages = map[string]string{
	"llm_api_error":                            "the model's API failed",
	"invalid_llm_response":                     "the model gave no valid answer",
	"invalid_tool_call":                        "the model made an invalid call of a tool",
	"no_tool_call":                             "the model called no tool",
	"insufficient_credits":                     "there are not enough credits",
	"context_window_overflow_in_system_prompt": "the system prompt is larger than the model's context",
}

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

// handleStop takes the stop reason of a step.
func (d *Decoder) handleStop(m *message) {
	d.Stop = m.Stop
	if d.isCode {
		if completed[m.Stop] || m.Stop == stopApproval {
			d.endText() // else a retry may go on in it
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
	case d.HasUsage:
		d.endTurn(m.Stop)
	}
}

// handleDone takes [DONE], which ends what a stop reason has ended. Where the turn waits it goes on in another stream.
func (d *Decoder) handleDone() {
	if d.Stop != "" && d.Stop != stopApproval {
		d.endTurn(d.Stop)
	}
	d.HasUsage = false
}

// handleErrorMessage takes an error that comes as a message. On the App Server a retry may follow.
func (d *Decoder) handleErrorMessage(m *message) error {
	if d.isCode {
		d.Error = errorOf(m)
		return nil
	}
	return d.handleErrorEvent(m, nil)
}

// handleErrorEvent ends a V1 turn. An error after a good end is one of the server's clearing up.
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

// maxMessage bounds what is told of a failure, in bytes: some upstreams hand on whole pages.
const maxMessage = 2 << 10

func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

func errorOf(m *message) *event.Error {
	e := &event.Error{Code: truncate(m.ErrorType, event.MaxID), Message: truncate(m.Message, maxMessage), Retryable: m.Retryable || retryable[m.ErrorType]}
	if e.Message == "" {
		e.Message = "the upstream failed"
	}
	return e
}

// endTurn ends the turn at hand.
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
			if b.Error.Message == "" {
				b.Error.Message = "the turn ended with the stop reason " + stop
			}
		}
	}
	if d.Usage != (event.Usage{}) {
		usage := d.Usage
		b.Usage = &usage
	}
	d.emit(event.Event{Type: event.TurnEnd, Body: b})
	d.state = state{
		Frames: d.Frames, UnknownTypes: d.UnknownTypes, MessageCount: d.MessageCount,
		HasEnded: true, IsOver: !d.isCode, EndedRuns: lastIDs(append(d.EndedRuns, d.Runs...)), Run: d.Run, Seq: d.Seq,
	}
}
