package server

import (
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
)

// session describes the caller's own login.
type session struct {
	// TokenNeeded reports that requests need a token.
	TokenNeeded   bool     `json:"tokenNeeded"`
	Authenticated bool     `json:"authenticated"`
	Admin         bool     `json:"admin,omitempty"`
	Tenant        string   `json:"tenant,omitempty"`
	Subject       string   `json:"subject,omitempty"`
	Scopes        []string `json:"scopes,omitempty"`
	Expires       int64    `json:"expires,omitempty"` // of the token or the cookie, epoch milliseconds
}

// registerSession adds the routes with which a page exchanges a token for a cookie that its scripts can't read.
func (s *Server) registerSession() {
	const path = "/api/auth/session"
	s.Handle(Route{Method: http.MethodGet, Pattern: path, Access: Public, Handler: s.getSession})
	s.Handle(Route{Method: http.MethodPost, Pattern: path, Access: Public, Handler: s.postSession})
	s.Handle(Route{Method: http.MethodDelete, Pattern: path, Access: Public, Handler: s.deleteSession})
}

// writeSession responds with the identity. It never contains the token or the cookie.
func (s *Server) writeSession(w http.ResponseWriter, id Identity, expires time.Time) {
	a := session{
		TokenNeeded: s.TokenNeeded(), Authenticated: id.Admin || id.Subject != "", Admin: id.Admin,
		Tenant: id.Tenant, Subject: id.Subject, Scopes: id.Scopes,
	}
	if !expires.IsZero() {
		a.Expires = expires.UnixMilli()
	}
	WriteJSON(w, http.StatusOK, a)
}

// getSession answers with the caller's identity. Without valid credentials it reports that the caller
// isn't authenticated, and no error: pages ask before they have a token.
func (s *Server) getSession(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	id := IdentityOf(r.Context())
	s.writeSession(w, id, id.Expires)
	return nil
}

// postSession exchanges the token in the body, or in the headers, for a new cookie. A cookie of the request is ignored.
func (s *Server) postSession(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	var body struct {
		Token string `json:"token"`
	}
	if err := DecodeStrict(r, &body); err != nil {
		return err
	}
	if !s.TokenNeeded() {
		s.writeSession(w, openIdentity, time.Time{})
		return nil
	}
	var id Identity
	_, headers := presented(r)
	switch before, _ := r.Context().Value(askedKey{}).(identification); {
	case body.Token != "":
		var err error
		if id, err = s.Authenticate(r, body.Token); err != nil {
			return err
		}
	case !headers:
		return errUnauthorized
	case before.err != nil:
		return before.err
	default:
		id = before.id
	}
	expires, err := s.setSession(w, r, id)
	if err != nil {
		return err
	}
	s.writeSession(w, id, expires)
	return nil
}

// deleteSession ends the session of the request's cookie, including all copies of that cookie, and removes the cookie.
func (s *Server) deleteSession(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	if id, ok := s.sessionOf(r); ok {
		if err := s.opt.Sessions.End(r.Context(), id.session, id.Expires); err != nil {
			return err
		}
		s.sessions.end(id.session)
	}
	http.SetCookie(w, s.cookie(r, "", -1))
	w.WriteHeader(http.StatusNoContent)
	return nil
}
