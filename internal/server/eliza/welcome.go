// Routes that Eliza's clients call around a new conversation: its greeting, the clean-up of empty ones, and whether a token is
// needed.

package eliza

import (
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// welcome is the greeting of a conversation. It is always empty here.
type welcome struct {
	Text      string `json:"text"`
	AgentName string `json:"agentName"`
	Generated bool   `json:"generated"`
	Persisted bool   `json:"persisted"`
}

// greet answers POST /api/conversations/{id}/greeting with an empty greeting and the agent's name.
//
// Eliza's server lets the agent write a greeting. Here an agent writes only in turns, so the clients get
// the empty greeting for which they show nothing.
func (s *surface) greet(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	c, err := s.gw.Conversation(r.Context(), p, gateway.ActionRead, r.PathValue("id"))
	if err != nil {
		return err
	}
	greeting := welcome{AgentName: c.Agent}
	if greeting.AgentName == "" {
		for _, a := range s.gw.Catalog().Agents(p) {
			if a.Default {
				greeting.AgentName = a.Name
			}
		}
	}
	return server.Respond(w, greeting, nil)
}

// cleanup deletes the caller's conversations without messages, except the open one.
//
// Clear checks again, in the conversation's writer, that there are
// no messages, so a message that arrives in between is not lost. The conversations of other users are
// never deleted, not even by the admin.
func (s *surface) cleanup(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		KeepID string `json:"keepId"`
	}
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	conversations, err := s.gw.List(r.Context(), p, nil, maxConversations)
	if err != nil {
		return err
	}
	deleted := []string{}
	for i := range conversations {
		c := &conversations[i]
		if c.ID == body.KeepID || c.Tenant != p.Tenant || c.Owner != p.Subject || c.SpokenSeq > 0 || len(c.Open) > 0 {
			continue
		}
		cleared, err := s.gw.Clear(r.Context(), p, c.ID)
		if err != nil {
			return err
		}
		if cleared {
			deleted = append(deleted, c.ID)
		}
	}
	return server.Respond(w, map[string]any{"deleted": deleted}, nil)
}

// access answers GET /api/auth/status: whether a token is required. Pairing is never available.
func (s *surface) access(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	server.WriteJSON(w, http.StatusOK, struct {
		Required       bool   `json:"required"`
		PairingEnabled bool   `json:"pairingEnabled"`
		ExpiresAt      *int64 `json:"expiresAt"`
	}{Required: s.srv.TokenNeeded()})
	return nil
}
