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

// waits reports whether the last response waits for approvals or for results of the client's tools.
func (t *attempt) waits() bool { return len(t.approvals) > 0 || len(t.results) > 0 }

// restore finds out, after a restart, whether the response has already ended with requests for approvals or with calls. If the answers
// to approvals were being sent when the process ended, the approved calls may have run, so the turn fails instead of sending the
// answers again. Results of the client's tools are sent again, since they have no effect but another response.
func (t *attempt) restore() error {
	t.answers, t.tools = t.from.Answers, t.from.Tools
	if len(t.in.Tools) > 0 || t.tools.HasEnded {
		t.reply = &responsesReply{id: t.from.ID, seq: t.from.Seq, list: t.tools.Calls}
	}
	if len(t.from.Decoder) == 0 {
		return nil
	}
	d, err := t.decoderAt(t.from.Decoder)
	if err != nil {
		return err
	}
	if t.approvals = pendingApprovals(d); len(t.approvals) > 0 {
		t.paused = t.from.Decoder
	}
	if len(t.approvals) > 0 || t.tools.HasEnded {
		t.expect()
	}
	if t.from.AnswersSent && t.waits() {
		return &agent.Error{Code: codeGone, Message: "the gateway was restarted while it sent the approvals to " + t.a.name + "; whether they arrived is not known", Retryable: true}
	}
	return nil
}

// storeSent commits, before the answers are sent, that they may have been sent. The commit is durable when it
// returns: if the process ends during the request, restore finds the mark and doesn't run the approved
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

// answer waits for the approvals and results that the last response needs, and builds the request with them.
// A stored response is referenced by its id; for any other, the request repeats the conversation and what the
// answers refer to.
//
// The steps are: ask for all of them, build one request, commit that approvals may be sent, and make it the
// attempt's request. The caller sends it. After a restart the body of the first request is unknown, so only a
// stored response can still be answered.
func (t *attempt) answer(ctx context.Context) error {
	t.a.responseIDs.Delete(t.in.Turn) // the response has ended, so Stop has nothing to cancel
	if t.request == nil {
		t.request = t.a.api.body(t.a, nil, t.in.Tools) // without turns: the referenced response has the input
	}
	request, err := t.approve(ctx, t.request)
	if err != nil {
		return err
	}
	if err := t.collect(ctx); err != nil {
		return err
	}
	if len(t.results) > 0 {
		request = t.reply.next(request, t.results)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	// The next response is a new one. Its request isn't repeated if it may have arrived with approvals (isVisible), because the approved
	// calls may have run by then.
	t.isVisible = len(t.approvals) > 0
	if t.isVisible {
		if err := t.storeSent(); err != nil {
			return err
		}
	} else {
		t.paused, t.tools.HiddenParts = nil, nil
		t.tools.Decoders++
	}
	t.tools.Calls, t.tools.HasEnded = nil, false
	t.request, t.body, t.from = request, body, nil
	t.answers++
	return nil
}

// approve asks the readers for the approvals of the last response, and returns the request with their answers. Without approvals it
// returns the request as it is.
func (t *attempt) approve(ctx context.Context, previous any) (any, error) {
	if len(t.approvals) == 0 {
		return previous, nil
	}
	d, err := t.decoderAt(t.paused)
	if err != nil {
		return nil, err
	}
	last, ok := d.Decoder().(approver)
	request, isResponses := previous.(responsesRequest)
	if !ok || !isResponses || !request.Store && t.body == nil {
		return nil, &agent.Error{Code: codeGone, Message: t.a.name + " asked for an approval before the gateway was restarted; it can no longer be answered", Retryable: true}
	}
	// All answers are collected first, so that one request sends them.
	var items []any
	for _, q := range t.approvals {
		a, err := t.emitter.Ask(ctx, q)
		if err != nil {
			return nil, err
		}
		if !request.Store {
			item := last.Approval(q.ID)
			if item == nil {
				return nil, &agent.Error{Code: codeTooLarge, Message: "the call that " + t.a.name + " wants approved is too large to be sent back"}
			}
			items = append(items, item)
		}
		items = append(items, approval{Type: "mcp_approval_response", Request: q.ID, Approve: a.Decision == event.Approve, Reason: a.Text})
	}
	id, _ := last.Position()
	request.add(id, items)
	return request, nil
}
