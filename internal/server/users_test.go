package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// badges are tokens such as "alice/60": the subject and for how many seconds it is good.
type badges struct{}

func (badges) Verify(_ context.Context, token string) (server.Identity, error) {
	subject, life, ok := strings.Cut(token, "/")
	var seconds int
	if _, err := fmt.Sscan(life, &seconds); !ok || err != nil {
		return server.Identity{}, errors.New("no badge")
	}
	switch {
	case subject == "down":
		return server.Identity{}, server.ErrNotNow
	case seconds <= 0:
		return server.Identity{}, fmt.Errorf("badge: %w", server.ErrExpired)
	}
	id := server.Identity{Principal: gateway.Principal{Tenant: "t", Subject: subject}, Expires: time.Now().Add(time.Duration(seconds) * time.Second)}
	id.Admin = subject == "root"
	return id, nil
}

// asks makes a request to /api/known by a proof: a token, or a cookie.
func asks(s *server.Server, proof any, headers ...string) (status int, reason, body string) {
	r := request(http.MethodGet, "http://localhost:31337/api/known", nil)
	switch p := proof.(type) {
	case string:
		r.Header.Set("Authorization", "Bearer "+p)
	case *http.Cookie:
		r.AddCookie(p)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := record(s, r)
	return w.Code, field(w.Body.String(), "reason"), w.Body.String()
}

func field(body, name string) string {
	_, rest, _ := strings.Cut(body, `"`+name+`":"`)
	v, _, _ := strings.Cut(rest, `"`)
	return v
}

// TestUsers checks the principal that a user's token identifies, with and without an API token configured.
func TestUsers(t *testing.T) {
	for _, token := range []string{token, ""} {
		s := newServer(server.Options{Token: token, Users: badges{}})
		for _, c := range []struct {
			proof   any
			headers []string
			status  int
			reason  string
		}{
			{nil, nil, 401, "unauthorized"},
			{"", nil, 401, "unauthorized"},
			{"nonsense", nil, 401, "unauthorized"},
			{"alice/60", nil, 200, ""},
			{"alice/0", nil, 401, "expired"},
			{"down/60", nil, 503, "unavailable"},
			{"alice/60", []string{"Leat-Subject", "bob"}, 403, "forbidden"},
			{"alice/60", []string{"Leat-Subject", "alice"}, 403, "forbidden"},
			{"alice/60", []string{"Leat-Tenant", "other"}, 403, "forbidden"},
			{"alice/60", []string{"Leat-Subject", ""}, 403, "forbidden"},
			{"root/60", []string{"Leat-Subject", "bob", "Leat-Tenant", "t"}, 200, ""},
		} {
			status, reason, body := asks(s, c.proof, c.headers...)
			if status != c.status || reason != c.reason {
				t.Errorf("%v %v, API token %q: %d %s, want %d %s", c.proof, c.headers, token, status, body, c.status, c.reason)
			}
		}
	}
	// A gateway without an API token has no holder of an empty one.
	s := newServer(server.Options{Users: badges{}})
	for _, h := range []string{"Bearer ", "Bearer", "bearer  ", "Basic Og=="} {
		if status, _, body := asks(s, nil, "Authorization", h); status != 401 {
			t.Errorf("%q: %d %s", h, status, body)
		}
	}
	// Other machines can reach it, since every request needs a token.
	r := from(request(http.MethodGet, "http://192.0.2.7:31337/api/known", nil), "192.0.2.7")
	if res, reason := do(t, s, r); res.StatusCode != 401 || reason != "unauthorized" {
		t.Errorf("from outside: %d %s", res.StatusCode, reason)
	}
}

func swap(s *server.Server, body string, headers ...string) (*http.Cookie, int, string) {
	r := request(http.MethodPost, "http://localhost:31337/api/auth/session", strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := record(s, r)
	if c := w.Result().Cookies(); len(c) == 1 {
		return c[0], w.Code, w.Body.String()
	}
	return nil, w.Code, w.Body.String()
}

// TestUserSession checks that a cookie authenticates the user whose token was swapped for it, and expires with that token.
func TestUserSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memoryStore{}
		opt := server.Options{Token: token, Users: badges{}, Sessions: store}
		s := newServer(opt)
		c, status, body := swap(s, `{"token":"alice/90"}`)
		if c == nil || c.MaxAge != 90 || status != 200 || field(body, "subject") != "alice" || !strings.Contains(body, fmt.Sprint(time.Now().Add(90*time.Second).UnixMilli())) {
			t.Fatalf("%+v %d %s", c, status, body)
		}
		wantWho := func(s *server.Server, c *http.Cookie, want string) {
			t.Helper()
			status, _, body := asks(s, c)
			if got := field(body, "Subject"); (status == 200) != (want != "") || got != want {
				t.Errorf("%d %s, want %q", status, body, want)
			}
		}
		wantWho(s, c, "alice")
		wantWho(newServer(opt), c, "alice") // after a restart
		changed := opt
		changed.Token = "another"
		wantWho(newServer(changed), c, "alice") // the API token has nothing to do with it
		changed.Users = nil
		wantWho(newServer(changed), c, "") // users have no tokens any more
		changed.Users, changed.Sessions = badges{}, nil
		wantWho(newServer(changed), c, "") // another data folder
		if status, _, _ := asks(s, c, "Leat-Subject", "bob"); status != 403 {
			t.Errorf("alice's cookie acts for bob: %d", status)
		}

		// The token in the headers does as well, and the body wins. An admin's cookie may act, one for a user is that user.
		if _, status, body := swap(s, "", "Authorization", "Bearer bob/60"); status != 200 || field(body, "subject") != "bob" {
			t.Errorf("by header: %d %s", status, body)
		}
		if _, status, body := swap(s, `{"token":"bob/60"}`, "Authorization", "Bearer alice/60"); status != 200 || field(body, "subject") != "bob" {
			t.Errorf("by both: %d %s", status, body)
		}
		acting, status, body := swap(s, "", "Authorization", "Bearer "+token, "Leat-Subject", "carol", "Leat-Tenant", "t")
		if status != 200 || field(body, "subject") != "carol" || strings.Contains(body, "admin") {
			t.Errorf("acting: %d %s", status, body)
		}
		wantWho(s, acting, "carol")
		if status, _, _ := asks(s, acting, "Leat-Subject", "bob"); status != 403 {
			t.Errorf("carol's cookie acts for bob: %d", status)
		}
		for _, bad := range []struct {
			body    string
			headers []string
			status  int
		}{
			{"", nil, 401},
			{`{"token":""}`, nil, 401},
			{`{"token":"wrong"}`, nil, 401},
			{`{"token":"alice/0"}`, nil, 401},
			{`{"token":"down/60"}`, nil, 503},
			{`{"token":"alice/60"}`, []string{"Leat-Subject", "bob"}, 403},
			{"", []string{"Authorization", "Bearer wrong"}, 401},
			{`{"token":5}`, nil, 400},
			{`{"token":"alice/60","subject":"bob"}`, nil, 400},
			{"", []string{"Cookie", c.Name + "=" + c.Value}, 403}, // a cookie without an Origin, so not from the page
			{"", []string{"Cookie", c.Name + "=" + c.Value, "Origin", "http://localhost:31337"}, 401},
		} {
			if got, status, body := swap(s, bad.body, bad.headers...); got != nil || status != bad.status {
				t.Errorf("%s %v: %d %s, want %d", bad.body, bad.headers, status, body, bad.status)
			}
		}

		// A login ignores the cookie of another user that it carries and gets a new one, so sessions can't be planted.
		fresh, _, _ := swap(s, `{"token":"bob/60"}`, "Cookie", c.Name+"="+c.Value, "Origin", "http://localhost:31337")
		if fresh == nil || fresh.Value == c.Value {
			t.Fatalf("planted: %+v", fresh)
		}
		wantWho(s, fresh, "bob")
		again, _, _ := swap(s, `{"token":"bob/60"}`)
		if again.Value == fresh.Value {
			t.Error("two sessions have one cookie")
		}
		// Pieces of two cookies make none.
		text, _, _ := strings.Cut(fresh.Value, ".")
		_, mac, _ := strings.Cut(c.Value, ".")
		wantWho(s, &http.Cookie{Name: c.Name, Value: text + "." + mac}, "")

		time.Sleep(89 * time.Second)
		wantWho(s, c, "alice")
		time.Sleep(time.Second)
		wantWho(s, c, "")
	})
}

