// Questions of a run that was abandoned. The server keeps the conversation blocked until they are refused.

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

// If a turn ends while it waits for an approval, the request stays open at the server, which then accepts no message before the request is
// answered. Users can't answer it in Leat any more, so Leat denies it together with the next message.

// errPending is the error of a run that didn't start because an earlier turn's approval is open.
var errPending = errors.New("letta: a question of an earlier turn is open")

// pendingRun reports whether a frame of the stream is the error for an open approval. The HTTP status can't report it, because
// the stream has already started. The server has no code for it, so its text is compared.
func pendingRun(data []byte) bool {
	var m struct {
		Type    string `json:"message_type"`
		Error   string `json:"error_type"`
		Message string `json:"message"`
	}
	return json.Unmarshal(data, &m) == nil && m.Type == "error_message" && m.Error == "internal_error" &&
		strings.HasPrefix(m.Message, "CONFLICT: ") && strings.Contains(m.Message, "waiting for approval")
}

// pendingApproval returns the id of the open request for approval that made the server reject a message with 409, or "" if err
// is another error.
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

// resendWithRefusal returns the request that sends the message again together with a denial of the open tool calls, which it
// stores before. If a running turn of the conversation waits for these calls it fails instead: the user may still answer there.
func (r *restAgent) resendWithRefusal(ctx context.Context, t *turn) (streamRequest, error) {
	if r.waitsForUser(t.in.Conversation) {
		return nil, &failure{code: codeBusy, message: "the Letta server accepts no message while a request for approval is open; answer it first", retryable: true}
	}
	// The error in the stream doesn't name the calls, so they are read from the history.
	var calls []string
	err := r.retry(ctx, t.emitter, func() (err error) {
		calls, err = r.openCalls(ctx, t.snapshot().Session)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(calls) == 0 {
		return nil, &failure{code: codeBusy, message: "the Letta server waits for an approval that is not in its history", retryable: true}
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

// waitsForUser reports whether a running turn of the conversation waits for an approval.
func (r *restAgent) waitsForUser(conversation string) bool {
	return slices.ContainsFunc(r.turnsOf(conversation), func(t *turn) bool { return len(t.approvals()) > 0 })
}

// refusal denies tool calls. Its otid is the same at each attempt, so the server drops repetitions.
func refusal(t *turn, calls []string) approvalMessage {
	m := approvalMessage{Type: "approval", Otid: otid(t.in, -1)}
	for _, c := range calls {
		m.Approvals = append(m.Approvals, approval{Type: "approval", Call: c, Reason: "the user did not answer"})
	}
	return m
}

// refusalOf denies the request for approval that the server has named. If its calls can't be read from the history it is denied by its
// id, an older form of the API that denies all of its calls at once.
func (r *restAgent) refusalOf(ctx context.Context, t *turn, request string) approvalMessage {
	calls, err := r.openCalls(ctx, t.snapshot().Session)
	m := refusal(t, calls)
	if len(calls) == 0 {
		t.emitter.Log().Info("the open request for approval is not in the Letta server's history; denying it by its id", "request", request, "error", err)
		no := false
		m.Request, m.Approve = request, &no
	}
	return m
}

// openCalls returns the tool calls for which a conversation's last message requests approval.
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
