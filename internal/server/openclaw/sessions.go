// The list of sessions, and changes to it.

package openclaw

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// maxListed is how many sessions a list can have. Older ones are found in the dashboard.
	maxListed = 2000
	// defaultListed is how many sessions a response has.
	defaultListed = 200
	listPage      = 200
)

// sessionRow is a session in a list.
type sessionRow struct {
	// The key of the session.
	Key string `json:"key"`
	// Always a conversation of one user with an agent.
	Kind string `json:"kind"`
	// The agent of the session.
	AgentID string `json:"agentId"`
	// The title of the conversation.
	DisplayName string `json:"displayName,omitempty"`
	// The title again, under the name that can be changed.
	Label string `json:"label,omitempty"`
	// Epoch milliseconds.
	UpdatedAt int64 `json:"updatedAt"`
	// The id of the conversation.
	SessionID string `json:"sessionId"`
	// A run is queued, running or waiting.
	HasActiveRun bool `json:"hasActiveRun"`
	// Those runs, if they were looked up.
	ActiveRunIDs []string `json:"activeRunIds,omitempty"`
	// Running, or absent.
	Status string `json:"status,omitempty"`
	// Always Leat.
	ModelProvider string `json:"modelProvider"`
	// The model that the agent reports, or the name of the agent.
	Model string `json:"model"`
}

// row returns the row of a conversation.
func (c *connection) row(s *journal.Summary) sessionRow {
	k := c.keyFor(s)
	row := sessionRow{
		Key: k.full, Kind: "direct", AgentID: k.agent, DisplayName: s.Title, Label: s.Title, UpdatedAt: s.Updated, SessionID: s.ID,
		HasActiveRun: len(s.Open) > 0, ModelProvider: provider, Model: k.agent,
	}
	if row.HasActiveRun {
		row.Status = "running"
	}
	return row
}

// emptyRow returns the row of a session that doesn't exist yet.
func (c *connection) emptyRow(k sessionKey, id string) sessionRow {
	return sessionRow{Key: k.full, Kind: "direct", AgentID: k.agent, SessionID: id, ActiveRunIDs: []string{}, ModelProvider: provider, Model: k.agent}
}

// listParams are the parameters of sessions.list.
type listParams struct {
	// How many entries the client wants; 0 is the default.
	Limit int `json:"limit"`
	// How many entries to skip.
	Offset int `json:"offset"`
	// A part of the title or the key.
	Search string `json:"search"`
	// The agent of the session.
	AgentID string `json:"agentId"`
	// The client wants the sessions that this one has started. Leat has no such sessions.
	SpawnedBy string `json:"spawnedBy"`
}

// listPayload is the response to sessions.list. Without defaults, the Control UI fails.
type listPayload struct {
	// Epoch milliseconds.
	TS int64 `json:"ts"`
	// Where OpenClaw stores sessions; not a path here.
	Path string `json:"path"`
	// How many rows the response has.
	Count int `json:"count"`
	// How many rows there are.
	TotalCount int `json:"totalCount"`
	// There are further entries.
	HasMore bool `json:"hasMore"`
	// Where the next page begins.
	NextOffset *int `json:"nextOffset"`
	// Required by the Control UI.
	Defaults listDefaults `json:"defaults"`
	// Newest first.
	Sessions []sessionRow `json:"sessions"`
}

// listDefaults names the model of new sessions.
type listDefaults struct {
	// Always Leat.
	ModelProvider string `json:"modelProvider"`
	// The model that the agent reports, or the name of the agent.
	Model string `json:"model"`
}

// listSessions answers sessions.list.
func (c *connection) listSessions(p *listParams) (any, error) {
	summaries, err := c.summaries()
	if err != nil {
		return nil, err
	}
	search := strings.ToLower(strings.TrimSpace(p.Search))
	agent := ""
	if p.AgentID != "" {
		agent = c.agentName(p.AgentID)
	}
	rows := []sessionRow{}
	for i := range summaries {
		row := c.row(&summaries[i])
		isFound := search == "" || strings.Contains(strings.ToLower(row.Key+"\n"+row.DisplayName), search)
		if isFound && p.SpawnedBy == "" && (agent == "" || row.AgentID == agent) {
			rows = append(rows, row)
		}
	}
	if p.Limit <= 0 {
		p.Limit = defaultListed
	}
	start := min(max(p.Offset, 0), len(rows))
	end := min(start+p.Limit, len(rows))
	payload := listPayload{
		TS: time.Now().UnixMilli(), Path: provider, Count: end - start, TotalCount: len(rows), HasMore: end < len(rows),
		Defaults: listDefaults{provider, c.s.defaultAgent(c.principal())}, Sessions: rows[start:end],
	}
	if payload.HasMore {
		payload.NextOffset = &end
	}
	return payload, nil
}

