// The frames that a turn gets from the App Server: status, queue and approvals are handled here, and the output goes to the
// dialect.

package letta

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/event"
)

// envelope has the fields of a frame that Leat needs itself. Everything that readers see is decoded by [letta.Decoder].
type envelope struct {
	Type        string       `json:"type"`
	ID          string       `json:"request_id"`
	Accepted    bool         `json:"accepted"`
	Disposition string       `json:"disposition"`
	Error       string       `json:"error"`
	Stop        string       `json:"stop_reason"`
	Runtime     *runtime     `json:"runtime"`
	Queue       []queuedItem `json:"queue"`
	Delta       struct {
		Type string `json:"message_type"`
		Otid string `json:"otid"`
		Call string `json:"tool_call_id"`
		Stop string `json:"stop_reason"`
		Tool struct {
			Call string `json:"tool_call_id"`
		} `json:"tool_call"`
	} `json:"delta"`
	Loop struct {
		Status        string              `json:"status"`
		Active        []string            `json:"active_run_ids"`
		MessagesByRun map[string][]string `json:"client_message_ids_by_run_id"`
	} `json:"loop_status"`
	Request struct {
		Tool  string          `json:"tool_name"`
		Input json.RawMessage `json:"input"`
	} `json:"request"`
}

// handleFrame handles a frame. Before the server has started the turn's run, it only follows the queue and the status: deltas
// belong to another client's turn. Afterwards it decodes the frame, with three exceptions: tool frames of the run that accepted
// a queued message, a "cancelled" that only says that Leat was disconnected, and an end that is not final because a steered
// message is still to be answered.
func (w *socketTurn) handleFrame(ctx context.Context, b []byte) error {
	var f envelope
	if err := json.Unmarshal(b, &f); err != nil {
		return w.turn.decode(dialect.Frame{Data: b}) // its error describes the fault
	}
	// The server also sends frames of the agent's other conversations.
	if f.Runtime != nil && f.Runtime.Conversation != w.turn.snapshot().Session.Conversation {
		return nil
	}
	if w.isLeaving = w.isLeaving || w.passesToOwnTurn(&f); w.isLeaving {
		return w.leaveRun(&f, b)
	}
	switch f.Type {
	case "input_accepted":
		return w.handleAccepted(ctx, &f)
	case "update_device_status":
		return nil // large, and without any information about the turn
	case "sync_response":
		w.syncs.resolve(f.ID)
		return nil
	// The run has started when its status or its copy of the message names the message, whichever arrives first. The response to the
	// message isn't enough: it may only say that the message is queued.
	case "update_loop_status":
		w.syncs.setLoopStatus(f.Loop.Status)
		for _, messages := range f.Loop.MessagesByRun {
			if slices.Contains(messages, w.id) {
				if err := w.markStarted(ctx); err != nil {
					return err
				}
			}
			w.steer.remove(messages...)
		}
	case "stream_delta":
		if f.Delta.Type == "user_message" {
			if f.Delta.Otid == w.id {
				if err := w.markStarted(ctx); err != nil {
					return err
				}
			}
			w.steer.remove(f.Delta.Otid)
		}
	case "update_queue":
		w.queue.findItem(f.Queue, w.id)
	case "control_request":
		if w.questions == nil {
			w.questions = map[string]json.RawMessage{}
		}
		if f.Request.Tool == letta.AskTool {
			w.questions[f.ID] = f.Request.Input
		}
	}
	switch {
	case !w.isActive && f.Type == "turn_finished":
		w.queue.earlierFinished = true
		return w.resumeQueue(ctx)
	case !w.isActive:
		return nil // a frame of an earlier turn
	case w.queue.isQueued && f.isToolFrame() && !w.turn.hasCall(f.Delta.Call):
		return nil // the tool belongs to the other client's run that has taken up the message
	case f.Type == "turn_finished" && w.wasDisconnected && f.Stop == "cancelled":
		return w.turn.endLost(codeLost, lostMessage) // the server cancelled it because its last viewer was disconnected
	case f.Type == "turn_finished" && letta.Completed(f.Stop) && w.steer.hasOpen():
		return nil // the server starts another run for the steered message
	}
	return w.turn.decode(dialect.Frame{Data: b})
}

// decision allows or denies a tool call. If Input is set it replaces the call's arguments.
type decision struct {
	Behavior string          `json:"behavior"`
	Message  string          `json:"message,omitempty"`
	Input    json.RawMessage `json:"updated_input,omitempty"`
}

// approvalResponse answers a control_request of the App Server.
type approvalResponse struct {
	Kind     string   `json:"kind"`
	ID       string   `json:"request_id"`
	Decision decision `json:"decision"`
}

// sendAnswer sends a user's answer to an approval or to a question, after it is stored. The server ignores it if another client
// has answered first. An answer to the question tool is an approval whose input contains the answer's text.
func (w *socketTurn) sendAnswer(ctx context.Context, a event.Answer) error {
	d := decision{Behavior: "deny", Message: a.Text}
	question, isQuestion := w.questions[a.ID]
	switch {
	case isQuestion && a.Decision != event.Deny:
		text := cmp.Or(a.Text, string(a.Decision))
		d = decision{Behavior: "allow", Input: letta.AnswerTo(question, text)}
	case a.Decision == event.Approve:
		d = decision{Behavior: "allow"}
	case d.Message == "":
		d.Message = "denied"
	}
	if err := w.turn.update(func() []event.Event { return w.turn.lettaDecoder.RecordAnswer(a.ID, d.Behavior == "allow") }); err != nil {
		return err
	}
	return w.conn.send(ctx, w.agent.times, input{
		request: request{Type: "input", Runtime: w.turn.runtime()},
		Payload: approvalResponse{Kind: "approval_response", ID: a.ID, Decision: d},
	})
}
