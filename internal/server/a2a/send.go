// Messages: new tasks, and answers to tasks that wait.

package a2a

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// metaContext is the key of a conversation's metadata with the id that a client has chosen for its context. A task that is read later has it again.
const metaContext = "a2aContext"

// sendParams are the params of a message. IsBlocking is of 0.3, and Immediately of 1.0; both wait if they are absent.
type sendParams struct {
	Message       message `json:"message"`
	Configuration struct {
		Immediately bool            `json:"returnImmediately"`
		IsBlocking  *bool           `json:"blocking"`
		Length      *int            `json:"historyLength"`
		Push        json.RawMessage `json:"taskPushNotificationConfig"`
		OldPush     json.RawMessage `json:"pushNotificationConfig"`
	} `json:"configuration"`
}

// target is the task of a request: a turn with its conversation, and the id of its context for the client.
type target struct {
	conversation, turn, context string
}

// decode reads the params of a request.
func (c *call) decode(v any) error {
	if len(c.request.Params) == 0 {
		return &rpcError{codeInvalidParams, "The request has no params."}
	}
	return server.Unmarshal(c.request.Params, v, false)
}

// begin finds or creates the task of a message.
func (c *call) begin(in *sendParams) (to target, err error) {
	if err := c.decode(in); err != nil {
		return to, err
	}
	if len(in.Configuration.Push) > 0 || len(in.Configuration.OldPush) > 0 {
		_, err := c.refusePush()
		return to, err
	}
	if in.Message.Task != "" {
		return c.answer(&in.Message)
	}
	m, err := c.commandMessage(&in.Message)
	if err != nil {
		return to, err
	}
	if to.context = in.Message.Context; to.context == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return to, err
		}
		to.context = id.String()
	}
	contextJSON, err := server.Marshal(to.context)
	if err != nil {
		return to, err
	}
	options := gateway.CreateOptions{Agent: c.agent, Metadata: map[string]json.RawMessage{metaContext: contextJSON}}
	if to.conversation, _, err = c.surface.chats.Create(c.ctx(), c.principal, to.context, options); err != nil {
		return to, err
	}
	// A message that the conversation has was sent again because its response was lost. Its task is the one that answers it.
	original, err := c.surface.chats.Message(c.ctx(), c.principal, to.conversation, m.ID)
	if err != nil {
		return to, err
	}
	if original != nil {
		to.turn = original.Turn
		return to, nil
	}
	ack, err := server.Do(c.ctx(), c.surface.gw, c.principal, to.conversation, gateway.Command{Type: gateway.CommandSend, Key: "a2a:" + m.ID, Agent: c.agent, Message: &m, Queue: true})
	to.turn = ack.Turn
	return to, err
}

// find returns the task with an id. Only the turns of conversations that the caller may read are tasks.
func (c *call) find(id string, action gateway.Action) (to target, err error) {
	if id == "" {
		return to, &rpcError{codeInvalidParams, "The request names no task."}
	}
	conversation, turn, err := c.surface.gw.Turn(c.ctx(), c.principal, action, id)
	if err != nil {
		return to, err
	}
	s, err := c.surface.gw.Conversation(c.ctx(), c.principal, action, conversation)
	if err != nil {
		return to, err
	}
	to = target{conversation, turn.ID, conversation}
	if id := s.Metadata[metaContext]; len(id) > 0 {
		to.context = chats.TextOf(id)
	}
	return to, nil
}

