package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// The headers by which the holder of the API token acts for a user.
const (
	HeaderSubject = "Leat-Subject"
	HeaderTenant  = "Leat-Tenant"
)

// tokenHeaders carry the bare token, for clients of Eliza.
var tokenHeaders = []string{"X-Eliza-Token", "X-ElizaOS-Token", "X-Api-Key"}

var (
	errUnauthorized = &Error{Status: http.StatusUnauthorized, Reason: ReasonUnauthorized, Message: "a valid token is needed"}
	errActing       = &Error{Status: http.StatusForbidden, Reason: ReasonForbidden, Message: "only the holder of the API token may act for somebody else"}
)

// TokenNeeded reports whether a token is needed: one is configured, or users have tokens of their own.
func (s *Server) TokenNeeded() bool { return s.opt.Token != "" || s.opt.Users != nil }

// Authenticate resolves the token of an [InBand] connection's message, and the headers of its request, to who asks.
// The error is for [Describe].
func (s *Server) Authenticate(r *http.Request, token string) (Identity, error) {
	if !s.TokenNeeded() {
		return acting(r, everybody)
	}
	from := ClientPrefix(r)
	wait := s.attempts.wait(from, time.Now())
	id, err := s.known(r.Context(), token, wait == 0)
	switch {
	case err == nil:
		return acting(r, id)
	case errors.Is(err, ErrExpired), errors.Is(err, ErrNotNow), r.Context().Err() != nil:
		// Nobody guesses here: the token was good once, or was not looked at.
		s.log.Debug("token not taken", "remote", from.Addr().String(), "error", err)
		return Identity{}, err
	case wait > 0:
		return Identity{}, &Error{Status: http.StatusTooManyRequests, Reason: ReasonAttempts, Message: "too many wrong tokens came from your address; wait a moment", RetryAfter: wait}
	}
	if token != "" {
		s.attempts.failed(from, time.Now())
	}
	s.log.Info("token refused", "remote", from.Addr().String(), "error", err)
	return Identity{}, errUnauthorized
}

// everybody is who asks where no token is needed.
var everybody = Identity{Principal: gateway.Principal{Admin: true}}

// known returns whose token it is. The error is for the log. Without api it is not compared with the API token, which may be as
// short as somebody chose it; users' tokens can't be guessed, so that whoever guesses locks no user out at the same address.
func (s *Server) known(ctx context.Context, token string, api bool) (Identity, error) {
	switch {
	case api && s.tokenGood(token):
		return Identity{Principal: gateway.Principal{Admin: true}}, nil
	case token == "":
		return Identity{}, errors.New("it is empty, or of another scheme than Bearer")
	case s.opt.Users == nil:
		return Identity{}, errors.New("it is not the API token")
	}
	id, err := s.opt.Users.Verify(ctx, token)
	id.user = true
	return id, err
}

// identify resolves who asks. With no token presented where one is needed it returns nobody and an error.
func (s *Server) identify(r *http.Request) (Identity, error) {
	if !s.TokenNeeded() {
		return acting(r, everybody)
	}
	if token, ok := presented(r); ok {
		// A token that was presented decides: a wrong one is not mended by a cookie.
		return s.Authenticate(r, token)
	}
	if id, ok := s.sessionOf(r); ok {
		return acting(r, id)
	}
	return Identity{}, errUnauthorized
}

// producer resolves the token of a turn on a route that takes one. It returns nobody where there is none.
func (s *Server) producer(r *http.Request, e *endpoint) (Identity, error) {
	token, ok := presented(r)
	if !ok || !e.Producer || s.opt.Producer == nil {
		return Identity{}, nil
	}
	turn, err := s.opt.Producer(r.Context(), token)
	return Identity{Principal: gateway.Principal{Turn: turn}}, err
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

// tokenGood compares with the API token, in a time that depends on neither token's content nor length.
func (s *Server) tokenGood(token string) bool {
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.opt.Token))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1 && s.opt.Token != ""
}

// acting returns who asks, or the user for whom an admin's request says that it acts.
func acting(r *http.Request, id Identity) (Identity, error) {
	subject, tenant := r.Header.Get(HeaderSubject), r.Header.Get(HeaderTenant)
	if subject == "" && tenant == "" && len(r.Header.Values(HeaderSubject)) == 0 {
		return id, nil
	}
	if !id.Admin {
		return Identity{}, errActing
	}
	if subject == "" {
		return Identity{}, Errorf(http.StatusBadRequest, ReasonInvalid, "%s needs a %s that is not empty", HeaderTenant, HeaderSubject)
	}
	for name, v := range map[string]string{HeaderSubject: subject, HeaderTenant: tenant} {
		if err := event.CheckID(name, v); err != nil {
			return Identity{}, err
		}
	}
	id.Principal = gateway.Principal{Tenant: tenant, Subject: subject, Scopes: []string{gateway.ScopeAgent}, Acting: true}
	return id, nil
}
