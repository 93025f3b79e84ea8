// Messages of the user.

package openclaw

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// sendParams are the parameters of chat.send. Others, such as the level of thinking, are the agent's own business here.
type sendParams struct {
	SessionKey     string       `json:"sessionKey"`
	AgentID        string       `json:"agentId"`
	Message        string       `json:"message"`
	IdempotencyKey string       `json:"idempotencyKey"` // the id of the run, and of the message
	Attachments    []attachment `json:"attachments"`
}

// attachment is a file in a message.
type attachment struct {
	MIMEType string `json:"mimeType"`
	FileName string `json:"fileName"`
	Content  string `json:"content"` // base64, or a data URL
}

// sendAck is the response to chat.send.
type sendAck struct {
	RunID   string `json:"runId"`
	Status  string `json:"status"` // started, in_flight, ok or error
	Summary string `json:"summary,omitempty"`
}

// reasonRepeated is the reason that clients know for a key that was used with another message.
const reasonRepeated = "chat-request-conflict"

// sendMessage answers chat.send.
func (c *connection) sendMessage(rq *request, p *sendParams) (any, error) {
	switch {
	case p.IdempotencyKey == "":
		return nil, server.Invalid("invalid chat.send params: must have required property 'idempotencyKey'")
	case p.Message == "" && len(p.Attachments) == 0:
		return nil, server.Invalid("message or attachment required")
	}
	if err := event.CheckID("idempotencyKey", p.IdempotencyKey); err != nil {
		return nil, err
	}
	if strings.TrimSpace(p.Message) == "/stop" {
		ack, err := c.stop(&abortParams{SessionKey: p.SessionKey, AgentID: p.AgentID})
		if err != nil {
			return nil, err
		}
		return sendAck{RunID: p.IdempotencyKey, Status: "ok", Summary: ack.summary()}, nil
	}
	text, err := p.message()
	if err != nil {
		return nil, err
	}
	k, err := c.parseKey(p.SessionKey, p.AgentID)
	if err != nil {
		return nil, err
	}
	conversation, err := c.open(k)
	if err != nil {
		return nil, err
	}
	// The session is opened before the message is added, so that no event of its run is missed.
	s, err := c.attach(k, conversation.ID)
	if err != nil {
		return nil, err
	}
	ack, err := c.do(conversation.ID, gateway.Command{Type: gateway.CommandSend, Key: source + ":" + p.IdempotencyKey, Message: text})
	if rejection, ok := errors.AsType[*gateway.Rejection](err); ok && rejection.Reason == gateway.ReasonConflict {
		return nil, server.Errorf(http.StatusConflict, reasonRepeated, "%s", rejection.Message)
	}
	if err != nil {
		return nil, err
	}
	if ack.Repeated {
		return c.repeated(p.IdempotencyKey, ack.Turn)
	}
	if err := c.respond(rq.ID, sendAck{RunID: p.IdempotencyKey, Status: "started"}, nil); err != nil || ack.State != event.MessageSteered {
		return responded{err}, nil
	}
	// The answer is part of the running turn's. The protocol reports that by an end without a message.
	return responded{c.send("chat", chatEvent{RunID: p.IdempotencyKey, SessionKey: s.key.full, AgentID: s.key.agent, Seq: 1, State: "final"})}, nil
}

// message returns the message with its files.
func (p *sendParams) message() (*gateway.CommandMessage, error) {
	m := &gateway.CommandMessage{ID: p.IdempotencyKey, Text: p.Message, Source: source}
	for i := range p.Attachments {
		media, err := p.Attachments[i].media()
		if err != nil {
			return nil, err
		}
		m.Parts = append(m.Parts, event.Part{Kind: event.KindMedia, Media: media})
	}
	return m, nil
}

// repeated returns the response to a message that the conversation has.
func (c *connection) repeated(id, turn string) (any, error) {
	_, state, err := c.s.gw.Turn(c.ctx, c.principal(), gateway.ActionRead, turn)
	switch {
	case errors.Is(err, gateway.ErrNotFound):
		return sendAck{RunID: id, Status: "ok"}, nil // a truncate has removed it
	case err != nil:
		return nil, err
	case state.Unfinished():
		return sendAck{RunID: id, Status: "in_flight"}, nil
	case state.Outcome == event.Completed, state.Outcome == event.Cancelled:
		return sendAck{RunID: id, Status: "ok"}, nil
	}
	return sendAck{RunID: id, Status: "error", Summary: errorOf(&state)}, nil
}

// media returns a file as a part of a message. The gateway stores its bytes.
func (a *attachment) media() (*event.Media, error) {
	mime, data := a.MIMEType, a.Content
	if url, ok := strings.CutPrefix(data, "data:"); ok {
		head, content, ok := strings.Cut(url, ";base64,")
		if !ok {
			return nil, server.Invalid("attachment %q: send base64", a.FileName)
		}
		data = content
		if mime == "" {
			mime = head
		}
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(raw) == 0 {
		return nil, server.Invalid("attachment %q: its content must be base64", a.FileName)
	}
	if mime == "" || strings.ContainsAny(mime, ";, ") {
		mime = "application/octet-stream"
	}
	return &event.Media{
		URL: "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(raw), MIME: mime, Name: a.FileName, Size: int64(len(raw)),
	}, nil
}
