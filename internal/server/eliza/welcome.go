package eliza

import (
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// welcome is the greeting of a conversation: here there is none.
type welcome struct {
	Text      string `json:"text"`
	AgentName string `json:"agentName"`
	Generated bool   `json:"generated"`
	Persisted bool   `json:"persisted"`
}

// greet answers whoever asks for a greeting that nothing is said before the user has spoken.
func (s *surface) greet(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	c, err := s.gw.Conversation(r.Context(), p, gateway.ActionRead, r.PathValue("id"))
	if err != nil {
		return err
	}
	out := welcome{AgentName: c.Agent}
	if out.AgentName == "" {
		for _, a := range s.gw.Agents(p) {
			if a.Default {
				out.AgentName = a.Name
			}
		}
	}
	server.WriteJSON(w, http.StatusOK, out)
	return nil
}

// cleanup deletes the caller's own conversations in which nothing was said, but for the one that they look at.
func (s *surface) cleanup(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		KeepID string `json:"keepId"`
	}
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	all, err := s.gw.List(r.Context(), p, nil, maxConversations)
	if err != nil {
		return err
	}
	deleted := []string{}
	for i := range all {
		c := &all[i]
		if c.ID == body.KeepID || c.Tenant != p.Tenant || c.Owner != p.Subject || c.Spoken > 0 || len(c.Open) > 0 {
			continue
		}
		gone, err := s.gw.Clear(r.Context(), p, c.ID)
		if err != nil {
			return err
		}
		if gone {
			deleted = append(deleted, c.ID)
		}
	}
	server.WriteJSON(w, http.StatusOK, map[string]any{"deleted": deleted})
	return nil
}

// access answers whoever has no token yet whether one is needed. There is no pairing here.
func (s *surface) access(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	server.WriteJSON(w, http.StatusOK, struct {
		Required       bool   `json:"required"`
		PairingEnabled bool   `json:"pairingEnabled"`
		ExpiresAt      *int64 `json:"expiresAt"`
	}{Required: s.srv.TokenNeeded()})
	return nil
}