// summaries returns the conversations of the principal and those that are shared with it, newest first.
func (c *connection) summaries() (list []journal.Summary, err error) {
	var before *journal.Summary
	for len(list) < maxListed {
		page, err := c.s.gw.List(c.ctx, c.principal(), before, listPage)
		if err != nil {
			return nil, err
		}
		list = append(list, page...)
		if len(page) < listPage {
			break
		}
		before = &page[len(page)-1]
	}
	return list, nil
}

// keyParams name a session. Methods call the key differently.
type keyParams struct {
	// The key of the session.
	Key string `json:"key"`
	// The session, under the key that the client uses.
	SessionKey string `json:"sessionKey"`
	// The agent of the session.
	AgentID string `json:"agentId"`
}

// parse returns the key, and the conversation if there is one.
func (p *keyParams) parse(c *connection) (k sessionKey, s *journal.Summary, err error) {
	key := p.Key
	if key == "" {
		key = p.SessionKey
	}
	if k, err = c.parseKey(key, p.AgentID); err != nil {
		return k, nil, err
	}
	s, err = c.find(c.ctx, k)
	return k, s, err
}

// existing is parse for methods that need a conversation.
func (p *keyParams) existing(c *connection) (k sessionKey, s *journal.Summary, err error) {
	if k, s, err = p.parse(c); err == nil && s == nil {
		err = unknownSession(k.full)
	}
	return k, s, err
}

// describeSession answers sessions.describe.
func (c *connection) describeSession(p *keyParams) (any, error) {
	k, s, err := p.parse(c)
	if err != nil || s == nil {
		return map[string]any{"session": nil}, err
	}
	row := c.row(s)
	row.Key = k.full
	return map[string]any{"session": row}, nil
}

// createParams are the parameters of sessions.create.
type createParams struct {
	// The key of the session.
	Key string `json:"key"`
	// The agent of the session.
	AgentID string `json:"agentId"`
	// The title again, under the name that can be changed.
	Label string `json:"label"`
}

// createSession answers sessions.create. Without a key, it makes a new conversation.
func (c *connection) createSession(p *createParams) (any, error) {
	ctx, cancel := c.commandContext()
	defer cancel()
	agent := c.s.defaultAgent(c.principal())
	if p.AgentID != "" {
		agent = c.agentName(p.AgentID)
	}
	var summary journal.Summary
	if p.Key != "" {
		k, err := c.parseKey(p.Key, agent)
		if err != nil {
			return nil, err
		}
		s, err := c.open(k)
		if err != nil {
			return nil, err
		}
		summary = *s
	} else {
		if !c.hasAgent(agent) {
			return nil, server.Errorf(http.StatusNotFound, gateway.ReasonUnknownAgent, "unknown agent %q", agent)
		}
		var err error
		if summary, _, err = c.s.gw.Create(ctx, c.principal(), gateway.CreateOptions{Agent: agent, Title: p.Label}); err != nil {
			return nil, err
		}
	}
	row := c.row(&summary)
	return map[string]any{"ok": true, "key": row.Key, "sessionId": row.SessionID, "entry": row}, c.changed(row.Key, row.AgentID, "create")
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
	k, s, err := p.existing(c)
	if err != nil {
		return nil, err
	}
	for name, value := range p.fields {
		switch name {
		case "key", "sessionKey", "agentId", "verboseLevel", "expectedSessionId":
		case "label", "displayName":
			title := ""
			if string(value) != "null" && json.Unmarshal(value, &title) != nil {
				return nil, server.Invalid("invalid sessions.patch params: %s must be a string", name)
			}
			if _, err := c.do(s.ID, gateway.Command{Type: gateway.CommandUpdate, Title: &title}); err != nil {
				return nil, err
			}
			s.Title = title
		default:
			return nil, server.Invalid("%s can't be changed here", name)
		}
	}
	row := c.row(s)
	row.Key = k.full
	return map[string]any{"ok": true, "key": k.full, "path": provider, "entry": row}, c.changed(k.full, k.agent, "patch")
}

