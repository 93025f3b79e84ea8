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
type approving interface {
	positioned
	Approval(id string) json.RawMessage
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
	last, ok := d.Decoder().(approving)
	request, known := t.request.(responsesRequest)
	if !ok || !known {
		return &agent.Error{Code: codeGone, Message: "the question of " + t.a.name + " was asked before the gateway was restarted, and can't be answered any more", Retryable: true}
	}
	var items []any
	for _, q := range t.asked {
		a, err := t.out.Ask(ctx, q)
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
	// What follows is another response. The call may have been run by the time that a connection breaks, so nothing is repeated that
	// may have arrived.
	t.request, t.body, t.from, t.seen = request, body, nil, true
	t.answers++
	return nil
}
