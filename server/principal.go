package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/gateway"
)

// The headers by which the holder of the API token acts for a user.
const (
	HeaderSubject = "Leat-Subject"
	HeaderTenant  = "Leat-Tenant"
)

// tokenHeaders carry the bare token, for clients of Eliza.
var tokenHeaders = []string{"X-Eliza-Token", "X-ElizaOS-Token", "X-Api-Key"}

var errUnauthorized = &Error{Status: http.StatusUnauthorized, Reason: ReasonUnauthorized, Message: "a valid token is needed"}

// TokenNeeded reports whether a token is configured.
func (s *Server) TokenNeeded() bool { return s.opt.Token != "" }

// Authenticate resolves the token of an [InBand] connection's message, and the headers of its request, to a principal.
// The error is for [Describe].
func (s *Server) Authenticate(r *http.Request, token string) (gateway.Principal, error) {
	if !s.tokenGood(token) {
		return gateway.Principal{}, errUnauthorized
	}
	return acting(r)
}

// principal resolves who asks. With no token presented where one is needed it returns the zero principal and an error.
func (s *Server) principal(r *http.Request) (gateway.Principal, error) {
	if !s.TokenNeeded() {
		return acting(r)
	}
	if token, ok := presented(r); ok {
		// A token that was presented decides: a wrong one is not mended by a cookie.
		return s.Authenticate(r, token)
	}
	if s.sessionGood(r) {
		return acting(r)
	}
	return gateway.Principal{}, errUnauthorized
}

// presented returns the token that a request's headers bring.
func presented(r *http.Request) (token string, ok bool) {
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, rest, _ := strings.Cut(h, " ")
		if strings.EqualFold(scheme, "Bearer") {
			return strings.TrimSpace(rest), true
		}
		return "", true // another scheme proves nothing
	}
	for _, name := range tokenHeaders {
		if h := r.Header.Get(name); h != "" {
			return h, true
		}
	}
	return "", false
}

// tokenGood compares in a time that depends on neither token's content nor length.
func (s *Server) tokenGood(token string) bool {
	if !s.TokenNeeded() {
		return true
	}
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.opt.Token))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1
}

// acting returns the admin, or the user for whom the admin's request says that it acts.
func acting(r *http.Request) (gateway.Principal, error) {
	subject, tenant := r.Header.Get(HeaderSubject), r.Header.Get(HeaderTenant)
	if subject == "" {
		if tenant != "" || len(r.Header.Values(HeaderSubject)) > 0 {
			return gateway.Principal{}, Errorf(http.StatusBadRequest, ReasonInvalid, "%s needs a %s that is not empty", HeaderTenant, HeaderSubject)
		}
		return gateway.Principal{Admin: true}, nil
	}
	for name, v := range map[string]string{HeaderSubject: subject, HeaderTenant: tenant} {
		if err := event.CheckID(name, v); err != nil {
			return gateway.Principal{}, err
		}
	}
	return gateway.Principal{Tenant: tenant, Subject: subject, Scopes: []string{gateway.ScopeAgent}}, nil
}

// Local reports whether a request came to and from this machine's loopback, addressed as such and not passed on by a proxy.
func Local(r *http.Request) bool {
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip"} {
		if r.Header.Get(h) != "" {
			return false
		}
	}
	return toLoopback(r) && loopbackName(hostname(r.Host)) && loopbackName(hostname(r.RemoteAddr))
}

// toLoopback reports whether the connection was made to a loopback address. Where the address is not known it was not.
func toLoopback(r *http.Request) bool {
	a, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return a != nil && loopbackAddr(a)
}

func loopbackAddr(a net.Addr) bool {
	if a.Network() == "unix" {
		return true
	}
	return loopbackName(hostname(a.String()))
}
