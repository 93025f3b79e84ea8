// Messages and answers of clients.

package letta

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// request is the body of a message. The tools of the client, its skills and the settings of models are not read: an agent asks for a tool of the
// client by its name.
type request struct {
	Messages  []sentMessage   `json:"messages"`
	Input     json.RawMessage `json:"input"`
	Streaming *bool           `json:"streaming"`
	Pings     *bool           `json:"include_pings"`
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

// approval is the answer to a call: a decision, or the result of a tool that the client has run.
type approval struct {
	Type    string          `json:"type"` // approval or tool
	CallID  string          `json:"tool_call_id"`
	Approve bool            `json:"approve"`
	Reason  string          `json:"reason"`
	Return  json.RawMessage `json:"tool_return"`
	Status  string          `json:"status"`
}

// contentPart is a part of a message's content.
type contentPart struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`
}

// target is a run to stream. A response to an answer continues the run after its last request.
type target struct {
	conversation, turn string
	after              int64 // seq_id of the last frame that the client has
	hasPings           bool
}

// parse reads the body of a message.
func parse(r *http.Request) (rq request, last sentMessage, err error) {
	if err := server.Decode(r, &rq); err != nil {
		return rq, last, err
	}
	if len(rq.Messages) == 0 && len(rq.Input) > 0 {
		rq.Messages = []sentMessage{{Role: "user", Content: rq.Input}}
	}
	if len(rq.Messages) != 1 {
		// Letta takes several. A run couldn't say which of them it answers, and its clients send one.
		return rq, last, server.Invalid("exactly one message is needed")
	}
	return rq, rq.Messages[0], nil
}

// send answers POST /v1/conversations/{conversation}/messages. It streams unless the client says otherwise.
func (s *surface) send(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	c, err := s.lookUp(r, p, gateway.ActionWrite)
	if err != nil {
		return err
	}
	return s.sendTo(w, r, p, func(context.Context) (string, error) { return c.ID, nil }, true)
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
	open := func(ctx context.Context) (string, error) { return s.chats.Open(ctx, p, ownChat(a.Name), a.Name) }
	return s.sendTo(w, r, p, open, isStream)
}

// sendTo adds a message or answers to a conversation, and responds with the run.
func (s *surface) sendTo(w http.ResponseWriter, r *http.Request, p gateway.Principal, open func(context.Context) (string, error), isStream bool) error {
	rq, last, err := parse(r)
	if err != nil {
		return err
	}
	// AddViewer comes first: if the viewer limit refuses the request, no message is added.
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	to := target{hasPings: rq.Pings == nil || *rq.Pings}
	if to.conversation, err = open(r.Context()); err != nil {
		return err
	}
	if last.Type == "approval" || len(last.Approvals) > 0 {
		err = s.answer(r.Context(), p, &last, &to)
	} else {
		err = s.add(w, r, p, &last, &to)
	}
	if err != nil || to.turn == "" {
		return err // it was responded to
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

// add adds a message of the user, and finds the turn that answers it. While a turn waits for an answer, it responds with a conflict.
func (s *surface) add(w http.ResponseWriter, r *http.Request, p gateway.Principal, m *sentMessage, to *target) error {
	if m.Role != "" && m.Role != "user" {
		return server.Invalid("a message of the role %q can't be sent", m.Role)
	}
	text, media, err := contentOf(m.Content)
	if err != nil {
		return err
	}
	original, err := s.chats.Message(r.Context(), p, to.conversation, m.Otid)
	if err != nil {
		return err
	}
	if original != nil && original.Text == text && original.Turn != "" {
		to.turn = original.Turn // the client has lost the response
		return nil
	}
	request, err := s.openRequest(r.Context(), p, to.conversation)
	if err != nil {
		return err
	}
	if request != "" {
		return writeJSON(w, http.StatusConflict, failure{pendingApproval{
			"PENDING_APPROVAL", "Cannot send a new message: The agent is waiting for approval on a tool call.", "message-" + request,
		}})
	}
	command := gateway.Command{Type: gateway.CommandSend, Queue: true, Message: &gateway.CommandMessage{ID: m.Otid, Source: source, Text: text, Parts: media}}
	ack, err := server.Do(r.Context(), s.gw, p, to.conversation, command)
	to.turn = ack.Turn
	return err
}

// openRequest returns the id of a request that is open in a conversation, or "".
func (s *surface) openRequest(ctx context.Context, p gateway.Principal, conversation string) (id string, err error) {
	err = s.gw.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool {
		for _, turn := range t.Turns {
			if turn.Unfinished() && turn.Independent() && len(turn.Requests) > 0 {
				id = turn.Requests[0].ID
			}
		}
		return true
	})
	return id, err
}

// contentOf returns the text and the files of a message. Several texts are lines of one. Reminders of Letta Code to its agents are left out: they
// would be shown to people as their own words.
func contentOf(raw json.RawMessage) (text string, media []event.Part, err error) {
	if err := json.Unmarshal(raw, &text); err == nil {
		return text, nil, nil
	}
	var parts []contentPart
	if err := server.Unmarshal(raw, &parts, false); err != nil {
		return "", nil, server.Invalid("the content of a message must be a text or a list of parts")
	}
	var texts []string
	for _, p := range parts {
		switch {
		case p.Type == "text" && isReminder(p.Text):
		case p.Type == "text":
			texts = append(texts, p.Text)
		case p.Type == "image" && p.Source.Type == "base64":
			media = append(media, event.Part{Kind: event.KindMedia, Media: &event.Media{URL: "data:" + p.Source.MediaType + ";base64," + p.Source.Data, MIME: p.Source.MediaType}})
		case p.Type == "image" && p.Source.Type == "url":
			media = append(media, event.Part{Kind: event.KindMedia, Media: &event.Media{URL: p.Source.URL}})
		default:
			return "", nil, server.Invalid("a part of type %q can't be sent here", p.Type)
		}
	}
	return strings.Join(texts, "\n"), media, nil
}

// isReminder reports whether a text is one that Letta Code added to the person's: they are elements of these names.
func isReminder(text string) bool {
	text = strings.TrimSpace(text)
	for _, name := range []string{"system-reminder", "system-alert"} {
		if strings.HasPrefix(text, "<"+name+">") && strings.HasSuffix(text, "</"+name+">") {
			return true
		}
	}
	return false
}

// answer passes on answers to calls, and finds where the response to them continues. An answer that another client has given already counts.
func (s *surface) answer(ctx context.Context, p gateway.Principal, m *sentMessage, to *target) error {
	if len(m.Approvals) == 0 && m.Approve != nil {
		m.Approvals = []approval{{Type: "approval", CallID: strings.TrimPrefix(m.Request, "message-"), Approve: *m.Approve, Reason: m.Reason}}
	}
	turns, err := s.chats.Unfinished(ctx, p, to.conversation)
	if err != nil {
		return err
	}
	var commands []gateway.Command
	for _, turn := range turns {
		_, t, err := s.gw.Turn(ctx, p, gateway.ActionRead, turn)
		if err != nil {
			return err
		}
		for _, r := range t.Requests {
			if c, ok := s.answerTo(ctx, p, to.conversation, &r.Request, m.Approvals); ok {
				c.Type, c.Turn, c.Request = gateway.CommandAnswer, turn, r.ID
				commands = append(commands, c)
			}
		}
	}
	if len(commands) == 0 {
		return server.Errorf(http.StatusBadRequest, gateway.ReasonAnswered, "no tool call is waiting for this answer")
	}
	to.turn = commands[0].Turn
	// The place is found before the answers are given: the agent may end the turn, and the log may then be compacted.
	if to.after, err = s.lastRequest(ctx, p, to.conversation, to.turn); err != nil {
		return err
	}
	for _, c := range commands {
		_, err := server.Do(ctx, s.gw, p, to.conversation, c)
		if rejection, ok := errors.AsType[*gateway.Rejection](err); ok && rejection.Reason == gateway.ReasonAnswered {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answerTo returns the answer to a request in the answers to calls. The call is named by the id that the client got, see [requestOf].
func (s *surface) answerTo(ctx context.Context, p gateway.Principal, conversation string, r *event.Request, answers []approval) (c gateway.Command, ok bool) {
	id := r.ID
	err := s.gw.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool {
		id = requestOf(t.Messages, r).Call.ID
		return true
	})
	if err != nil {
		return c, false
	}
	for _, a := range answers {
		switch {
		case a.CallID != id && a.CallID != r.ID:
		case a.Type == "tool" && a.Status == "error":
			return gateway.Command{Text: chats.ErrorAnswer(chats.TextOf(a.Return))}, true
		case a.Type == "tool":
			return chats.OutputAnswer(r, chats.TextOf(a.Return)), true
		case !a.Approve && r.Kind == event.RequestApproval:
			return gateway.Command{Decision: event.Deny, Text: a.Reason}, true
		case r.Kind == event.RequestApproval:
			return gateway.Command{Decision: event.Approve}, true
		default:
			return chats.OutputAnswer(r, cmp.Or(a.Reason, map[bool]string{true: "yes", false: "no"}[a.Approve])), true
		}
	}
	return c, false
}
