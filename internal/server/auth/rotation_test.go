package auth_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/auth"
)

// A changed key file is used after a few seconds. An incomplete or missing file leaves the last good keys in use.
func TestFileRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys()
		old, next := signed(t, jwt.SigningMethodRS256, k.rsa, nil, good(nil)), signed(t, jwt.SigningMethodES256, k.ec, nil, good(nil))
		path := file(t, pemOf(t, k.rsa.Public()))
		v := verifier(t, auth.Config{KeyFile: path})
		later := func() { time.Sleep(6 * time.Second) }
		wantSubject(t, v, old, "alice")
		wantRefused(t, v, next, "no key fits")

		write(t, path, pemOf(t, k.rsa.Public(), k.ec.Public()))
		later()
		wantSubject(t, v, old, "alice")
		wantSubject(t, v, next, "alice")

		write(t, path, pemOf(t, k.ec.Public())[:60])
		later()
		wantSubject(t, v, old, "alice")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		later()
		wantSubject(t, v, old, "alice")

		write(t, path, pemOf(t, k.ec.Public()))
		later()
		wantRefused(t, v, old, "no key fits")
		wantSubject(t, v, next, "alice")
	})
}

// service is an identity service's key set. Its zero value is down.
type service struct {
	mu    sync.Mutex
	set   string
	asked int
	slow  time.Duration
	reply func(*http.Request) (*http.Response, error)
}

func (s *service) serve(set string) { s.mu.Lock(); s.set = set; s.mu.Unlock() }

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.slow > 0 {
		select {
		case <-time.After(s.slow):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if s.reply != nil {
		return s.reply(r)
	}
	if s.set == "" {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body(s.set), Request: r}, nil
}

func (s *service) wantAsked(t *testing.T, want int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked != want {
		t.Errorf("the URL was asked %d times, want %d", s.asked, want)
	}
}

const keysURL = "https://user:hidden@id.example/keys?key=hidden"

func TestJWKSRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys()
		token := func(kid string, key any) string {
			h := claims{}
			if kid != "" {
				h["kid"] = kid
			}
			return signed(t, jwt.SigningMethodRS256, key, h, good(claims{"exp": time.Now().Add(48 * time.Hour).Unix()}))
		}
		old, next := token("old", k.rsa), token("next", k.otherRSA)
		var log bytes.Buffer
		id := &service{}
		v := verifier(t, auth.Config{JWKS: keysURL, Transport: id, Log: slog.New(slog.NewTextHandler(&log, nil))})
		id.wantAsked(t, 0)

		// Down from the start: the token can't be verified.
		if _, err := v.Verify(t.Context(), old); !errors.Is(err, server.ErrNotNow) || errors.Is(err, auth.ErrToken) {
			t.Errorf("without keys: %v", err)
		}
		id.serve(jwks(t, "old", k.rsa.Public()))
		if _, err := v.Verify(t.Context(), old); !errors.Is(err, server.ErrNotNow) {
			t.Errorf("asked again at once: %v", err)
		}
		time.Sleep(10 * time.Second)
		wantSubject(t, v, old, "alice")
		id.wantAsked(t, 2)
		for range 100 {
			wantSubject(t, v, old, "alice")
			wantSubject(t, v, token("", k.rsa), "alice") // who names no key may have any
		}
		id.wantAsked(t, 2)

		// Unknown keys: the URL is asked at a bounded rate, whatever comes.
		for range 100 {
			wantRefused(t, v, next, "no key fits")
		}
		id.wantAsked(t, 2)
		time.Sleep(10 * time.Second)
		for range 100 {
			wantRefused(t, v, next, "no key fits")
		}
		id.wantAsked(t, 3)

		// The new key is taken in as soon as a token names it.
		id.serve(jwks(t, "old", k.rsa.Public(), "next", k.otherRSA.Public()))
		time.Sleep(10 * time.Second)
		wantSubject(t, v, next, "alice")
		wantSubject(t, v, old, "alice")
		id.wantAsked(t, 4)
		// A kid belongs to its key.
		wantRefused(t, v, token("old", k.otherRSA), "signature is invalid")

		// The old one is withdrawn: refused at the latest when the keys are five minutes old.
		id.serve(jwks(t, "next", k.otherRSA.Public()))
		time.Sleep(5 * time.Minute)
		wantRefused(t, v, old, "no key fits")
		wantSubject(t, v, next, "alice")
		id.wantAsked(t, 5)

		// Down for a day: the last valid keys stay in use.
		id.serve("")
		for range 24 {
			time.Sleep(time.Hour)
			wantSubject(t, v, next, "alice")
		}
		for _, nonsense := range []string{"{}", "[]", "<html>", `{"keys":[]}`, `{"keys":[{"kty":"oct","k":"AAAA","kid":"next"}]}`, strings.Repeat(" ", 600<<10)} {
			id.serve(nonsense)
			time.Sleep(time.Hour)
			wantSubject(t, v, next, "alice")
		}
		if s := log.String(); strings.Contains(s, "hidden") || !strings.Contains(s, "id.example/keys") {
			t.Errorf("log: %s", s)
		}
	})
}

