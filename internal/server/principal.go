// From a request to its principal: the token or the cookie, its verification, and the user on whose behalf a service acts.

package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/ratelimit"
	"github.com/leat-dev/leat/internal/gateway"
)

// HeaderTenant and HeaderSubject name the user for whom the holder of the API token acts.
const (
	HeaderSubject = "Leat-Subject"
	HeaderTenant  = "Leat-Tenant"
)

// tokenHeaders contain a bare token. Clients of Eliza send them.
var tokenHeaders = []string{"X-Eliza-Token", "X-ElizaOS-Token", "X-Api-Key"}

var (
	errUnauthorized = &Error{Status: http.StatusUnauthorized, Reason: ReasonUnauthorized, Message: "a valid token is needed"}
	errActing       = &Error{Status: http.StatusForbidden, Reason: ReasonForbidden, Message: "only the holder of the API token may act for another subject"}
)

// TokenNeeded reports whether requests need a token: the API token or users' tokens are configured.
func (s *Server) TokenNeeded() bool { return s.opt.Token != "" || s.opt.Users != nil }

// Authenticate returns the identity for the token in a message of an [InBand] connection, and for the headers of its request.
// Its error is for [Describe].
func (s *Server) Authenticate(r *http.Request, token string) (Identity, error) {
	if !s.TokenNeeded() {
		return acting(r, openIdentity)
	}
	from := ClientPrefix(r)
	wait := s.attempts.wait(from, time.Now())
	id, err := s.verify(r.Context(), token, wait == 0)
	switch {
	case err == nil:
		return acting(r, id)
	case errors.Is(err, ErrExpired), errors.Is(err, ErrNotNow), r.Context().Err() != nil:
		// Not a guess: the token was valid once, or could not be checked.
		s.log.Debug("token not accepted", "remote", from.Addr().String(), "error", err)
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

// openIdentity is the identity of every request if no token is configured.
var openIdentity = Identity{Principal: gateway.Principal{Admin: true}}

// verify returns the identity of a token. Its error is for the log. With api false, the token is not compared with the API
// token, which may be short enough to guess. Users' tokens can't be guessed, so a client that guesses locks out no user behind
// the same address.
func (s *Server) verify(ctx context.Context, token string, api bool) (Identity, error) {
	switch {
	case api && s.tokenGood(token):
		return Identity{Principal: gateway.Principal{Admin: true}}, nil
	case token == "":
		return Identity{}, errors.New("empty token, or another scheme than Bearer")
	case s.opt.Users == nil:
		return Identity{}, errors.New("not the API token")
	}
	id, err := s.opt.Users.Verify(ctx, token)
	id.user = true
	return id, err
}

// identify returns the identity of a request. Without a required token it returns an error.
func (s *Server) identify(r *http.Request) (Identity, error) {
	if !s.TokenNeeded() {
		return acting(r, openIdentity)
	}
	if token, ok := presented(r); ok {
		// The token decides, so a valid cookie does not make up for an invalid token.
		return s.Authenticate(r, token)
	}
	if id, ok := s.sessionOf(r); ok {
		return acting(r, id)
	}
	return Identity{}, errUnauthorized
}

// producer returns the identity for a turn's token, on a route that accepts one, or the zero Identity.
func (s *Server) producer(r *http.Request, e *endpoint) (Identity, error) {
	token, ok := presented(r)
	if !ok || !e.Producer || s.opt.Producer == nil {
		return Identity{}, nil
	}
	turn, err := s.opt.Producer(r.Context(), token)
	return Identity{Principal: gateway.Principal{Turn: turn}}, err
}

// presented returns the token in a request's headers.
func presented(r *http.Request) (token string, ok bool) {
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, bearer, _ := strings.Cut(h, " ")
		if strings.EqualFold(scheme, "Bearer") {
			return strings.TrimSpace(bearer), true
		}
		return "", true // another scheme can't authenticate
	}
	for _, name := range tokenHeaders {
		if h := r.Header.Get(name); h != "" {
			return h, true
		}
	}
	return "", false
}

// BearerToken returns the token of a request of a route with OwnToken, or "".
func BearerToken(r *http.Request) string {
	token, _ := presented(r)
	return token
}

// tokenGood compares a token with the API token in constant time, so that the time reveals neither content nor length.
func (s *Server) tokenGood(token string) bool {
	sum, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.opt.Token))
	return subtle.ConstantTimeCompare(sum[:], want[:]) == 1 && s.opt.Token != ""
}

