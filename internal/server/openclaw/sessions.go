// Changes of sessions.

package openclaw

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/internal/store/journal"
)

// createParams are the parameters of sessions.create.
type createParams struct {
	Key     string `json:"key"`
	AgentID string `json:"agentId"`
	Label   string `json:"label"`
}

// createSession answers sessions.create. Without a key, it makes a new conversation.
func (c *connection) createSession(p *createParams) (any, error) {
	agent := c.s.defaultAgent(c.principal())
	if p.AgentID != "" {
		agent = c.agentName(p.AgentID)
	}
	var s *journal.Summary
	var err error
	if p.Key != "" {
		s, err = c.createKeyed(p.Key, agent)
	} else {
		s, err = c.createNew(agent, p.Label)
	}
	if err != nil {
		return nil, err
	}
	row := c.row(s)
	return map[string]any{"ok": true, "key": row.Key, "sessionId": row.SessionID, "entry": row}, c.changed(row.Key, row.AgentID, "create")
}

// createKeyed returns the conversation of a key, which may exist already.
func (c *connection) createKeyed(key, agent string) (*journal.Summary, error) {
	k, err := c.parseKey(key, agent)
	if err != nil {
		return nil, err
	}
	return c.open(k)
}

// createNew makes a conversation.
func (c *connection) createNew(agent, title string) (*journal.Summary, error) {
	if !c.hasAgent(agent) {
		return nil, server.Errorf(http.StatusNotFound, gateway.ReasonUnknownAgent, "unknown agent %q", agent)
	}
	ctx, cancel := server.CommandContext(c.ctx)
	defer cancel()
	s, _, err := c.s.gw.Create(ctx, c.principal(), gateway.CreateOptions{Agent: agent, Title: title})
	return &s, err
}

// patchParams are the fields of a session that can be changed here. Others get an error, because the client would show them as changed.
type patchParams struct {
	keyParams
	fields map[string]json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *patchParams) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &p.keyParams); err != nil {
		return err
	}
	return json.Unmarshal(b, &p.fields)
}

// patchSession answers sessions.patch. Only the label can be changed; how much an agent shows is always everything.
func (c *connection) patchSession(p *patchParams) (any, error) {
	k, s, err := c.existing(&p.keyParams)
	if err != nil {
		return nil, err
	}
	title, isNamed := s.Title, false
	for name, value := range p.fields {
		switch name {
		case "key", "sessionKey", "agentId", "verboseLevel", "expectedSessionId":
		case "label", "displayName":
			title, isNamed = "", true
			if string(value) != "null" && json.Unmarshal(value, &title) != nil {
				return nil, server.Invalid("invalid sessions.patch params: %s must be a string", name)
			}
		default:
			return nil, server.Invalid("%s can't be changed here", name)
		}
	}
	if isNamed {
		if _, err := c.do(s.ID, gateway.Command{Type: gateway.CommandUpdate, Title: &title}); err != nil {
			return nil, err
		}
		s.Title = title
	}
	return map[string]any{"ok": true, "key": k.full, "path": provider, "entry": rowOf(k, s)}, c.changed(k.full, k.agent, "patch")
}

// deleteSession answers sessions.delete.
func (c *connection) deleteSession(p *keyParams) (any, error) {
	k, s, err := c.parse(p)
	if err != nil {
		return nil, err
	}
	if k.name == nameMain {
		return nil, server.Invalid("the main session can't be deleted; reset it")
	}
	if s != nil {
		if _, err := c.do(s.ID, gateway.Command{Type: gateway.CommandDelete}); err != nil {
			return nil, err
		}
		if err := c.changed(k.full, k.agent, "delete"); err != nil {
			return nil, err
		}
	}
	return map[string]any{"ok": true, "key": k.full, "deleted": s != nil, "archived": []string{}}, nil
}

// resetSession answers sessions.reset: it stops the runs of a session and removes its messages. The events of the ends come before the
// response.
func (c *connection) resetSession(p *keyParams) (any, error) {
	k, conversation, err := c.parse(p)
	if err != nil {
		return nil, err
	}
	if conversation == nil {
		id, err := derivedID(c.principal(), k.full, 0)
		return map[string]any{"ok": true, "key": k.full, "entry": emptyRow(k, id)}, err
	}
	s, err := c.attach(k, conversation.ID)
	if err != nil {
		return nil, err
	}
	if err := (chats.Chats{Gateway: c.s.gw}).Truncate(c.ctx, c.principal(), conversation.ID, ""); err != nil {
		return nil, err
	}
	if err := s.syncNow(); err != nil {
		return nil, err
	}
	conversation.Open = nil
	return map[string]any{"ok": true, "key": k.full, "entry": rowOf(k, conversation)}, c.changed(k.full, k.agent, "reset")
}

// sessionChanged is the payload of sessions.changed for a change that needs no row.
type sessionChanged struct {
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId"`
	Reason     string `json:"reason"`
	TS         int64  `json:"ts"` // epoch milliseconds
}

// changed sends the event that a session was changed.
func (c *connection) changed(key, agent, reason string) error {
	return c.send("sessions.changed", sessionChanged{key, agent, reason, time.Now().UnixMilli()})
}
