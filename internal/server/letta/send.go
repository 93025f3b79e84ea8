// Messages and answers of clients.

package letta

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// request is the body of a message. The client's skills and the settings of models are not read.
type request struct {
	Messages  []sentMessage      `json:"messages"`
	Input     json.RawMessage    `json:"input"`
	Streaming *bool              `json:"streaming"`
	Pings     *bool              `json:"include_pings"`
	Tools     []agent.ClientTool `json:"client_tools"`
	// Agent is that of the default conversation.
	Agent string `json:"agent_id"`
}

// sentMessage is a message that a client sends: one of the user, or the answers to calls.
type sentMessage struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Otid      string          `json:"otid"`
	Approvals []approval      `json:"approvals"`
	// The older form of a single approval.
	Approve *bool  `json:"approve"`
	Request string `json:"approval_request_id"`
	Reason  string `json:"reason"`
}

// target is a run to stream. A response to an answer continues the run after the request that was answered.
type target struct {
	conversation, turn string
	after              int64 // seq_id of the last frame that the client has
	// next is the turn of a message that came with the answer, or "". Its run follows in the same response.
	next     string
	hasPings bool
	isAsker  bool
}

// parse reads the body of a message: answers, messages of the user, or both. Letta Code sends both if its user types something instead of an answer.
func parse(r *http.Request) (rq request, answers *sentMessage, messages []sentMessage, err error) {
	if err := server.Decode(r, &rq); err != nil {
		return rq, nil, nil, err
	}
	if len(rq.Messages) == 0 && len(rq.Input) > 0 {
		rq.Messages = []sentMessage{{Role: "user", Content: rq.Input}}
	}
	if len(rq.Messages) == 0 {
		return rq, nil, nil, server.Invalid("a message is needed")
	}
	messages = rq.Messages
	if messages[0].isAnswer() {
		answers, messages = &messages[0], messages[1:]
	}
	for _, m := range messages {
		if m.isAnswer() {
			return rq, nil, nil, server.Invalid("answers must be in the first message")
		}
		if m.Role != "" && m.Role != "user" {
			return rq, nil, nil, server.Invalid("a message of the role %q can't be sent", m.Role)
		}
	}
	return rq, answers, messages, nil
}

// isAnswer reports whether a message has answers to calls.
func (m *sentMessage) isAnswer() bool { return m.Type == "approval" || len(m.Approvals) > 0 }

// send answers POST /v1/conversations/{conversation}/messages. It streams unless the client says otherwise.
func (s *surface) send(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	return s.sendTo(w, r, p, func(ctx context.Context, agent string) (string, error) {
		a, err := s.directAgent(r, p, agent)
		if err != nil {
			return "", err
		}
		if a != nil {
			return s.chats.Open(ctx, p, ownChat(a.Name), a.Name)
		}
		c, err := s.lookUp(r, p, gateway.ActionWrite)
		return c.ID, err
	}, true)
}

// sendToAgent answers POST /v1/agents/{agent}/messages, with the whole answer unless the client wants a stream.
func (s *surface) sendToAgent(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	return s.toAgent(w, r, p, false)
}

// streamToAgent answers POST /v1/agents/{agent}/messages/stream.
func (s *surface) streamToAgent(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	return s.toAgent(w, r, p, true)
}

// toAgent sends a message to the conversation that an agent has for clients that name none.
func (s *surface) toAgent(w http.ResponseWriter, r *http.Request, p gateway.Principal, isStream bool) error {
	a, err := s.find(p, r.PathValue("agent"))
	if err != nil {
		return err
	}
	open := func(ctx context.Context, _ string) (string, error) {
		return s.chats.Open(ctx, p, ownChat(a.Name), a.Name)
	}
	return s.sendTo(w, r, p, open, isStream)
}

// sendTo adds a message or answers to a conversation, and responds with the run. open returns the conversation; it gets the id of the agent in the body.
func (s *surface) sendTo(w http.ResponseWriter, r *http.Request, p gateway.Principal, open func(ctx context.Context, agent string) (string, error), isStream bool) error {
	rq, answers, messages, err := parse(r)
	if err != nil {
		return err
	}
	// AddViewer comes first: if the viewer limit refuses the request, no message is added.
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	to := target{hasPings: rq.Pings == nil || *rq.Pings, isAsker: isAsker(r, rq.Tools)}
	if to.conversation, err = open(r.Context(), rq.Agent); err != nil {
		return err
	}
	if answers != nil {
		if err := s.answer(r.Context(), p, answers, &to); err != nil {
			return err
		}
	}
	if len(messages) > 0 {
		if isDone, err := s.add(w, r, p, messages, offeredTools(rq.Tools), &to); err != nil || isDone {
			return err
		}
	}
	if rq.Streaming != nil {
		isStream = *rq.Streaming || isStream && strings.HasSuffix(r.URL.Path, "/stream")
	}
	if isStream {
		return s.stream(w, r, p, to)
	}
	return s.respond(w, r, p, to)
}

// pendingApproval is the detail of a refusal while a turn waits. Letta Code then sends the answers first.
type pendingApproval struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Request string `json:"pending_request_id"`
}

// add adds a message of the user, and finds the turn that answers it. While a turn waits for an answer, it responds with a conflict, which it reports as
// done. A message that comes with an answer is queued instead, since the answer was given.
//
// Several messages become one with the id of the last, because a run answers one.
func (s *surface) add(w http.ResponseWriter, r *http.Request, p gateway.Principal, messages []sentMessage, tools []agent.ClientTool, to *target) (isDone bool, err error) {
	text, media, err := s.newContent(r.Context(), p, to.conversation, messages)
	if err != nil {
		return false, err
	}
	m := &messages[len(messages)-1]
	turn := &to.turn
	if to.turn != "" {
		turn = &to.next
	}
	original, err := s.chats.Message(r.Context(), p, to.conversation, m.Otid)
	if err != nil {
		return false, err
	}
	if original != nil && original.Text == text && original.Turn != "" {
		*turn = original.Turn // the client has lost the response
		return false, nil
	}
	if to.turn == "" {
		request, err := s.openRequest(r.Context(), p, to.conversation)
		if err != nil {
			return false, err
		}
		if request != "" {
			return true, writeJSON(w, http.StatusConflict, failure{pendingApproval{
				"PENDING_APPROVAL", "Cannot send a new message: The agent is waiting for approval on a tool call.", request,
			}})
		}
	}
	command := gateway.Command{Type: gateway.CommandSend, Queue: true, Tools: tools, Message: &gateway.CommandMessage{ID: m.Otid, Source: source, Text: text, Parts: media}}
	ack, err := server.Do(r.Context(), s.gw, p, to.conversation, command)
	*turn = ack.Turn
	return false, err
}

// openRequest returns the id of the message of a request that is open in a conversation, or "".
func (s *surface) openRequest(ctx context.Context, p gateway.Principal, conversation string) (id string, err error) {
	err = s.gw.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool {
		for _, turn := range t.Turns {
			if turn.Unfinished() && turn.Independent() && len(turn.Requests) > 0 {
				id = requestID(turn.ID, turn.Requests[0].ID)
			}
		}
		return true
	})
	return id, err
}
