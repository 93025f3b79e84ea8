package openairesponses

import (
	"slices"

	"github.com/leat-dev/leat/event"
)

const (
	approvalRequest  = "mcp_approval_request"
	approvalResponse = "mcp_approval_response"
	// maxQuestions bounds the approvals that a turn waits on, since they are in its state; no model asks for as many.
	maxQuestions = 256
)

// question is a call of an MCP tool that a person has to approve. Its part stays open: if the call is approved, the next response
// runs it.
type question struct {
	ID      string `json:"id"`
	Message string `json:"message"`
	Part    string `json:"part"`
}

// ask asks for the approval of a call.
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
	d.settle(o)
	o.Tool = false // its part is the question's now
	q := &question{ID: in.ID, Message: d.Key, Part: toolKey(o.Index)}
	d.Questions = append(d.Questions, q)
	d.Emit(event.Event{Type: event.TurnWait, Message: q.Message, Body: &event.Body{
		Request: &event.Request{ID: in.ID, Kind: event.RequestApproval, Tool: in.title(), Part: q.Part},
	}})
	return nil
}

func (d *decoder) question(id string) *question {
	i := slices.IndexFunc(d.Questions, func(q *question) bool { return q.ID == id })
	if i < 0 {
		return nil
	}
	return d.Questions[i]
}

// asks reports whether the response at hand has open questions. Those of earlier responses have been answered.
func (d *decoder) asks() bool {
	return slices.ContainsFunc(d.Questions, func(q *question) bool { return q.Message == d.Key })
}

// answered takes an item that echoes a person's decision. Approved calls follow as items of their own.
func (d *decoder) answered(in *item) {
	q := d.question(in.Request)
	if q == nil || in.Approve == nil || *in.Approve {
		return
	}
	d.Emit(event.Event{Type: event.PartUpdate, Message: q.Message, Part: q.Part, Body: &event.Body{State: event.PartDenied}})
	d.forget(q)
}

// resume begins the response that follows the questions.
func (d *decoder) resume() {
	d.Paused = false
	d.Emit(event.Event{Type: event.MessageEnd, Message: d.Key})
	d.ID, d.Key, d.Seq = "", "", 0
	d.Items = nil
}

// ran takes a call that a person had approved: what it gave belongs to the part that asked for it.
func (d *decoder) ran(q *question, in *item) {
	d.outcome(q.Message, q.Part, in)
	d.forget(q)
}

// endQuestions ends the questions with the turn. A call that was approved runs in the next response: one that did not, in a turn that is
// complete, was denied.
func (d *decoder) endQuestions(o event.Outcome) {
	for len(d.Questions) > 0 {
		q := d.Questions[0]
		if o == event.Completed {
			d.Emit(event.Event{Type: event.PartUpdate, Message: q.Message, Part: q.Part, Body: &event.Body{State: event.PartDenied}})
		}
		d.forget(q)
	}
}

// forget ends a question's part.
func (d *decoder) forget(q *question) {
	d.Emit(event.Event{Type: event.PartEnd, Message: q.Message, Part: q.Part})
	d.Questions = slices.DeleteFunc(d.Questions, func(p *question) bool { return p == q })
}
