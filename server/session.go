package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/gateway"
)

// A session's cookie is <nonce>.<expiry>.<mac> under a key derived from the token: it outlives a restart of the gateway,
// and a new token ends all sessions.

// sessionCookie names the cookie. Cookies are shared by all ports of a host, so the port is part of the name.
func sessionCookie(r *http.Request) string {
	name := "leat_session"
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		name += "_" + port
	}
	return name
}

func (s *Server) sessionMAC(payload string) string {
	key := sha256.Sum256([]byte("leat session 1\x00" + s.opt.Token))
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte(payload))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (s *Server) sessionGood(r *http.Request) bool {
	c, err := r.Cookie(sessionCookie(r))
	if err != nil {
		return false
	}
	i := strings.LastIndexByte(c.Value, '.')
	if i < 0 || !hmac.Equal([]byte(c.Value[i+1:]), []byte(s.sessionMAC(c.Value[:i]))) {
		return false
	}
	_, expiry, ok := strings.Cut(c.Value[:i], ".")
	at, err := strconv.ParseInt(expiry, 10, 64)
	return ok && err == nil && time.Now().Unix() < at
}

// secure reports whether the browser speaks TLS, to us or to the proxy before us.
func secure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

func (s *Server) setSession(w http.ResponseWriter, r *http.Request, value string, age time.Duration) {
	seconds := int(age.Seconds())
	if value == "" {
		seconds = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie(r), Value: value, Path: "/", MaxAge: seconds,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure(r),
	})
}

// session is what the page learns of itself.
type session struct {
	// TokenNeeded says that a token is configured.
	TokenNeeded   bool   `json:"tokenNeeded"`
	Authenticated bool   `json:"authenticated"`
	Admin         bool   `json:"admin,omitempty"`
	Tenant        string `json:"tenant,omitempty"`
	Subject       string `json:"subject,omitempty"`
}

// registerSession adds the routes by which a page swaps the token for a cookie that its scripts can't read.
func (s *Server) registerSession() {
	s.Handle(Route{Method: http.MethodGet, Pattern: "/api/session", Access: Public, Handler: s.getSession})
	s.Handle(Route{Method: http.MethodPost, Pattern: "/api/session", Access: Public, Handler: s.postSession})
	s.Handle(Route{Method: http.MethodDelete, Pattern: "/api/session", Access: Public, Handler: s.deleteSession})
}

func (s *Server) getSession(w http.ResponseWriter, _ *http.Request, p gateway.Principal) error {
	WriteJSON(w, http.StatusOK, session{
		TokenNeeded: s.TokenNeeded(), Authenticated: p.Admin || p.Subject != "", Admin: p.Admin, Tenant: p.Tenant, Subject: p.Subject,
	})
	return nil
}

func (s *Server) postSession(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	var body struct {
		Token string `json:"token"`
	}
	if err := DecodeStrict(r, &body); err != nil {
		return err
	}
	if !s.tokenGood(body.Token) {
		return errUnauthorized
	}
	if s.TokenNeeded() {
		payload := fmt.Sprintf("%s.%d", rand.Text(), time.Now().Add(s.opt.SessionLife).Unix())
		s.setSession(w, r, payload+"."+s.sessionMAC(payload), s.opt.SessionLife)
	}
	WriteJSON(w, http.StatusOK, session{TokenNeeded: s.TokenNeeded(), Authenticated: true, Admin: true})
	return nil
}

func (s *Server) deleteSession(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	s.setSession(w, r, "", 0)
	w.WriteHeader(http.StatusNoContent)
	return nil
}
