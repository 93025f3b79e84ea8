// Lists of items: pages, the items of a conversation, and what a response answers.
//
// A conversation is listed from its transcript, and not from its responses, so its messages that came from other clients are items too.

package responses

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/transcript"
)

// The sizes of pages, as OpenAI's.
const (
	defaultPage = 20
	maxPage     = 100
)

// page is a page of a list. Clients stop after a page without has_more.
type page struct {
	Object  string  `json:"object"`
	Data    []item  `json:"data"`
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

// newPage returns a page of items, which are the oldest first.
func newPage(items []item, hasMore bool) page {
	// An empty list must not be null: the clients iterate over it without a check.
	l := page{Object: "list", Data: items, HasMore: hasMore}
	if l.Data == nil {
		l.Data = []item{}
	}
	if n := len(items); n > 0 {
		l.FirstID, l.LastID = &items[0].ID, &items[n-1].ID
	}
	return l
}

// respondPage responds with the page of items, which are the oldest first, that the query names.
func respondPage(w http.ResponseWriter, r *http.Request, items []item) error {
	q := r.URL.Query()
	switch order := q.Get("order"); order {
	case "", "desc":
		slices.Reverse(items)
	case "asc":
	default:
		return server.Invalid("order: unknown %q; use asc or desc", order)
	}
	limit := defaultPage
	if v := q.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > maxPage {
			return server.Invalid("limit: %q is not between 1 and %d", v, maxPage)
		}
		limit = n
	}
	if after := q.Get("after"); after != "" {
		i := slices.IndexFunc(items, func(entry item) bool { return entry.ID == after })
		if i < 0 {
			return server.Invalid("after: no item has the id %q", after)
		}
		items = items[i+1:]
	}
	// The clients ask for another page only if has_more is true, whatever the length of this one.
	hasMore := len(items) > limit
	return server.Respond(w, newPage(items[:min(limit, len(items))], hasMore), nil)
}

// itemsOf returns the messages of a conversation, and what its agents have done, as items.
func itemsOf(t *transcript.Transcript) []item {
	var items []item
	for _, m := range t.Messages {
		if m.Role != event.Assistant || m.Turn == "" {
			items = append(items, messageItem(m))
			continue
		}
		for _, p := range m.Parts {
			s := partState{key: partKey{m.ID, p.ID}, kind: p.Kind}
			switch {
			case p.Kind == event.KindTool:
				if isOver(p) {
					items = append(items, *toolItem(s.id(), p))
				}
			case isText(p.Kind):
				status := statusCompleted
				if !p.Final && !m.Final {
					status = statusInProgress
				}
				items = append(items, *s.item(p.Text(event.Text), status))
			}
		}
	}
	return items
}

// messageItem returns a message that no agent of Leat has written.
func messageItem(m *transcript.Message) item {
	parts := []content{}
	for _, p := range m.Parts {
		switch {
		case p.Kind == event.KindText && m.Role == event.Assistant:
			parts = append(parts, outputText(p.Text(event.Text)))
		case p.Kind == event.KindText:
			parts = append(parts, content{Type: "input_text", Text: p.Text(event.Text)})
		case p.Kind == event.KindMedia && p.Media != nil && p.Media.URL != "":
			parts = append(parts, content{Type: "input_image", ImageURL: p.Media.URL, Detail: "auto"})
		}
	}
	return item{ID: prefixMessage + m.ID, Type: "message", Status: statusCompleted, Role: string(m.Role), Content: &parts}
}

// replyItems returns the answers with which a response begins.
func (s *surface) replyItems(ctx context.Context, p gateway.Principal, to target) ([]item, error) {
	c, err := s.gw.Conversation(ctx, p, gateway.ActionRead, to.conversation)
	if err != nil {
		return nil, err
	}
	requests := map[string]*event.Request{}
	var items []item
	// Several answers may begin a response: those that follow each other in the log, up to the one in its id.
	isFound := false
	var current *answer.Answer
	err = follow.Answer{
		Op: func(a *answer.Answer, op *answer.Op) error {
			current = a
			switch {
			case op.Type == event.TurnResume:
				items = append(items, replyItem(to.turn, requests[op.Body.Answer.ID], op.Body.Answer))
				if isFound = op.Number == to.from; isFound {
					return errCurrent
				}
				return nil
			case op.Type == event.TurnWait:
				requests[op.Body.Request.ID] = op.Body.Request
			}
			items = nil
			return nil
		},
		Flush: func() error {
			if current != nil && current.Upto() >= c.Head {
				return errCurrent
			}
			return nil
		},
	}.Follow(ctx, s.gw, p, to.conversation, to.turn, -1)
	if err != nil && !errors.Is(err, errCurrent) {
		return nil, err
	}
	if !isFound {
		return nil, errNoResponse
	}
	return items, nil
}

// replyItem returns an answer as the item that clients send for it.
func replyItem(turn string, r *event.Request, y *event.Answer) item {
	text := cmp.Or(y.Text, string(y.Decision))
	id := requestID(prefixOutput, turn, y.ID)
	switch {
	case r != nil && r.Kind == event.RequestApproval:
		isApproved := y.Decision == event.Approve
		return item{ID: id, Type: "mcp_approval_response", Approval: requestID(prefixApproval, turn, y.ID), Approve: &isApproved, Reason: y.Text}
	case r != nil && r.Tool == "":
		return item{ID: id, Type: "message", Status: statusCompleted, Role: string(event.User), Content: &[]content{{Type: "input_text", Text: text}}}
	}
	return item{ID: id, Type: "function_call_output", Status: statusCompleted, CallID: requestID(prefixCall, turn, y.ID), Output: &text}
}
