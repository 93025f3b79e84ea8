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

// requestStep is the message of a step that contains requests only.
const requestStep = "requests"

// sentRequest is what the client has of a request.
type sentRequest struct {
	event.Request
	// isCall is true if the request is a call of its own, and not part of the call that it is about.
	isCall     bool
	isAnswered bool
}

// ask sends a request.
//
// Version 6 and later have approvals, which belong to a call. In all other cases the request is a call of a tool of the client, whose output is
// the answer. A request that was answered since is marked as run elsewhere, so that the page doesn't run its tool again.
func (w *writer) ask(a *answer.Answer, r *event.Request) error {
	isOpen, err := w.isOpen(r.ID)
	if err != nil {
		return err
	}
	w.closeTexts(a)
	w.completeInputs(a)
	sent := &sentRequest{Request: *r}
	w.requests = append(w.requests, sent)
	isApproval := r.Kind == event.RequestApproval && w.sdk >= sdk6
	if tool := w.toolOf(a, r); isApproval && tool != nil {
		if isOpen {
			w.add(w.approval(r, tool.key.id()))
		}
		w.endStep()
	} else {
		sent.isCall = true
		if w.message != requestStep { // the SDK sends answers by itself only if no other call of the step is unfinished
			w.beginStep(requestStep)
		}
		w.add(chunk{Type: "tool-input-available", ToolCallID: r.ID, ToolName: w.requestName(r), Input: requestInput(r), Dynamic: isApproval, ProviderExecuted: isApproval || !isOpen})
		if isApproval && isOpen {
			w.add(w.approval(r, r.ID))
		}
	}
	if !w.isMuted {
		w.pauseAt = len(w.buf)
	}
	return nil
}

// approval returns the chunk that asks for an approval of a call.
func (w *writer) approval(r *event.Request, call string) chunk {
	c := chunk{Type: "tool-approval-request", ApprovalID: r.ID, ToolCallID: call}
	if w.sdk >= sdk7 {
		c.Reason = r.Prompt
	}
	return c
}

// toolOf returns the call that an approval is about, if it is in the current step and no other call of the step is unfinished.
func (w *writer) toolOf(a *answer.Answer, r *event.Request) (tool *sentPart) {
	for _, sent := range w.parts {
		_, p := find(a, sent.key)
		if p == nil || p.Kind != event.KindTool || sent.step != w.step || !sent.isBegun || sent.isCompleted {
			continue
		}
		isMeant := sent.key.part == r.Part || r.Part == "" && p.Name == r.Tool // some agents name the tool only
		if !isMeant || tool != nil {
			return nil
		}
		tool = sent
	}
	return tool
}

// answered sends the answer of a request that the client may not have given itself.
func (w *writer) answered(answer *event.Answer) {
	i := slices.IndexFunc(w.requests, func(r *sentRequest) bool { return r.ID == answer.ID && !r.isAnswered })
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

// pause ends the response of a turn that waits, right after its newest request.
func (w *writer) pause() {
	w.buf, w.isMuted = w.buf[:w.pauseAt], false
	w.add(chunk{Type: "finish"})
	w.buf = append(w.buf, done...)
}

// requestName returns the name of the call that represents a request.
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
