package telegram

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
)

// webhook is where the bot wants its updates.
type webhook struct {
	url, secret string
	// kinds are the updates that it wants. Without kinds it gets all.
	kinds []string
}

// setWebhook registers an address.
func (c *call) setWebhook() (any, *failure) {
	address := c.text("url")
	if address != "" && !strings.HasPrefix(address, "https://") {
		return nil, badRequest("bad webhook: An HTTPS URL must be provided for webhook")
	}
	w := webhook{url: address, secret: c.text("secret_token")}
	if err := c.object("allowed_updates", &w.kinds); err != nil {
		return nil, badRequest("can't parse allowed_updates: %v", err)
	}
	c.s.webhook = w
	return true, nil
}

// webhookInfo answers getWebhookInfo.
func (c *call) webhookInfo() (any, *failure) {
	return map[string]any{"url": c.s.webhook.url, "has_custom_certificate": false, "pending_update_count": len(c.s.updates)}, nil
}

// Push posts the updates that are not confirmed to a handler, which stands for the webhook's address, and returns the status of each
// request. It ends at the first that isn't 200; that update is repeated the next time.
func (s *Server) Push(h http.Handler) []int {
	var statuses []int
	for {
		s.mu.Lock()
		w := s.webhook
		s.updates = slices.DeleteFunc(s.updates, func(u update) bool { return len(w.kinds) > 0 && !slices.Contains(w.kinds, u.kind) })
		if w.url == "" || len(s.updates) == 0 {
			s.mu.Unlock()
			return statuses
		}
		u := s.updates[0]
		s.mu.Unlock()
		body, err := json.Marshal(map[string]any{"update_id": u.id, u.kind: u.content})
		if err != nil {
			panic(err) // can't happen: the fake made the content
		}
		r := httptest.NewRequest(http.MethodPost, w.url, bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if w.secret != "" {
			r.Header.Set("X-Telegram-Bot-Api-Secret-Token", w.secret)
		}
		response := httptest.NewRecorder()
		h.ServeHTTP(response, r)
		statuses = append(statuses, response.Code)
		if response.Code != http.StatusOK {
			return statuses
		}
		s.mu.Lock()
		s.updates = slices.DeleteFunc(s.updates, func(o update) bool { return o.id == u.id })
		s.mu.Unlock()
	}
}
