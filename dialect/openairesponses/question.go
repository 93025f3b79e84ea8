package openairesponses

import (
	"encoding/json"
	"slices"

	"github.com/leat-dev/leat/event"
)

const (
	approvalRequest  = "mcp_approval_request"
	approvalResponse = "mcp_approval_response"
	// maxQuestions is the limit of open approvals in a turn; one more is an error. They are stored with every commit, and no model asks for
	// as many.
	maxQuestions = 256
	// maxItemBytes is the limit, in bytes, of all question.Item together, which are stored with every commit too.
	maxItemBytes = 64 << 10
)

// question is a call of an MCP tool that a person has to approve. Its part stays open: if the call is approved, the next response
// runs it.
type question struct {
	ID      string `json:"id"`
	Message string `json:"message"` // the keys of the part that shows the call
	Part    string `json:"part"`
	// Item is the request for the approval, which a caller has to send back with the answer. It is empty if maxItemBytes was reached.
	Item json.RawMessage `json:"item,omitempty"`
}

// ask turns a request for the approval of a call into a question. From then on the question owns the tool's part, which survives the end of
// the response. A request that is repeated, or that has no tool part, asks nothing.
func (d *decoder) ask(o *open, in *item) error {
	if !o.Tool || d.question(in.ID) != nil {
		return nil
	}
	if err := event.CheckID("id", in.ID); err != nil || in.ID == "" {
		return errNoID
	}
	if len(d.Questions) == maxQuestions {
		return errManyQuestions
	}
	d.endParts(o)
	o.Tool = false
	q := &question{ID: in.ID, Message: d.Key, Part: toolKey(o.Index)}
	// The API needs the request itself back, next to the answer, so it is stored in the form of an input item.
	b, err := json.Marshal(map[string]string{"type": approvalRequest, "id": in.ID, "name": in.Name, "server_label": in.Server, "arguments": text(in.Arguments)})
	if err != nil {
		return err
	}
	size := len(b)
	for _, other := range d.Questions {
		size += len(other.Item)
	}
	if size <= maxItemBytes {
		q.Item = b
	}
	d.Questions = append(d.Questions, q)
	d.Emit(event.Event{Type: event.TurnWait, Message: q.Message, Body: &event.Body{
		Request: &event.Request{ID: in.ID, Kind: event.RequestApproval, Tool: in.title(), Part: q.Part},
	}})
	return nil
}

// question returns the open question with an id, or nil.
func (d *decoder) question(id string) *question {
	i := slices.IndexFunc(d.Questions, func(q *question) bool { return q.ID == id })
	if i < 0 {
		return nil
	}
	return d.Questions[i]
}

// asks reports whether the current response has open questions. Those of earlier responses have been answered.
func (d *decoder) asks() bool {
	return slices.ContainsFunc(d.Questions, func(q *question) bool { return q.Message == d.Key })
}

// OpenRequests returns the approvals that the last response asked for. It returns none before the response has ended, because the
// response may still ask for more.
func (d *decoder) OpenRequests() []event.Request {
	var requests []event.Request
	for _, q := range d.Questions {
		if d.Paused && q.Message == d.Key {
			requests = append(requests, event.Request{ID: q.ID, Kind: event.RequestApproval, Tool: q.tool(), Part: q.Part})
		}
	}
	return requests
}

// tool returns the name of the tool that the question is about, or "" if the request was too large to be stored.
func (q *question) tool() string {
	var in item
	if json.Unmarshal(q.Item, &in) != nil {
		return ""
	}
	return in.title()
}

// Approval returns the request for an approval, as an input item for the request that sends the answer to it. It returns nil if the
// request is unknown, or if it was too large to be stored.
func (d *decoder) Approval(id string) json.RawMessage {
	if q := d.question(id); q != nil {
		return q.Item
	}
	return nil
}

// applyDecision applies an item that repeats a user's decision. A denial ends the question. An approval changes nothing: the approved call
// follows as a separate item.
func (d *decoder) applyDecision(in *item) {
	q := d.question(in.Request)
	if q == nil || in.Approve == nil || *in.Approve {
		return
	}
	d.Emit(event.Event{Type: event.PartUpdate, Message: q.Message, Part: q.Part, Body: &event.Body{State: event.PartDenied}})
	d.forget(q)
}

// resume prepares the decoder for the response after the questions: it ends the message of the response before and forgets its items. The
// sequence numbers start at 0 again.
func (d *decoder) resume() {
	d.Paused = false
	d.Emit(event.Event{Type: event.MessageEnd, Message: d.Key})
	d.ID, d.Key, d.Seq = "", "", 0
	d.Items = nil
}

// ran applies the result of a call that a person has approved. It is shown in the part of the question, which ends.
func (d *decoder) ran(q *question, in *item) {
	d.outcome(q.Message, q.Part, in)
	d.forget(q)
}

// endQuestions ends the open questions with the turn. An approved call runs in the next response, so a call that has not run in a
// complete turn was denied. If the turn failed, nothing is known about the answer.
func (d *decoder) endQuestions(o event.Outcome) {
	for len(d.Questions) > 0 {
		q := d.Questions[0]
		if o == event.Completed {
			d.Emit(event.Event{Type: event.PartUpdate, Message: q.Message, Part: q.Part, Body: &event.Body{State: event.PartDenied}})
		}
		d.forget(q)
	}
}

// forget ends a question and its part.
func (d *decoder) forget(q *question) {
	d.Emit(event.Event{Type: event.PartEnd, Message: q.Message, Part: q.Part})
	d.Questions = slices.DeleteFunc(d.Questions, func(p *question) bool { return p == q })
}
