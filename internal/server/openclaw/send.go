// Messages of the user, and stops.

package openclaw

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// sendParams are the parameters of chat.send. Others, such as the level of thinking, are the agent's own business here.
type sendParams struct {
	// The session, under the key that the client uses.
	SessionKey string `json:"sessionKey"`
	// The agent of the session.
	AgentID string `json:"agentId"`
	// The whole text so far, so that a client may have missed earlier events.
	Message string `json:"message"`
	// The key of the request that sent it.
	IdempotencyKey string `json:"idempotencyKey"`
	// Limits for, or content of, files.
	Attachments []attachment `json:"attachments"`
}

// attachment is a file in a message.
type attachment struct {
	// Which kind of frame or block it is.
	Type string `json:"type"`
	// The type of the file.
	MIMEType string `json:"mimeType"`
	// The name that the user gave the file.
	FileName string `json:"fileName"`
	// Base64, or a data URL.
	Content string `json:"content"`
}

// sendAck is the response to chat.send.
type sendAck struct {
	// The run that the frame is about.
	RunID string `json:"runId"`
	// Started, in_flight, ok or error.
	Status string `json:"status"`
	// For people.
	Summary string `json:"summary,omitempty"`
}

// reasonRepeated is the reason that clients know for a key that was used with another message.
const reasonRepeated = "chat-request-conflict"

// sendMessage answers chat.send.
func (c *connection) sendMessage(rq *request) (any, error) {
	var p sendParams
	if err := json.Unmarshal(rq.Params, &p); err != nil {
		return nil, server.Invalid("invalid chat.send params: %v", err)
	}
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
		payload, err := c.abort(&abortParams{SessionKey: p.SessionKey, AgentID: p.AgentID})
		if err != nil {
			return nil, err
		}
		return sendAck{RunID: p.IdempotencyKey, Status: "ok", Summary: payload.(*abortAck).summary()}, nil
	}
	text := gateway.CommandMessage{ID: p.IdempotencyKey, Text: p.Message, Source: source}
	for i := range p.Attachments {
		media, err := p.Attachments[i].media()
		if err != nil {
			return nil, err
		}
		text.Parts = append(text.Parts, event.Part{Kind: event.KindMedia, Media: media})
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
	ack, err := c.do(conversation.ID, gateway.Command{Type: gateway.CommandSend, Key: source + ":" + p.IdempotencyKey, Message: &text})
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

// abortParams are the parameters of chat.abort. Without a run, all runs of the session are stopped.
type abortParams struct {
	// The session, under the key that the client uses.
	SessionKey string `json:"sessionKey"`
	// The agent of the session.
	AgentID string `json:"agentId"`
	// The run that the frame is about.
	RunID string `json:"runId"`
}

// abortAck is the response to chat.abort.
type abortAck struct {
	// The request succeeded.
	OK bool `json:"ok"`
	// A person stopped it.
	Aborted bool `json:"aborted"`
	// The runs that were stopped.
	RunIDs []string `json:"runIds"`
}

// summary tells the user what a stop did.
func (a *abortAck) summary() string {
	if a.Aborted {
		return "stopped"
	}
	return "nothing is running"
}

// abort answers chat.abort. The events of the ends come before the response.
func (c *connection) abort(p *abortParams) (any, error) {
	k, err := c.parseKey(p.SessionKey, p.AgentID)
	if err != nil {
		return nil, err
	}
	result := &abortAck{OK: true, RunIDs: []string{}}
	conversation, err := c.find(c.ctx, k)
	if conversation == nil || err != nil {
		return result, err
	}
	turns, err := c.unfinishedRuns(conversation.ID, p.RunID)
	if err != nil {
		return nil, err
	}
	s, err := c.attach(k, conversation.ID)
	if err != nil {
		return nil, err
	}
	// Those in the queue are stopped first, so that none of them starts meanwhile.
	for _, turn := range slices.Backward(turns) {
		ack, err := c.do(conversation.ID, gateway.Command{Type: gateway.CommandStop, Turn: turn.turn})
		if err != nil {
			return nil, err
		}
		if !ack.AlreadyEnded {
			result.RunIDs = append(result.RunIDs, turn.run)
		}
	}
	result.Aborted = len(result.RunIDs) > 0
	return result, s.syncNow()
}

// runTurn is a run and its turn.
type runTurn struct{ run, turn string }

// unfinishedRuns returns the unfinished runs of a conversation, or the one with an id. A message that joined a running turn has that turn.
func (c *connection) unfinishedRuns(conversation, id string) (runs []runTurn, err error) {
	err = c.s.gw.ViewTranscript(c.ctx, c.principal(), conversation, func(t *transcript.Transcript) bool {
		runs = nil
		hostTurn := ""
		if m := t.Message(id); id != "" && m != nil {
			hostTurn = m.StateTurn
		}
		for _, turn := range t.Turns {
			run := runID(t, turn)
			if turn.Unfinished() && turn.Independent() && (id == "" || id == run || hostTurn == turn.ID) {
				runs = append(runs, runTurn{run, turn.ID})
			}
		}
		return true
	})
	return runs, err
}