// TestAttempts: an address that presents wrong tokens has to wait before the API token is good again; other addresses, users' own
// tokens and cookies don't, and the log knows no token.
func TestAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newServer(server.Options{Token: token, Users: badges{}, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		from := func(addr, proof string) (int, http.Header) {
			r := request(http.MethodGet, "http://localhost:31337/api/known", nil)
			r.RemoteAddr = addr
			r.Header.Set("Authorization", "Bearer "+proof)
			w := record(s, r)
			return w.Code, w.Result().Header
		}
		cookie, _, _ := swap(s, `{"token":"alice/9000"}`)
		for range 200 { // what is merely old, or can't be looked at, counts for nothing
			if status, _ := from("192.0.2.1:5", "alice/0"); status != 401 {
				t.Fatalf("an old token: %d", status)
			}
			from("192.0.2.1:5", "down/5")
		}
		tries := 0
		for status := 401; status == 401; tries++ {
			status, _ = from("192.0.2.1:5", fmt.Sprintf("secret-guess-%d", tries))
		}
		if tries != 31 {
			t.Errorf("refused at the %d-th try", tries)
		}
		status, h := from("192.0.2.1:6", token) // another port, and even the right one
		if status != 429 || h.Get("Retry-After") != "4" {
			t.Errorf("%d, Retry-After %q", status, h.Get("Retry-After"))
		}
		if status, _ := from("192.0.2.1:6", "alice/60"); status != 200 {
			t.Errorf("a user at the same address: %d", status)
		}
		for _, addr := range []string{"192.0.2.2:5", "[2001:db8::1]:5"} {
			if status, _ := from(addr, token); status != 200 {
				t.Errorf("from %s: %d", addr, status)
			}
		}
		if status, _, _ := asks(s, cookie); status != 200 {
			t.Errorf("by a cookie: %d", status)
		}
		time.Sleep(4 * time.Second)
		if status, _ := from("192.0.2.1:5", token); status != 200 {
			t.Errorf("after the wait: %d", status)
		}
		// One who has a whole network of addresses has one in the end.
		for i := range 31 {
			status, _ = from(fmt.Sprintf("[2001:db8:1:2::%x]:5", i), "wrong")
		}
		if status != 429 {
			t.Errorf("by a /64: %d", status)
		}
		if strings.Contains(log.String(), "guess") || strings.Contains(log.String(), token) || !strings.Contains(log.String(), "192.0.2.1") {
			t.Errorf("log: %.600s", log.String())
		}
	})
}