// acting returns the user for whom an admin's request acts, or the identity itself.
func acting(r *http.Request, id Identity) (Identity, error) {
	subject, tenant := r.Header.Get(HeaderSubject), r.Header.Get(HeaderTenant)
	if subject == "" && tenant == "" && len(r.Header.Values(HeaderSubject)) == 0 {
		return id, nil
	}
	if !id.Admin {
		return Identity{}, errActing
	}
	if subject == "" {
		return Identity{}, Invalid("%s requires a non-empty %s", HeaderTenant, HeaderSubject)
	}
	for name, v := range map[string]string{HeaderSubject: subject, HeaderTenant: tenant} {
		if err := event.CheckID(name, v); err != nil {
			return Identity{}, err
		}
	}
	id.Principal = gateway.Principal{Tenant: tenant, Subject: subject, Scopes: []string{gateway.ScopeAgent}, Acting: true}
	return id, nil
}

// MaxToken is the length in bytes of the longest token.
const MaxToken = 16 << 10

// Identity is the principal of a request and the validity of its credentials.
type Identity struct {
	gateway.Principal
	// when the credentials expire; zero means never, unless the API token changes
	Expires time.Time

	user    bool   // authenticated by a user's token and not by the API token
	session string // id of the session cookie, if there was one
}

// Users verifies the tokens of end users. Several goroutines may call it.
type Users interface {
	// Verify returns the identity of a token's user. If the token is valid except that it has expired, the error wraps
	// ErrExpired. If the token could not be checked, the error wraps ErrNotNow. The error's text never contains the token.
	Verify(ctx context.Context, token string) (Identity, error)
}

// identification is the result of authentication, in a request's context.
type identification struct {
	id  Identity
	err error // why authentication failed; id is zero then
}

type askedKey struct{}

// IdentityOf returns the identity of a request of an [InBand] or [Public] route. It is zero if the request had no valid
// credentials.
func IdentityOf(ctx context.Context) Identity {
	a, _ := ctx.Value(askedKey{}).(identification)
	return a.id
}

// The limit on failed sign-ins of one client, so that tokens can't be guessed.

// attemptRate is how many wrong tokens an address may present. It is enough for typing errors and for a page that repeats
// requests with an old token, and too few for guessing.
var attemptRate = ratelimit.Rate{Tokens: 30, Per: 2 * time.Minute}

// maxAddresses is how many addresses are remembered. Above it, addresses without recent failures are removed first.
const maxAddresses = 10_000

// attempts counts the wrong tokens of each address. The zero value is ready to use.
type attempts struct {
	mu      sync.Mutex
	buckets map[netip.Prefix]*ratelimit.Bucket
}

// wait returns how long an address has to wait until its next token is checked. It returns 0 if the address may try now.
func (a *attempts) wait(from netip.Prefix, at time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.buckets[from]
	if b == nil {
		return 0
	}
	wait, ok := b.Take(at, attemptRate)
	if ok {
		b.Return(attemptRate)
	}
	return wait
}

// failed counts a wrong token.
func (a *attempts) failed(from netip.Prefix, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.buckets[from]
	if b == nil {
		if a.buckets == nil {
			a.buckets = map[netip.Prefix]*ratelimit.Bucket{}
		}
		if len(a.buckets) >= maxAddresses {
			a.forget(at)
		}
		b = &ratelimit.Bucket{}
		a.buckets[from] = b
	}
	b.Take(at, attemptRate)
}

// forget makes room in a full table: it removes the addresses without recent failures. If every address has some, it removes
// arbitrary ones.
func (a *attempts) forget(at time.Time) {
	for k, b := range a.buckets {
		if b.Full(at) {
			delete(a.buckets, k)
		}
	}
	for k := range a.buckets {
		if len(a.buckets) < maxAddresses*3/4 {
			return
		}
		delete(a.buckets, k)
	}
}

// ClientPrefix returns the range of addresses that counts as one client: an IPv4 address, or the /64 that a provider assigns to
// a customer. All unknown addresses count as one client.
func ClientPrefix(r *http.Request) netip.Prefix { return prefixOf(ClientAddr(r)) }

// prefixOf returns the network that counts as one client: an IPv4 address, or the /64 of an IPv6 address, of which a client usually
// has all addresses.
func prefixOf(ip netip.Addr) netip.Prefix {
	if !ip.IsValid() {
		return netip.Prefix{}
	}
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // the address has a zone
	}
	return p
}
