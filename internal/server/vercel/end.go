// How responses end.

package vercel

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// Texts of errors that pages show as they are.
const (
	textInterrupted = "The answer was interrupted by a restart. Try again."
	textReplaced    = "The agent changed text that was already sent. Reload the chat to see the final answer."
	textRemoved     = "This answer was removed from the chat."
	textDenied      = "The tool was not allowed to run."
	textUnfinished  = "The answer ended before the tool did."
	textExpired     = "Your session has expired. Sign in again."
)

// end ends the response of a turn that has ended.
//
// An answer that failed, or whose text isn't the one that the client has, ends with an error: a finish would make it look complete. A turn that
// was stopped gets an abort and a finish, because neither is enough for all versions.
func (w *writer) end(turn *transcript.Turn) {
	for _, r := range w.requests {
		if r.isCall && !r.isAnswered {
			w.add(chunk{Type: "tool-output-error", ToolCallID: r.ID, ErrorText: "The agent no longer waits for an answer."})
		}
	}
	isContradicted := false
	for _, p := range w.parts {
		isContradicted = isContradicted || p.isContradicted
	}
	w.endStep()
	switch {
	case turn.Outcome == event.Cancelled:
		// The abort alone looks like success. Only version 7 knows a reason that keeps it from sending the next request by itself.
		w.add(chunk{Type: "abort"})
		reason := "other"
		if w.sdk >= sdk7 {
			reason = "interrupted"
		}
		w.add(chunk{Type: "finish", FinishReason: reason})
	case turn.Outcome != event.Completed:
		w.fail(chats.FailureText(turn, textInterrupted))
		return
	case isContradicted:
		w.fail(textReplaced)
		return
	default:
		w.add(chunk{Type: "finish", FinishReason: finishReason(turn.Reason)})
	}
	w.isMuted = false
	w.buf = append(w.buf, endOfStream...)
}

// fail ends the response with an error, which the SDK shows as it is.
func (w *writer) fail(text string) {
	w.isMuted = false
	w.add(chunk{Type: "error", ErrorText: text})
	w.buf = append(w.buf, endOfStream...)
}

// finishReason returns the SDK's word for the reason with which an agent has finished.
func finishReason(reason string) string {
	switch strings.ReplaceAll(reason, "_", "-") {
	case event.ReasonLength, "max-tokens":
		return "length"
	case "content-filter":
		return "content-filter"
	}
	return "stop"
}
