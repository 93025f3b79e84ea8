package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
)

// A session's cookie is <payload>.<mac>, the payload being JSON in base64. It says who asks and until when, so that nothing
// is stored for it; only one that was ended before its time is remembered.

// payload is what a cookie says.
type payload struct {
	ID      string   `json:"i"`
	Expires int64    `json:"e"` // epoch seconds
	Tenant  string   `json:"t,omitempty"`
	Subject string   `json:"s,omitempty"`
	Scopes  []string `json:"c"`
	Admin   bool     `json:"a,omitempty"`
	// User says that it was made of a user's token, not of the API token.
	User bool `json:"u,omitempty"`
}

// cookieName names the cookie. Cookies are shared by all ports of a host, so the port is part of the name. Over TLS its prefix
// makes browsers refuse one that another host of the same domain has set, or a page without TLS, by which they could log
// people in as somebody else.
func (s *Server) cookieName(r *http.Request) string {
	name := "leat_session"
	switch {
	case !s.secure(r):
	case s.Prefix(r) == "":
		name = "__Host-" + name
	default:
		name = "__Secure-" + name // the other one is for cookies of a whole host alone
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		name += "_" + port
	}
	return name
}

// sign makes a cookie's value. Cookies that were made of the API token are signed with it too: a new one ends them.
func (s *Server) sign(p payload) (string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(b)
	return text + "." + s.cookieMAC(text, p.User), nil
}

func (s *Server) cookieMAC(text string, user bool) string {
	mac := hmac.New(sha256.New, s.opt.Sessions.Key())
	token := ""
	if !user {
		sum := sha256.Sum256([]byte(s.opt.Token))
		token = string(sum[:])
	}
	mac.Write([]byte("leat session 2\x00" + token + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// opened returns what a cookie's value says, if it is one that we made and its time is not over.
func (s *Server) opened(value string) (p payload, ok bool) {
	text, mac, _ := strings.Cut(value, ".")
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(b, &p) != nil {
		return p, false
	}
	if !hmac.Equal([]byte(mac), []byte(s.cookieMAC(text, p.User))) || time.Now().Unix() >= p.Expires {
		return p, false
	}
	// A way of logging in that is not configured any more ends its sessions.
	return p, (p.User && s.opt.Users != nil || !p.User && s.opt.Token != "") && !s.opt.Sessions.Ended(p.ID)
}

// sessionOf returns who asks by the proof of a cookie.
func (s *Server) sessionOf(r *http.Request) (Identity, bool) {
	c, err := r.Cookie(s.cookieName(r))
	if err != nil {
		return Identity{}, false
	}
	p, ok := s.opened(c.Value)
	if !ok {
		return Identity{}, false
	}
	return Identity{
		Principal: gateway.Principal{Tenant: p.Tenant, Subject: p.Subject, Scopes: p.Scopes, Admin: p.Admin},
		Expires:   time.Unix(p.Expires, 0), user: p.User, session: p.ID,
	}, true
}

// setSession sets a cookie for somebody, that lives no longer than the proof that they brought.
func (s *Server) setSession(w http.ResponseWriter, r *http.Request, id Identity) (expires time.Time, err error) {
	expires = time.Now().Add(s.opt.SessionLife)
	if !id.Expires.IsZero() && id.Expires.Before(expires) {
		expires = id.Expires
	}
	value, err := s.sign(payload{
		ID: rand.Text(), Expires: expires.Unix(), Tenant: id.Tenant, Subject: id.Subject, Scopes: id.Scopes, Admin: id.Admin, User: id.user,
	})
	if err != nil {
		return expires, err
	}
	age := int(time.Until(expires).Seconds())
	if age <= 0 {
		return expires, ErrExpired
	}
	http.SetCookie(w, s.cookie(r, value, age))
	return expires, nil
}

// cookie is one that scripts can't read and that no foreign page's request brings along.
func (s *Server) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(r), Value: value, Path: s.Prefix(r) + "/", MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.secure(r),
	}
}