// answer answers the question of a task. The first of several answers counts. A message that is sent again, because its response was lost, answers
// nothing: the task may ask something else by now, which the client hasn't seen.
func (c *call) answer(m *message) (to target, err error) {
	if m.ID == "" {
		return to, &rpcError{codeInvalidParams, "The message has no messageId."}
	}
	if to, err = c.find(m.Task, gateway.ActionWrite); err != nil {
		return to, err
	}
	if m.Context != "" && m.Context != to.context && m.Context != to.conversation {
		return to, &rpcError{codeInvalidParams, "The task belongs to another context."}
	}
	_, turn, err := c.surface.gw.Turn(c.ctx(), c.principal, gateway.ActionRead, to.turn)
	if err != nil {
		return to, err
	}
	var command gateway.Command
	if len(turn.Requests) > 0 {
		if command, err = answerOf(m, &turn.Requests[0].Request); err != nil {
			return to, err
		}
		command.Request = turn.Requests[0].ID
	}
	// Without a request the command is refused, unless its key is known.
	command.Type, command.Turn, command.Key = gateway.CommandAnswer, to.turn, "a2a:"+to.turn+":"+m.ID
	_, err = server.Do(c.ctx(), c.surface.gw, c.principal, to.conversation, command)
	rejection, isRejected := errors.AsType[*gateway.Rejection](err)
	switch {
	case isRejected && rejection.Reason == gateway.ReasonConflict:
		return to, nil // the message was sent before, for this request or an earlier one
	case isRejected && command.Request == "":
		return to, &rpcError{codeUnsupported, "The task doesn't wait for a message; send one without the id of a task."}
	case isRejected && rejection.Reason == gateway.ReasonAnswered:
		return to, nil // by another client; the answer that follows is for that
	}
	return to, err
}

// answerOf returns the answer to a request in a message: data such as {"approved": true}, or a text.
func answerOf(m *message, r *event.Request) (gateway.Command, error) {
	var texts []string
	for _, p := range m.Parts {
		if len(p.Data) > 0 {
			return chats.PayloadAnswer(r, p.Data), nil
		}
		if p.Text != nil {
			texts = append(texts, *p.Text)
		}
	}
	if len(texts) == 0 {
		return gateway.Command{}, &rpcError{codeContentType, "An answer needs a text or data."}
	}
	return chats.OutputAnswer(r, strings.Join(texts, event.JoinBlank)), nil
}

// commandMessage returns a message of the user. Data becomes a part that agents get as JSON.
func (c *call) commandMessage(m *message) (gateway.CommandMessage, error) {
	result := gateway.CommandMessage{ID: m.ID, Source: source}
	if m.ID == "" {
		return result, &rpcError{codeInvalidParams, "The message has no messageId."}
	}
	if role := strings.ToLower(m.Role); role != "user" && m.Role != roleUser {
		return result, &rpcError{codeInvalidParams, "The role of a message must be that of the user."}
	}
	var texts []string
	for i := range m.Parts {
		p := &m.Parts[i]
		switch media := mediaOf(p); {
		case p.Text != nil:
			texts = append(texts, *p.Text)
		case media != nil:
			result.Parts = append(result.Parts, event.Part{Kind: event.KindMedia, Media: media})
		case len(p.Data) > 0:
			result.Parts = append(result.Parts, event.Part{Kind: event.KindData, Data: p.Data})
		default:
			return result, &rpcError{codeContentType, "A part has neither a text nor a file nor data."}
		}
	}
	result.Text = strings.Join(texts, event.JoinBlank)
	if result.Text == "" && len(result.Parts) == 0 {
		return result, &rpcError{codeInvalidParams, "The message is empty."}
	}
	return result, nil
}

// mediaOf returns the file of a part, or nil. Bytes are stored by the gateway, and an address is only passed on.
func mediaOf(p *part) *event.Media {
	f := file{URI: p.URL, Bytes: p.Raw, Name: p.Filename, MIME: p.MediaType}
	if p.File != nil {
		f = *p.File
	}
	switch {
	case f.Bytes != "":
		f.URI = "data:" + f.MIME + ";base64," + f.Bytes
	case !strings.HasPrefix(f.URI, "http://") && !strings.HasPrefix(f.URI, "https://"):
		return nil
	}
	return &event.Media{URL: f.URI, MIME: f.MIME, Name: f.Name}
}
