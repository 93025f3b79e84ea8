package letta

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
)

// If a turn ends while it is waiting for a person, its question stays open at the server, and the server accepts no message until the question
// is answered. The question can't be answered in Leat any longer, so Leat refuses it together with the next message.

// errPending is the error of a run that did not begin because a question of an earlier turn is open.
var errPending = errors.New("letta: a question of an earlier turn is open")

// pendingRun reports whether a frame of the stream has the error for an open question. The HTTP status can't report it, because the stream has
// already begun.
func pendingRun(data []byte) bool {
	var m struct {
		Type    string `json:"message_type"`
		Error   string `json:"error_type"`
		Message string `json:"message"`
	}
	return json.Unmarshal(data, &m) == nil && m.Type == "error_message" && m.Error == "internal_error" &&
		strings.HasPrefix(m.Message, "CONFLICT: ") && strings.Contains(m.Message, "waiting for approval")
}

// pendingApproval returns the request that keeps a conversation from taking a message, "" where that is not the matter.
func pendingApproval(err error) string {
	var f *failure
	if !errors.As(err, &f) || f.status != http.StatusConflict {
		return ""
	}
	var body struct {
		Detail struct {
			Code    string `json:"code"`
			Pending string `json:"pending_request_id"`
		} `json:"detail"`
	}
	if json.Unmarshal(f.body, &body) != nil || body.Detail.Code != "PENDING_APPROVAL" {
		return ""
	}
	return body.Detail.Pending
}

// resendWithRefusal returns the request for the message of a run that did not begin, noted as one that comes with a refusal.
func (r *restAgent) resendWithRefusal(ctx context.Context, t *turn) (streamRequest, error) {
	if r.waitsForUser(t.in.Conversation) {
		return nil, &failure{code: codeBusy, message: "the Letta server takes no message while a question is open; answer it first", retryable: true}
	}
	var calls []string
	err := r.retry(ctx, t.emitter, func() (err error) {
		calls, err = r.openCalls(ctx, t.snapshot().Session)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(calls) == 0 {
		return nil, &failure{code: codeBusy, message: "the Letta server waits for an answer to a question that is not in its history", retryable: true}
	}
	content, err := content(ctx, t.in.Message, t.emitter)
	if err != nil {
		return nil, err
	}
	err = t.update(func() []event.Event {
		t.lettaDecoder.ContinueTurn()
		t.saved.RefusedCalls = calls
		t.saved.AfterRun, _ = t.lettaDecoder.Cursor()
		return nil
	})
	return r.sendMessage(t, content), err
}

// waitsForUser reports whether a turn of a conversation waits for a person, who may still answer.
func (r *restAgent) waitsForUser(conversation string) bool {
	return slices.ContainsFunc(r.turnsOf(conversation), func(t *turn) bool { return len(t.approvals()) > 0 })
}

// refusal refuses calls.
func refusal(t *turn, calls []string) approvalMessage {
	m := approvalMessage{Type: "approval", Otid: otid(t.in, -1)}
	for _, c := range calls {
		m.Approvals = append(m.Approvals, approval{Type: "approval", Call: c, Reason: "nobody answered"})
	}
	return m
}

// refusalOf refuses the question that the server has named.
func (r *restAgent) refusalOf(ctx context.Context, t *turn, request string) approvalMessage {
	calls, err := r.openCalls(ctx, t.snapshot().Session)
	m := refusal(t, calls)
	if len(calls) == 0 {
		t.emitter.Log().Info("the open question is not in the Letta server's history; it is refused by its id", "request", request, "error", err)
		no := false
		m.Request, m.Approve = request, &no
	}
	return m
}

// openCalls returns the calls of the question that a conversation ends with.
func (r *restAgent) openCalls(ctx context.Context, s session) ([]string, error) {
	query, path := s.history()
	query.Set("order", "desc")
	query.Set("limit", "1")
	rows, err := r.storedPage(ctx, query, path...)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(rows, func(m *storedMessage) bool { return m.Type == rowRequest })
	if i < 0 {
		return nil, nil
	}
	return rows[i].calls(), nil
}
