// Turns that wait: approvals, questions and tools of the client.

package vercel

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/transcript"
)

// Names of the calls that represent requests without a tool.
const (
	toolApproval = "approval"
	toolQuestion = "question"
)

// requestState is what the client has of a request.
type requestState struct {
	event.Request
	// isCall is true if the client has the request as a call, and not as part of the call that it is about.
	isCall     bool
	isAnswered bool

	// Of a request that waits for its answer and that the client doesn't have yet: the call that it is about, if the client has it, and the length
	// of the writer's chunks when it was asked.
	isPending bool
	tool      string
	position  int
}

// ask takes a request. If it still waits for its answer, [writer.pause] sends it.
//
// The response ends there, so texts and inputs that grow are closed. A request that was answered since remains as a call with its answer. It is
// marked as run elsewhere, so that the page doesn't run its tool again.
func (w *writer) ask(a *answer.Answer, r *event.Request) error {
	isOpen, err := w.isOpen(r.ID)
	if err != nil {
		return err
	}
	w.closeTexts(a)
	w.completeInputs(a)
	state := &requestState{Request: *r, tool: w.toolOf(a, r)}
	w.requests = append(w.requests, state)
	w.endStep()
	switch {
	case w.isMuted:
		state.isCall = w.calls[r.ID]
	case isOpen:
		state.isPending, state.position = true, len(w.buf)
	case state.tool == "":
		state.isCall = true
		w.add(chunk{Type: "start-step"})
		w.add(w.call(r, false))
		w.add(chunk{Type: "finish-step"})
	}
	return nil
}

// pause ends the response of a turn that waits, right after its newest request: the response to the answer continues there.
//
// The SDK sends answers by itself when all calls of the last step have one, so all requests are in one step. A single approval is part of the
// call that it is about.
func (w *writer) pause() error {
	var pending []*requestState
	position := 0
	for _, r := range w.requests {
		if !r.isPending {
			continue
		}
		isOpen, err := w.isOpen(r.ID)
		if err != nil {
			return err
		}
		if isOpen {
			pending = append(pending, r)
			position = r.position
		}
	}
	w.buf, w.isMuted = w.buf[:position], false
	switch {
	case len(pending) == 1 && pending[0].tool != "":
		w.add(w.approval(&pending[0].Request, pending[0].tool))
	case len(pending) > 0:
		w.add(chunk{Type: "start-step"})
		for _, r := range pending {
			w.add(w.call(&r.Request, true))
			if w.hasApprovals(&r.Request) {
				w.add(w.approval(&r.Request, r.ID))
			}
		}
		w.add(chunk{Type: "finish-step"})
	}
	w.add(chunk{Type: "finish"})
	w.buf = append(w.buf, endOfStream...)
	return w.err
}

// hasApprovals reports whether a request is an approval that the client's version knows as such.
func (w *writer) hasApprovals(r *event.Request) bool {
	return r.Kind == event.RequestApproval && w.sdk >= sdk6
}

// call returns the chunk that represents a request as a call. Unless it is an approval of the SDK, the page answers it with the call's output.
func (w *writer) call(r *event.Request, isOpen bool) chunk {
	isApproval := w.hasApprovals(r)
	return chunk{
		Type: "tool-input-available", ToolCallID: r.ID, ToolName: w.requestName(r), Input: requestInput(r),
		Dynamic: isApproval, ProviderExecuted: isApproval || !isOpen,
	}
}

// approval returns the chunk that asks for an approval of a call.
func (w *writer) approval(r *event.Request, call string) chunk {
	c := chunk{Type: "tool-approval-request", ApprovalID: r.ID, ToolCallID: call}
	if w.sdk >= sdk7 {
		c.Reason = r.Prompt
	}
	return c
}

// toolOf returns the id of the call that an approval is about, or "" if it isn't in the current step or if another call of the step is
// unfinished.
func (w *writer) toolOf(a *answer.Answer, r *event.Request) (call string) {
	if !w.hasApprovals(r) {
		return ""
	}
	for _, state := range w.parts {
		_, p := find(a, state.key)
		if p == nil || p.Kind != event.KindTool || state.step != w.step || !state.isBegun || state.isCompleted {
			continue
		}
		isMeant := state.key.part == r.Part || r.Part == "" && p.Name == r.Tool // some agents name the tool only
		if !isMeant || call != "" {
			return ""
		}
		call = state.key.id()
	}
	return call
}

// closeRequest sends the answer of a request that the client may not have given itself.
//
// If it has, it gets the same output once more, which changes nothing. An approval that belongs to a call needs no chunk: the call's output
// follows, or its refusal.
func (w *writer) closeRequest(answer *event.Answer) {
	i := slices.IndexFunc(w.requests, func(r *requestState) bool { return r.ID == answer.ID && !r.isAnswered })
	if i < 0 {
		return
	}
	r := w.requests[i]
	r.isAnswered = true
	if !r.isCall {
		return // the call gets its output
	}
	if answer.Decision == event.Deny && w.sdk >= sdk6 && r.Kind == event.RequestApproval {
		w.add(w.denied(r.ID))
		return
	}
	w.add(chunk{Type: "tool-output-available", ToolCallID: r.ID, Output: answerOutput(r.Kind, answer)})
}

// hasOpen reports whether the turn waits for an answer. The answer may have come since what w has read.
func (w *writer) hasOpen(turn *transcript.Turn) (bool, error) {
	if turn == nil {
		return false, nil
	}
	for _, r := range turn.Requests {
		if isOpen, err := w.isOpen(r.ID); err != nil || isOpen {
			return isOpen, err
		}
	}
	return false, nil
}

// requestName returns the name of the call that represents a request.
//
// In version 5 all approvals have the same name, so that a page can show them in one way. With the tool's name, a page that runs a tool of that
// name itself would take the approval for a call of it.
func (w *writer) requestName(r *event.Request) string {
	switch {
	case r.Kind == event.RequestApproval && w.sdk < sdk6:
		return toolApproval
	case r.Tool != "":
		return r.Tool
	case r.Kind == event.RequestApproval:
		return toolApproval
	}
	return toolQuestion
}

// requestInput returns the input of the call that represents a request: the agent's data for a tool of the client, otherwise the question.
func requestInput(r *event.Request) json.RawMessage {
	if r.Kind == event.RequestInput && r.Tool != "" {
		if len(r.Data) == 0 {
			return json.RawMessage("{}")
		}
		return safeJSON(r.Data)
	}
	q := struct {
		Tool    string          `json:"tool,omitempty"`
		Prompt  string          `json:"prompt"`
		Options []string        `json:"options,omitempty"`
		Data    json.RawMessage `json:"data,omitempty"`
	}{Tool: r.Tool, Prompt: cmp.Or(r.Prompt, "The agent needs an answer."), Options: r.Options}
	if len(r.Data) > 0 {
		q.Data = safeJSON(r.Data)
	}
	if r.Kind == event.RequestApproval && len(q.Options) == 0 {
		q.Options = []string{string(event.Approve), string(event.Deny)}
	}
	data, err := json.Marshal(q)
	if err != nil {
		return json.RawMessage("{}") // Data is not JSON
	}
	return data
}

// answerOutput returns an answer as the output of a call, as the client would have given it.
func answerOutput(kind event.RequestKind, a *event.Answer) json.RawMessage {
	if a.Text != "" && kind == event.RequestInput {
		return jsonOf(a.Text)
	}
	return jsonString(cmp.Or(string(a.Decision), a.Text))
}
