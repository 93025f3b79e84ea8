// The list of sessions.

package openclaw

import (
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// maxListed is how many sessions a list can have. Older ones are found in the dashboard.
	maxListed = 2000
	// defaultListed is how many sessions a response has if the client doesn't ask for a number.
	defaultListed = 200
	// listPage is how many conversations are read at once.
	listPage = 200
)

// sessionRow is a session in a list.
type sessionRow struct {
	Key         string `json:"key"`
	Kind        string `json:"kind"` // always direct: one user and one agent
	AgentID     string `json:"agentId"`
	DisplayName string `json:"displayName,omitempty"`
	// Label is the name that the user can change. In Leat it is the title too.
	Label     string `json:"label,omitempty"`
	UpdatedAt int64  `json:"updatedAt"` // epoch milliseconds
	SessionID string `json:"sessionId"` // the id of the conversation
	// HasActiveRun means that a run is queued, running or waiting. The ids of such runs are only in the row of a history.
	HasActiveRun  bool     `json:"hasActiveRun"`
	ActiveRunIDs  []string `json:"activeRunIds,omitempty"`
	Status        string   `json:"status,omitempty"` // running, or empty
	ModelProvider string   `json:"modelProvider"`
	Model         string   `json:"model"` // the name of the agent
}

// row returns the row of a conversation, under the key that the gateway prefers.
func (c *connection) row(s *journal.Summary) sessionRow { return rowOf(c.keyFor(s), s) }

// rowOf returns the row of a conversation under a key.
func rowOf(k sessionKey, s *journal.Summary) sessionRow {
	row := emptyRow(k, s.ID)
	row.DisplayName, row.Label, row.UpdatedAt, row.HasActiveRun = s.Title, s.Title, s.Updated, len(s.Open) > 0
	if row.HasActiveRun {
		row.Status = "running"
	}
	return row
}

// emptyRow returns the row of a session without messages.
func emptyRow(k sessionKey, id string) sessionRow {
	return sessionRow{Key: k.full, Kind: "direct", AgentID: k.agent, SessionID: id, ModelProvider: provider, Model: k.agent}
}

// listParams are the parameters of sessions.list.
type listParams struct {
	Limit   int    `json:"limit"`
	Offset  int    `json:"offset"`
	Search  string `json:"search"` // a part of the title or of the key
	AgentID string `json:"agentId"`
	// SpawnedBy is a session whose own sessions the client wants. Sessions of Leat have none.
	SpawnedBy string `json:"spawnedBy"`
}

// listPayload is the response to sessions.list, newest first. Without defaults, the Control UI fails.
type listPayload struct {
	TS         int64        `json:"ts"`   // epoch milliseconds
	Path       string       `json:"path"` // in OpenClaw a file, here the name of the gateway
	Count      int          `json:"count"`
	TotalCount int          `json:"totalCount"`
	HasMore    bool         `json:"hasMore"`
	NextOffset *int         `json:"nextOffset"`
	Defaults   listDefaults `json:"defaults"`
	Sessions   []sessionRow `json:"sessions"`
}

// listDefaults names the model of new sessions.
type listDefaults struct {
	ModelProvider string `json:"modelProvider"`
	Model         string `json:"model"`
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

// describeSession answers sessions.describe.
func (c *connection) describeSession(p *keyParams) (any, error) {
	k, s, err := c.parse(p)
	if err != nil || s == nil {
		return map[string]any{"session": nil}, err
	}
	return map[string]any{"session": rowOf(k, s)}, nil
}
