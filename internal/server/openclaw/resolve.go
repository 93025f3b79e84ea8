package openclaw

import (
	"cmp"
	"strings"
)

// resolveParams name a session by its key, which may be in a reference, by the id of its conversation, by a piece of that id or of the
// session's name, or by its title.
type resolveParams struct {
	Key       string `json:"key"`
	Reference struct {
		Key string `json:"key"`
	} `json:"reference"`
	SessionID string `json:"sessionId"`
	ShortID   string `json:"shortId"`
	Label     string `json:"label"`
	AgentID   string `json:"agentId"`
	// AllowMissing makes an unknown session no error.
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
		k, s, err := c.parse(&keyParams{Key: key, AgentID: p.AgentID})
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
