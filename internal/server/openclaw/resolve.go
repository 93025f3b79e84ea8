package openclaw

import (
	"cmp"
	"strings"
)

// resolveParams name a session by its key, as a reference in an address, by its id, or by the beginning of its id.
type resolveParams struct {
	// The key of the session.
	Key       string `json:"key"`
	Reference struct {
		// The key of the session.
		Key string `json:"key"`
	} `json:"reference"`
	// The id of the conversation.
	SessionID string `json:"sessionId"`
	// The beginning of the id or of the name.
	ShortID string `json:"shortId"`
	// The title again, under the name that can be changed.
	Label string `json:"label"`
	// The agent of the session.
	AgentID string `json:"agentId"`
	// An unknown session is not an error.
	AllowMissing bool `json:"allowMissing"`
}

// resolveSession answers sessions.resolve, with which the Control UI finds the session of its address.
func (c *connection) resolveSession(p *resolveParams) (any, error) {
	missing := func(name string) (any, error) {
		if p.AllowMissing {
			return map[string]any{"ok": false}, nil
		}
		return nil, unknownSession(name)
	}
	if key := cmp.Or(p.Key, p.Reference.Key); key != "" {
		k, s, err := (&keyParams{Key: key, AgentID: p.AgentID}).parse(c)
		switch {
		case err != nil:
			return nil, err
		case s == nil && k.name != nameMain: // the main session is made by its first message
			return missing(key)
		}
		return map[string]any{"ok": true, "key": k.full, "agentId": k.agent}, nil
	}
	summaries, err := c.summaries()
	if err != nil {
		return nil, err
	}
	for i := range summaries {
		s := &summaries[i]
		k := c.keyFor(s)
		isSame := p.SessionID != "" && s.ID == p.SessionID || p.Label != "" && s.Title == p.Label
		if isSame || p.ShortID != "" && (strings.HasPrefix(s.ID, p.ShortID) || strings.Contains(k.name, p.ShortID)) {
			return map[string]any{"ok": true, "key": k.full, "agentId": k.agent}, nil
		}
	}
	return missing(cmp.Or(p.SessionID, p.ShortID, p.Label))
}
