package server

import (
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"slices"
	"sync"
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

// SessionStore stores data of sessions across restarts. Several goroutines may call it.
type SessionStore interface {
	// Key is the secret for signing cookies: at least 32 bytes, and always the same.
	Key() []byte
	// IsEnded reports whether a session was ended early.
	IsEnded(id string) bool
	// End ends a session that would expire at a time. Its error is for [Describe].
	End(ctx context.Context, id string, expiry time.Time) error
}

// memorySessions is a store for servers that don't restart.
type memorySessions struct {
	key      []byte
	mu       sync.Mutex
	expiries map[string]time.Time
}

func newMemorySessions() *memorySessions {
	m := &memorySessions{key: make([]byte, 32), expiries: map[string]time.Time{}}
	_, _ = rand.Read(m.key) // it never fails
	return m
}

func (m *memorySessions) Key() []byte { return m.key }

func (m *memorySessions) IsEnded(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.expiries[id]
	return ok
}

func (m *memorySessions) End(_ context.Context, id string, expiry time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.expiries, func(_ string, expiry time.Time) bool { return time.Now().After(expiry) })
	m.expiries[id] = expiry
	return nil
}

var errLoggedOut = &Error{Status: http.StatusUnauthorized, Reason: ReasonUnauthorized, Message: "the session was ended"}

// liveSessions are the streams that a cookie authenticates. They end with its session. The zero value is ready to use.
type liveSessions struct {
	mu      sync.Mutex
	streams map[string][]*context.CancelCauseFunc
}

// add registers the cancel function of a stream. remove unregisters it.
func (l *liveSessions) add(session string, cancel context.CancelCauseFunc) (remove func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams == nil {
		l.streams = map[string][]*context.CancelCauseFunc{}
	}
	entry := &cancel
	l.streams[session] = append(l.streams[session], entry)
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		remaining := slices.DeleteFunc(l.streams[session], func(c *context.CancelCauseFunc) bool { return c == entry })
		if l.streams[session] = remaining; len(remaining) == 0 {
			delete(l.streams, session)
		}
		return true
	}
}

// end cancels the streams of a session.
//
// The functions are called without the mutex, because a cancelled stream calls remove, which locks it.
func (l *liveSessions) end(session string) {
	l.mu.Lock()
	streams := slices.Clone(l.streams[session])
	l.mu.Unlock()
	for _, cancel := range streams {
		(*cancel)(errLoggedOut)
	}
}
