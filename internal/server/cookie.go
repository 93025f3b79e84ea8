// The signed cookie of a browser's session. It contains the user and an expiry, so only sessions that were ended early are stored.

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

// The cookie of a session is <payload>.<mac>, with a payload of base64-encoded JSON. It contains the identity and the expiry,
// so the server stores nothing for a session except that it was ended early.

// payload is the content of a cookie.
type payload struct {
	ID      string   `json:"i"`
	Expires int64    `json:"e"` // epoch seconds
	Tenant  string   `json:"t,omitempty"`
	Subject string   `json:"s,omitempty"`
	Scopes  []string `json:"c"`
	Admin   bool     `json:"a,omitempty"`
	// User reports that the session was created with a user's token and not with the API token.
	User bool `json:"u,omitempty"`
}

// cookieName returns the name of the session cookie. All ports of a host share their cookies, so the name contains the port.
// Over TLS it has a prefix for which browsers reject cookies from other hosts of the same domain and from pages without TLS.
// Otherwise such a page could log a person in as another user.
func (s *Server) cookieName(r *http.Request) string {
	name := "leat_session"
	switch {
	case !s.secure(r):
	case s.prefix(r) == "":
		name = "__Host-" + name
	default:
		name = "__Secure-" + name // "__Host-" needs the path "/", and a base path has another one
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		name += "_" + port
	}
	return name
}

// sign returns the value of a cookie. Cookies made from the API token are also signed with it, so a new API token ends them.
func (s *Server) sign(p payload) (string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(b)
	return text + "." + s.cookieMAC(text, p.User), nil
}

// The version in the MAC's input ends all sessions if the format of the payload changes. The API token
// enters as a hash of a fixed length, so no other split of the input gives the same bytes.
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

// openCookie returns the payload of a cookie that this server has signed and that has not expired.
//
// The MAC is compared in constant time. Before that, only User is used, which selects what was signed.
func (s *Server) openCookie(value string) (p payload, ok bool) {
	text, mac, _ := strings.Cut(value, ".")
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(b, &p) != nil {
		return p, false
	}
	if !hmac.Equal([]byte(mac), []byte(s.cookieMAC(text, p.User))) || time.Now().Unix() >= p.Expires {
		return p, false
	}
	// A session ends if its way of logging in is no longer configured.
	return p, (p.User && s.opt.Users != nil || !p.User && s.opt.Token != "") && !s.opt.Sessions.IsEnded(p.ID)
}

// sessionOf returns the identity of a request's session cookie.
func (s *Server) sessionOf(r *http.Request) (Identity, bool) {
	c, err := r.Cookie(s.cookieName(r))
	if err != nil {
		return Identity{}, false
	}
	p, ok := s.openCookie(c.Value)
	if !ok {
		return Identity{}, false
	}
	return Identity{
		Principal: gateway.Principal{Tenant: p.Tenant, Subject: p.Subject, Scopes: p.Scopes, Admin: p.Admin},
		Expires:   time.Unix(p.Expires, 0), user: p.User, session: p.ID,
	}, true
}

// setSession sets a cookie that expires no later than the credentials for which it is created.
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

// cookie returns a cookie that scripts can't read and that browsers don't send with requests of other sites.
func (s *Server) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(r), Value: value, Path: s.prefix(r) + "/", MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.secure(r),
	}
}
