package llm

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// approving is a decoder whose stream may end with requests for approvals.
type approver interface {
	positioned
	OpenRequests() []event.Request
	Approval(id string) json.RawMessage
}

// asked returns the approvals for which the response that a stream has read waits.
func pendingApprovals(d *dialect.Stream) []event.Request {
	if a, ok := d.Decoder().(approver); ok {
		return a.OpenRequests()
	}
	return nil
}

// takeUp finds out whether the response that the turn followed before a restart has ended with questions. If their answers were sent
// already, the calls may have run, so that nothing is sent again.
func (t *attempt) restoreApprovals() error {
	t.answers = t.from.Answers
	if len(t.from.Decoder) == 0 {
		return nil
	}
	d := dialect.NewStream(t.a.api.dialect())
	if err := d.Restore(fmt.Appendf(nil, `{"offset":0,"decoder":%s}`, t.from.Decoder)); err != nil {
		return err
	}
	if t.approvals = pendingApprovals(d); len(t.approvals) == 0 {
		return nil
	}
	if t.from.AnswersSent {
		return &agent.Error{Code: codeGone, Message: "the answers to the questions of " + t.a.name + " were sent just before the gateway was restarted, and what became of them is not known", Retryable: true}
	}
	t.paused = t.from.Decoder
	return nil
}

// sending stores that the answers are sent.
func (t *attempt) storeSent() error {
	if t.from == nil {
		return nil // the response does not outlive the process
	}
	next := *t.from
	next.Decoder, next.AnswersSent = t.paused, true
	state, err := json.Marshal(&next)
	if err != nil {
		return err
	}
	if err := t.emitter.Emit(nil, state); err != nil {
		return err
	}
	return t.emitter.Flush()
}

// approval is a person's decision as an item of input.
type approval struct {
	Type    string `json:"type"`
	Request string `json:"approval_request_id"`
	Approve bool   `json:"approve"`
	Reason  string `json:"reason,omitempty"`
}

// answer asks a person for the approvals that the last response asked for, and makes the request that brings the answers. A
// stored response is named; of any other, the items that the answers belong to are sent back.
func (t *attempt) answer(ctx context.Context) error {
	d := dialect.NewStream(t.a.api.dialect())
	if err := d.Restore(fmt.Appendf(nil, `{"offset":0,"decoder":%s}`, t.paused)); err != nil {
		return err
	}
	last, ok := d.Decoder().(approver)
	if t.request == nil {
		t.request = t.a.api.body(t.a, nil) // the response that is named in it has the input
	}
	request, isResponses := t.request.(responsesRequest)
	if !ok || !isResponses || !request.Store && t.body == nil {
		return &agent.Error{Code: codeGone, Message: "the question of " + t.a.name + " was asked before the gateway was restarted, and can't be answered any more", Retryable: true}
	}
	var items []any
	for _, q := range t.approvals {
		a, err := t.emitter.Ask(ctx, q)
		if err != nil {
			return err
		}
		if !request.Store {
			item := last.Approval(q.ID)
			if item == nil {
				return &agent.Error{Code: codeTooLarge, Message: "the call that " + t.a.name + " asks to approve is too large to be sent back"}
			}
			items = append(items, item)
		}
		items = append(items, approval{Type: "mcp_approval_response", Request: q.ID, Approve: a.Decision == event.Approve, Reason: a.Text})
	}
	if request.Store {
		request.Previous, _ = last.Position()
		request.Input = items
	} else {
		request.Input = append(request.Input[:len(request.Input):len(request.Input)], items...)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if err := t.storeSent(); err != nil {
		return err
	}
	// What follows is another response. The call may have been run by the time that a connection breaks, so nothing is repeated that
	// may have arrived.
	t.request, t.body, t.from, t.isVisible = request, body, nil, true
	t.answers++
	return nil
}