// deleteSession answers sessions.delete.
func (c *connection) deleteSession(p *keyParams) (any, error) {
	k, s, err := p.parse(c)
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

// resetSession answers sessions.reset: it stops the runs of a session and removes its messages.
func (c *connection) resetSession(p *keyParams) (any, error) {
	k, s, err := p.parse(c)
	if err != nil {
		return nil, err
	}
	if s == nil {
		id, err := derivedID(c.principal(), k.full, 0)
		return map[string]any{"ok": true, "key": k.full, "entry": c.emptyRow(k, id)}, err
	}
	if _, err := c.abort(&abortParams{SessionKey: k.full}); err != nil {
		return nil, err
	}
	// The files are kept for a while, so that the dashboard can undo it.
	if _, err := c.do(s.ID, gateway.Command{Type: gateway.CommandTruncate, KeepFiles: true}); err != nil {
		return nil, err
	}
	row := c.row(s)
	row.Key, row.HasActiveRun, row.Status = k.full, false, ""
	return map[string]any{"ok": true, "key": k.full, "entry": row}, c.changed(k.full, k.agent, "reset")
}

// changed sends the event that a session was changed by this client.
func (c *connection) changed(key, agent, reason string) error {
	return c.send("sessions.changed", map[string]any{"sessionKey": key, "agentId": agent, "reason": reason, "ts": time.Now().UnixMilli()})
}

// subscribeMessages answers sessions.messages.subscribe: from then on the client gets the messages of a session.
func (c *connection) subscribeMessages(p *keyParams) (any, error) {
	k, conversation, err := p.parse(c)
	if err != nil {
		return nil, err
	}
	c.setMessages(k, true)
	if conversation != nil {
		_, err = c.attach(k, conversation.ID)
	}
	return map[string]any{"subscribed": true, "key": k.full}, err
}

// unsubscribeMessages answers sessions.messages.unsubscribe.
func (c *connection) unsubscribeMessages(p *keyParams) (any, error) {
	k, err := c.parseKey(p.Key+p.SessionKey, p.AgentID)
	if err != nil {
		return nil, err
	}
	c.setMessages(k, false)
	return map[string]any{"subscribed": false, "key": k.full}, nil
}

// setMessages says whether the client gets the messages of a session, which it may not have begun yet.
func (c *connection) setMessages(k sessionKey, has bool) {
	if has && len(c.subscriptions) < maxSessions {
		c.subscriptions[k.full] = true
	} else {
		delete(c.subscriptions, k.full)
	}
	if s := c.sessions[k.full]; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hasMessages = has
	}
}

// subscribeSessions answers sessions.subscribe: from then on the client learns of changes in all sessions.
func (c *connection) subscribeSessions(_ *struct{}) (any, error) {
	if c.positions == nil {
		positions := c.s.gw.Positions(c.principal())
		c.positions = positions
		c.conn.Go(func() { c.followList(positions) })
	}
	return map[string]any{"subscribed": true}, nil
}

// unsubscribeSessions answers sessions.unsubscribe.
func (c *connection) unsubscribeSessions(_ *struct{}) (any, error) {
	if c.positions != nil {
		c.positions.Close()
		c.positions = nil
	}
	return map[string]any{"subscribed": false}, nil
}

// followList sends an event for each session that has changed.
func (c *connection) followList(positions *gateway.Positions) {
	for {
		select {
		case <-c.ctx.Done():
			return
		case _, isOpen := <-positions.Changed():
			if !isOpen {
				return
			}
		}
		for _, id := range positions.Take() {
			s, err := c.lookUp(c.ctx, id, false)
			if err != nil || s == nil {
				continue // it was deleted, or the client finds the fault with its next request
			}
			row := c.row(s)
			payload := struct {
				sessionRow
				// The session, under the key that the client uses.
				SessionKey string `json:"sessionKey"`
				// Why it is so.
				Reason string `json:"reason"`
				// Epoch milliseconds.
				TS int64 `json:"ts"`
			}{row, row.Key, "update", time.Now().UnixMilli()}
			if c.send("sessions.changed", payload) != nil {
				return // the connection ends
			}
		}
	}
}
