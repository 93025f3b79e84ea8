// How runs end.

package agui

import (
	"cmp"
	"encoding/json"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// Texts of errors that pages show as they are.
const (
	textInterrupted = "The answer was interrupted by a restart. Try again."
	textRemoved     = "This answer was removed from the conversation."
	textExpired     = "Your session has expired. Sign in again."
	textRestarting  = "The gateway is restarting. Connect again to see the rest of the answer."
)

// end ends the run. Turn is the last one that was streamed, or nil.
func (w *writer) end(turn *transcript.Turn) {
	switch {
	case turn == nil, turn.Outcome == event.Completed:
		w.finish(&outcome{Type: "success"})
	case turn.Outcome == event.Cancelled && w.in.hasCancelled():
		w.finish(&outcome{Type: "cancelled"})
	case turn.Outcome == event.Cancelled:
		w.finish(nil)
	case turn.Error != nil && turn.Error.Message != "":
		w.fail(turn.Error.Code, turn.Error.Message)
	default:
		w.fail(string(turn.Outcome), chats.FailureText(turn, textInterrupted))
	}
}

// finish ends the run without an error.
func (w *writer) finish(o *outcome) {
	w.closeAll()
	w.add(frame{Type: runFinished, Thread: w.in.Thread, Run: w.in.Run, Outcome: o})
}

// fail ends the run with an error.
func (w *writer) fail(code, text string) {
	w.closeAll()
	w.add(frame{Type: runError, Message: text, Code: code})
}

// openRequests returns the requests of a turn that wait for an answer.
func (w *writer) openRequests(turn *transcript.Turn) (open []*event.Request, err error) {
	if turn == nil {
		return nil, nil
	}
	for _, r := range turn.Requests {
		isOpen, err := w.isOpen(turn.ID, r.ID)
		if err != nil {
			return nil, err
		}
		if isOpen {
			open = append(open, &r.Request)
		}
	}
	return open, nil
}

// pause ends the run of a turn that waits. A tool of the page is a call without a result, and everything else is an interrupt.
func (w *writer) pause(a *answer.Answer, requests []*event.Request) {
	w.closeAll()
	o := &outcome{Type: "success"}
	for _, r := range requests {
		if !chats.IsClientTool(r) {
			o.Type, o.Interrupts = "interrupt", append(o.Interrupts, interruptOf(a, r))
			continue
		}
		// The client would append the arguments to those that it has from an earlier run.
		if w.in.hasCall(r.ID) {
			continue
		}
		w.add(frame{Type: callStart, CallID: r.ID, CallName: r.Tool})
		w.add(frame{Type: callArgs, CallID: r.ID, Delta: cmp.Or(string(r.Data), "{}")})
		w.add(frame{Type: callEnd, CallID: r.ID})
	}
	w.finish(o)
}

// requestData is the metadata of an interrupt.
type requestData struct {
	Tool    string          `json:"tool,omitempty"`
	Options []string        `json:"options,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// approvalSchema describes the answer to an approval.
const approvalSchema = `{"type":"object","properties":{"approved":{"type":"boolean"},"reason":{"type":"string"}},"required":["approved"]}`

// textSchema describes the answer to a question. Options are in the metadata.
const textSchema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`

// interruptOf returns a request as an interrupt.
//
// It has no time at which it expires: a client whose clock is wrong would refuse to send an answer that is in time. The gateway itself refuses an
// answer that is late.
func interruptOf(a *answer.Answer, r *event.Request) interrupt {
	i := interrupt{ID: r.ID, Reason: "input_required", Message: cmp.Or(r.Prompt, "The agent needs an answer."), Schema: json.RawMessage(textSchema)}
	if r.Kind == event.RequestApproval {
		i.Reason, i.Schema = "confirmation", json.RawMessage(approvalSchema)
		if m, p := chats.ToolOf(a.Messages(), r); p != nil {
			i.CallID = partKey{m.ID, p.ID}.id()
		}
	}
	if r.Tool == "" && len(r.Options) == 0 && len(r.Data) == 0 {
		return i
	}
	if data, err := server.Marshal(requestData{r.Tool, r.Options, r.Data}); err == nil { // else the agent's data isn't JSON
		i.Metadata = data
	}
	return i
}
