// Tools of a model API that need a person's permission: the turn waits, and the answer is part of the next request.

package llm

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// approver is a decoder whose stream may end with requests for approvals. OpenRequests returns them, in order,
// and Approval the item of one request as the provider sent it, or nil if the decoder didn't retain it for its
// size.
type approver interface {
	positioned
	OpenRequests() []event.Request
	Approval(id string) json.RawMessage
}

// pendingApprovals returns the approvals that the response in d waits for.
func pendingApprovals(d *dialect.Stream) []event.Request {
	if a, ok := d.Decoder().(approver); ok {
		return a.OpenRequests()
	}
	return nil
}

// restoreApprovals finds out, after a restart, whether the response has already ended with requests for approvals. If their
// answers were being sent when the process ended, the approved calls may have run, so the turn fails instead of sending the
// answers again.
func (t *attempt) restoreApprovals() error {
	t.answers = t.from.Answers
	if len(t.from.Decoder) == 0 {
		return nil
	}
	d, err := t.decoderAt(t.from.Decoder)
	if err != nil {
		return err
	}
	if t.approvals = pendingApprovals(d); len(t.approvals) == 0 {
		return nil
	}
	if t.from.AnswersSent {
		return &agent.Error{Code: codeGone, Message: "the gateway was restarted while it sent the approvals to " + t.a.name + "; whether they arrived is not known", Retryable: true}
	}
	t.paused = t.from.Decoder
	return nil
}

// storeSent commits, before the answers are sent, that they may have been sent. The commit is durable when it
// returns: if the process ends during the request, restoreApprovals finds the mark and doesn't run the approved
// calls a second time.
func (t *attempt) storeSent() error {
	if t.from == nil {
		return nil // the response isn't stored, so a restart can't resume it anyway
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

// approval is a decision as an input item of a request. Reason is the text that the person added, which the
// model gets as well.
type approval struct {
	Type    string `json:"type"`
	Request string `json:"approval_request_id"`
	Approve bool   `json:"approve"`
	Reason  string `json:"reason,omitempty"`
}

// answer asks the readers for the approvals of the last response and builds the request with their answers. A
// stored response is referenced by its id; for any other, the request repeats the conversation and the items
// that the answers refer to.
//
// The steps are: restore the decoder of the ended response, ask for every approval, build one request with all
// answers, commit that it may be sent, and make it the attempt's request. The caller sends it. After a restart
// the body of the first request is unknown, so only a stored response can still be answered.
func (t *attempt) answer(ctx context.Context) error {
	d, err := t.decoderAt(t.paused)
	if err != nil {
		return err
	}
	last, ok := d.Decoder().(approver)
	if t.request == nil {
		t.request = t.a.api.body(t.a, nil) // without turns: the referenced response has the input
	}
	request, isResponses := t.request.(responsesRequest)
	if !ok || !isResponses || !request.Store && t.body == nil {
		return &agent.Error{Code: codeGone, Message: t.a.name + " asked for an approval before the gateway was restarted; it can no longer be answered", Retryable: true}
	}
	// All answers are collected first, so that one request sends them.
	var items []any
	for _, q := range t.approvals {
		a, err := t.emitter.Ask(ctx, q)
		if err != nil {
			return err
		}
		if !request.Store {
			item := last.Approval(q.ID)
			if item == nil {
				return &agent.Error{Code: codeTooLarge, Message: "the call that " + t.a.name + " wants approved is too large to be sent back"}
			}
			items = append(items, item)
		}
		items = append(items, approval{Type: "mcp_approval_response", Request: q.ID, Approve: a.Decision == event.Approve, Reason: a.Text})
	}
	if request.Store {
		request.Previous, _ = last.Position()
		request.Input = items
	} else {
		// The full slice expression makes append copy: the previous request shares the array.
		request.Input = append(request.Input[:len(request.Input):len(request.Input)], items...)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if err := t.storeSent(); err != nil {
		return err
	}
	// The next response is a new one. Its request isn't repeated if it may have arrived (isVisible), because the approved calls may
	// have run by then.
	t.request, t.body, t.from, t.isVisible = request, body, nil, true
	t.answers++
	return nil
}
