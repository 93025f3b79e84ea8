package letta

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/leat-dev/leat/agent"
)

// sendRequest is the body of a request that sends messages or approvals to a conversation. The response is a stream.
type sendRequest struct {
	Messages   []any  `json:"messages"`
	Streaming  bool   `json:"streaming"`
	Tokens     bool   `json:"stream_tokens"`
	Pings      bool   `json:"include_pings"`
	Background bool   `json:"background"`
	Agent      string `json:"agent_id,omitempty"`
}

// userMessage is a user's message. The server drops a message whose otid it has seen in a background run, and returns that run's stream.
type userMessage struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content any    `json:"content"`
	Otid    string `json:"otid"`
}

// approvalMessage answers the tool calls that a run waits for. The server starts another run with it, which continues the turn.
type approvalMessage struct {
	Type      string     `json:"type"`
	Approvals []approval `json:"approvals,omitempty"`
	// Request and Approve are an older form that answers all tool calls of a message at once.
	Request string `json:"approval_request_id,omitempty"`
	Approve *bool  `json:"approve,omitempty"`
	Otid    string `json:"otid"`
}

// approval is the decision on one tool call. The model reads the reason.
type approval struct {
	Type    string `json:"type"`
	Call    string `json:"tool_call_id"`
	Approve bool   `json:"approve"`
	Reason  string `json:"reason,omitempty"`
}

// otid returns the id of the turn's n-th set of approvals. Like clientID it is the same after a restart, so that the server
// recognizes a repetition.
func otid(in agent.Input, n int) string { return clientID(in, fmt.Sprint("approval-", n)) }

// streamRequest sends a request whose response is a stream of the turn. It may be called again after it failed.
type streamRequest func(ctx context.Context) (*http.Response, error)

// send returns the request that sends messages to the turn's conversation.
func (r *restAgent) send(t *turn, messages ...any) streamRequest {
	return func(ctx context.Context) (*http.Response, error) {
		s := t.snapshot().Session
		body := sendRequest{Messages: messages, Streaming: true, Tokens: !r.cfg.Steps, Pings: true, Background: r.cfg.Background}
		if s.Conversation == ownConversation {
			body.Agent = s.Agent
		}
		if raw, err := json.Marshal(body); err == nil {
			t.emitter.CaptureSent(raw)
		}
		return r.call(ctx, http.MethodPost, nil, body, "conversations", s.Conversation, "messages")
	}
}

// sendMessage returns the request that sends the turn's message. If an earlier turn has left an approval open, the request denies it
// first, or together with the message once its calls are known (see refuse_rest.go).
func (r *restAgent) sendMessage(t *turn, content any) streamRequest {
	m := userMessage{Type: "message", Role: "user", Content: content, Otid: clientID(t.in, t.in.Message.ID)}
	return func(ctx context.Context) (*http.Response, error) {
		if calls := t.snapshot().RefusedCalls; len(calls) > 0 {
			return r.send(t, refusal(t, calls), m)(ctx)
		}
		res, err := r.send(t, m)(ctx)
		if pending := pendingApproval(err); pending != "" && !r.waitsForUser(t.in.Conversation) {
			return r.send(t, r.refusalOf(ctx, t, pending), m)(ctx)
		}
		return res, err
	}
}

// resumeRun returns the request that reads the turn's run after the last chunk that was decoded.
func (r *restAgent) resumeRun(t *turn) streamRequest {
	return func(ctx context.Context) (*http.Response, error) {
		run, seq := t.position()
		if seq == 0 {
			return r.readRun(ctx, run)
		}
		return r.call(ctx, http.MethodPost, nil, streamFrom(seq), "runs", run, "stream")
	}
}