// Many verifications at once cause one fetch. A key server that hangs doesn't delay tokens with a known key, and delays others
// by a few seconds only.
func TestJWKSAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys()
		id := &service{set: jwks(t, "a", k.ec.Public()), slow: time.Second}
		v := verifier(t, auth.Config{JWKS: keysURL, Transport: id})
		tok := signed(t, jwt.SigningMethodES256, k.ec, claims{"kid": "a"}, good(nil))
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { wantSubject(t, v, tok, "alice") })
		}
		all.Wait()
		id.wantAsked(t, 1)

		id.slow = time.Hour
		time.Sleep(6 * time.Minute)
		begin := time.Now()
		all.Go(func() { wantSubject(t, v, tok, "alice") })
		synctest.Wait() // it asks
		wantSubject(t, v, tok, "alice")
		if d := time.Since(begin); d != 0 {
			t.Errorf("one who has the key waited %v", d)
		}
		all.Wait()
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("who asked waited %v", d)
		}
		// A caller that gives up returns at once.
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		unknown := signed(t, jwt.SigningMethodES256, k.ec, claims{"kid": "b"}, good(nil))
		all.Go(func() { wantRefused(t, v, unknown, "no key fits") })
		synctest.Wait()
		if _, err := v.Verify(ctx, unknown); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("given up: %v", err)
		}
		all.Wait()
	})
}

// Keys for another use and of other types are ignored, and symmetric keys are never accepted.
func TestJWKSKinds(t *testing.T) {
	k := keys()
	set := jwks(t, "rsa", k.rsa.Public(), "ec", k.ec.Public(), "ed", k.ed.Public(), "small", k.smallRSA.Public(), "p384", k.ec384.Public())
	set = strings.Replace(set, `{"keys":[`, `{"keys":[{"kty":"new"},{"kty":"oct","kid":"oct","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"},{"kty":"RSA","kid":"broken"},5,`, 1)
	enc := strings.Replace(jwks(t, "enc", k.otherRSA.Public()), `"use":"sig"`, `"use":"enc"`, 1)
	v := verifier(t, auth.Config{JWKS: keysURL, Transport: &service{set: set}})
	wantSubject(t, v, signed(t, jwt.SigningMethodRS256, k.rsa, claims{"kid": "rsa"}, good(nil)), "alice")
	wantSubject(t, v, signed(t, jwt.SigningMethodES256, k.ec, claims{"kid": "ec"}, good(nil)), "alice")
	wantSubject(t, v, signed(t, jwt.SigningMethodEdDSA, k.ed, claims{"kid": "ed"}, good(nil)), "alice")
	wantRefused(t, v, signed(t, jwt.SigningMethodRS256, k.smallRSA, claims{"kid": "small"}, good(nil)), "no key fits")
	wantRefused(t, v, signed(t, jwt.SigningMethodHS256, []byte(secret), claims{"kid": "oct"}, good(nil)), "no key fits")
	wantRefused(t, v, signed(t, jwt.SigningMethodRS256, k.rsa, claims{"kid": "ec"}, good(nil)), "no key fits")
	e := verifier(t, auth.Config{JWKS: keysURL, Transport: &service{set: enc}})
	if _, err := e.Verify(t.Context(), signed(t, jwt.SigningMethodRS256, k.otherRSA, claims{"kid": "enc"}, good(nil))); !errors.Is(err, server.ErrNotNow) {
		t.Errorf("a key for encryption: %v", err)
	}
}

// Redirects must stay on https, and their number is limited.
func TestJWKSRedirects(t *testing.T) {
	k := keys()
	tok := signed(t, jwt.SigningMethodES256, k.ec, nil, good(nil))
	for to, good := range map[string]bool{"https://cdn.example/keys": true, "http://cdn.example/keys": false, keysURL: false} {
		id := &service{}
		id.reply = func(r *http.Request) (*http.Response, error) {
			if to != keysURL && r.URL.Host == "cdn.example" {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body(jwks(t, "", k.ec.Public())), Request: r}, nil
			}
			return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {to}}, Body: body(""), Request: r}, nil
		}
		_, err := verifier(t, auth.Config{JWKS: keysURL, Transport: id}).Verify(t.Context(), tok)
		if (err == nil) != good {
			t.Errorf("to %s: %v", to, err)
		}
	}
}
