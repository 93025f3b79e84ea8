// Package notices serves /api/notifications, with which a browser subscribes to notices about its user's conversations. docs/dashboard.md describes
// them.
package notices

import (
	"errors"
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/webpush"
)

// maxBody limits a subscription, in bytes.
const maxBody = 8 << 10

// surface has the handlers.
type surface struct{ notices *webpush.Service }

// Register adds the routes. A user can only subscribe to notices about the user's own conversations.
func Register(s *server.Server, notices *webpush.Service) {
	p := &surface{notices}
	const path = "/api/notifications"
	s.HandleAll(server.Authenticated, []server.Route{
		{Method: http.MethodGet, Pattern: path, Handler: p.key},
		{Method: http.MethodPost, Pattern: path, Handler: p.subscribe, MaxBody: maxBody},
		{Method: http.MethodDelete, Pattern: path, Handler: p.unsubscribe, MaxBody: maxBody},
	})
}

func (s *surface) key(w http.ResponseWriter, _ *http.Request, p gateway.Principal) error {
	if err := gateway.Decide(p, gateway.ActionList, nil); err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, map[string]string{"publicKey": s.notices.PublicKey()})
	return nil
}

func (s *surface) subscribe(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	if err := gateway.Decide(p, gateway.ActionList, nil); err != nil {
		return err
	}
	var sub webpush.Subscription
	if err := server.DecodeStrict(r, &sub); err != nil {
		return err
	}
	err := s.notices.Subscribe(r.Context(), p.Tenant, p.Subject, sub)
	if errors.Is(err, webpush.ErrSubscription) {
		return server.Invalid("%s", err)
	}
	if err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, map[string]bool{"ok": true})
	return nil
}

// The endpoint is in the body, because it is a secret: addresses end up in logs.
func (s *surface) unsubscribe(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		Endpoint string `json:"endpoint"`
	}
	if err := server.DecodeStrict(r, &body); err != nil {
		return err
	}
	if err := s.notices.Unsubscribe(r.Context(), p.Tenant, p.Subject, body.Endpoint); err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, map[string]bool{"ok": true})
	return nil
}
