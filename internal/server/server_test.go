package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "sesame-7f3a"

// request makes a request that came over loopback.
func request(method, target string, body io.Reader) *http.Request {
	r := httptest.NewRequest(method, target, body)
	r.RemoteAddr = "127.0.0.1:50000"
	return from(r, "127.0.0.1")
}

// from sets the address to which a request's connection was made.
func from(r *http.Request, ip string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.ParseIP(ip), Port: 31337})))
}

// do answers a request. The error's reason is that of the body.
func do(t *testing.T, s *server.Server, r *http.Request) (res *http.Response, reason string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	res = w.Result()
	if res.StatusCode < 400 {
		return res, ""
	}
	var e struct{ Error, Reason string }
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error == "" {
		t.Errorf("%s %s: status %d with the body %q, not an error in JSON", r.Method, r.URL.Path, res.StatusCode, w.Body)
	}
	if got := res.Header.Get("Content-Type"); got != "application/json; charset=utf-8" {
		t.Errorf("%s %s: error of type %q", r.Method, r.URL.Path, got)
	}
	return res, e.Reason
}

// whoami answers with the principal.
func whoami(w http.ResponseWriter, _ *http.Request, p gateway.Principal) error {
	server.WriteJSON(w, http.StatusOK, p)
	return nil
}

func newServer(opt server.Options) *server.Server {
	s := server.New(opt)
	for access, path := range map[server.Access]string{
		server.Public: "/api/public", server.Authenticated: "/api/known", server.Admin: "/api/admin", server.InBand: "/api/inband",
	} {
		s.Handle(server.Route{Method: http.MethodGet, Pattern: path, Access: access, Handler: whoami})
	}
	s.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/known", Access: server.Authenticated, Handler: whoami})
	return s
}

func TestPrincipals(t *testing.T) {
	secured, open := newServer(server.Options{Token: token}), newServer(server.Options{})
	admin := gateway.Principal{Admin: true}
	alice := gateway.Principal{Tenant: "t1", Subject: "alice", Scopes: []string{gateway.ScopeAgent}}
	h := func(kv ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(kv); i += 2 {
			h.Add(kv[i], kv[i+1])
		}
		return h
	}
	for name, c := range map[string]struct {
		s      *server.Server
		header http.Header
		path   string
		status int
		want   gateway.Principal
	}{
		"no token brought":              {secured, h(), "/api/known", 401, gateway.Principal{}},
		"no token brought, public":      {secured, h(), "/api/public", 200, gateway.Principal{}},
		"no token brought, in band":     {secured, h(), "/api/inband", 200, gateway.Principal{}},
		"bearer":                        {secured, h("Authorization", "Bearer "+token), "/api/known", 200, admin},
		"bearer in capitals":            {secured, h("Authorization", "BEARER "+token), "/api/admin", 200, admin},
		"wrong bearer":                  {secured, h("Authorization", "Bearer "+token+"x"), "/api/known", 401, gateway.Principal{}},
		"empty bearer":                  {secured, h("Authorization", "Bearer "), "/api/known", 401, gateway.Principal{}},
		"wrong bearer, public":          {secured, h("Authorization", "Bearer x"), "/api/public", 200, gateway.Principal{}},
		"wrong bearer, in band":         {secured, h("Authorization", "Bearer x"), "/api/inband", 401, gateway.Principal{}},
		"basic":                         {secured, h("Authorization", "Basic "+token), "/api/known", 401, gateway.Principal{}},
		"eliza's header":                {secured, h("X-Eliza-Token", token), "/api/known", 200, admin},
		"elizaos's header":              {secured, h("X-ElizaOS-Token", token), "/api/known", 200, admin},
		"api key":                       {secured, h("X-Api-Key", token), "/api/known", 200, admin},
		"wrong api key":                 {secured, h("X-Api-Key", "x"), "/api/known", 401, gateway.Principal{}},
		"bearer decides before a key":   {secured, h("Authorization", "Bearer x", "X-Api-Key", token), "/api/known", 401, gateway.Principal{}},
		"acting subject":                {secured, h("Authorization", "Bearer "+token, "Leat-Subject", "alice", "Leat-Tenant", "t1"), "/api/known", 200, alice},
		"acting subject isn't admin":    {secured, h("Authorization", "Bearer "+token, "Leat-Subject", "alice"), "/api/admin", 403, gateway.Principal{}},
		"acting without a token":        {secured, h("Leat-Subject", "alice"), "/api/known", 401, gateway.Principal{}},
		"tenant without a subject":      {secured, h("X-Api-Key", token, "Leat-Tenant", "t1"), "/api/known", 400, gateway.Principal{}},
		"empty subject":                 {secured, h("X-Api-Key", token, "Leat-Subject", ""), "/api/known", 400, gateway.Principal{}},
		"subject too long":              {secured, h("X-Api-Key", token, "Leat-Subject", strings.Repeat("a", 257)), "/api/known", 400, gateway.Principal{}},
		"subject with a control":        {secured, h("X-Api-Key", token, "Leat-Subject", "a\x01b"), "/api/known", 400, gateway.Principal{}},
		"query tokens count for naught": {secured, h(), "/api/known?token=" + token, 401, gateway.Principal{}},
		"unknown path, no token":        {secured, h(), "/api/nothing", 401, gateway.Principal{}},
		"unknown path":                  {secured, h("X-Api-Key", token), "/api/nothing", 404, gateway.Principal{}},
		"open":                          {open, h(), "/api/admin", 200, admin},
		"open, any token":               {open, h("Authorization", "Bearer whatever"), "/api/admin", 200, admin},
		"open, acting":                  {open, h("Leat-Subject", "alice", "Leat-Tenant", "t1"), "/api/known", 200, alice},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(http.MethodGet, "http://localhost:31337"+c.path, nil)
			r.Header = c.header
			res, _ := do(t, c.s, r)
			if res.StatusCode != c.status {
				t.Fatalf("status %d, want %d", res.StatusCode, c.status)
			}
			if (res.StatusCode == 401) != (res.Header.Get("WWW-Authenticate") != "") {
				t.Error("WWW-Authenticate belongs to 401, and to it alone")
			}
			if c.status != 200 {
				return
			}
			var got gateway.Principal
			if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if got.Admin != c.want.Admin || got.Subject != c.want.Subject || got.Tenant != c.want.Tenant || !slices.Equal(got.Scopes, c.want.Scopes) {
				t.Errorf("principal %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestHost(t *testing.T) {
	secured := newServer(server.Options{Token: token, Hosts: []string{"leat.example", "fixed.example:8443"}})
	open := newServer(server.Options{Hosts: []string{"leat.example", "*"}})
	all := newServer(server.Options{Token: token, Hosts: []string{"*"}})
	for _, c := range []struct {
		s        *server.Server
		host, ip string
		ok       bool
	}{
		{open, "localhost:31337", "127.0.0.1", true},
		{open, "LOCALHOST", "127.0.0.1", true},
		{open, "leat.localhost:1", "127.0.0.1", true},
		{open, "127.0.0.1:31337", "127.0.0.1", true},
		{open, "[::1]:31337", "::1", true},
		{open, "leat.example", "127.0.0.1", true},
		{open, "evil.example", "127.0.0.1", false}, // the star is for servers with a token
		{open, "localhost.evil.example", "127.0.0.1", false},
		{open, "localhost", "192.0.2.7", false}, // without a token, only this machine
		{open, "192.0.2.7", "192.0.2.7", false},
		{secured, "evil.example", "127.0.0.1", false},
		{secured, "leat.example", "192.0.2.7", true},
		{secured, "leat.example:31337", "192.0.2.7", true},
		{secured, "fixed.example:8443", "192.0.2.7", true},
		{secured, "fixed.example:8444", "192.0.2.7", false},
		{secured, "192.0.2.7:31337", "192.0.2.7", true}, // the very address of the connection
		{secured, "192.0.2.8:31337", "192.0.2.7", false},
		{secured, "", "192.0.2.7", false},
		{all, "anything.example", "192.0.2.7", true},
	} {
		r := request(http.MethodGet, "/api/public", nil)
		r.Host = c.host
		res, _ := do(t, c.s, from(r, c.ip))
		if (res.StatusCode == 200) != c.ok || (!c.ok && res.StatusCode != 403) {
			t.Errorf("host %q at %s: status %d, allowed %v", c.host, c.ip, res.StatusCode, c.ok)
		}
	}
	t.Run("unknown address", func(t *testing.T) {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/api/public", nil)
		if res, _ := do(t, open, r); res.StatusCode != 403 {
			t.Errorf("a connection of which the address is not known: status %d", res.StatusCode)
		}
	})
}

func TestOrigin(t *testing.T) {
	some := newServer(server.Options{AllowedOrigins: []string{"https://app.example"}})
	every := newServer(server.Options{AllowedOrigins: []string{"*"}})
	for _, c := range []struct {
		s      *server.Server
		origin string
		status int
		cors   string
	}{
		{some, "", 200, ""},
		{some, "http://localhost:31337", 200, ""},
		{some, "http://localhost:31338", 403, ""},
		{some, "https://app.example", 200, "https://app.example"},
		{some, "https://app.example.evil", 403, ""},
		{some, "http://app.example", 403, ""},
		{some, "null", 403, ""},
		{some, "file://", 403, ""},
		{some, "ftp://localhost:31337", 403, ""},
		{some, "https://localhost:31337", 403, ""},
		{some, "http://evil@localhost:31337", 403, ""},
		{some, "http://localhost:31337/", 403, ""},
		{some, "http://localhost:31337#", 403, ""},
		{every, "https://any.example", 200, "https://any.example"},
	} {
		r := request(http.MethodPost, "http://localhost:31337/api/known", nil)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		res, _ := do(t, c.s, r)
		if res.StatusCode != c.status || res.Header.Get("Access-Control-Allow-Origin") != c.cors {
			t.Errorf("origin %q: %d, CORS for %q; want %d, %q", c.origin, res.StatusCode, res.Header.Get("Access-Control-Allow-Origin"), c.status, c.cors)
		}
	}
	// A proxy that ends TLS and is not trusted: the browser, or the proxy's headers, say that the page is the gateway's own.
	for header, status := range map[string]int{"Sec-Fetch-Site: same-origin": 200, "X-Forwarded-Proto: https": 200, "Sec-Fetch-Site: same-site": 403, "Accept: text/html": 403} {
		r := request(http.MethodPost, "http://localhost:31337/api/known", nil)
		r.Header.Set("Origin", "https://localhost:31337")
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
		if res, _ := do(t, some, r); res.StatusCode != status {
			t.Errorf("%s: %d, want %d", header, res.StatusCode, status)
		}
	}
	r := request(http.MethodPost, "http://localhost:31337/api/known", nil)
	r.Header["Origin"] = []string{"http://localhost:31337", "https://evil.example"}
	if res, _ := do(t, some, r); res.StatusCode != 403 {
		t.Errorf("two origins: %d", res.StatusCode)
	}
}

func TestPreflight(t *testing.T) {
	s := newServer(server.Options{Token: token, AllowedOrigins: []string{"https://app.example"}})
	r := request(http.MethodOptions, "http://localhost:31337/api/known", nil)
	r.Header.Set("Origin", "https://app.example")
	r.Header.Set("Access-Control-Request-Method", "POST")
	r.Header.Set("Access-Control-Request-Headers", "authorization, x-elizaos-client-id")
	res, _ := do(t, s, r)
	if res.StatusCode != 204 || res.Header.Get("Access-Control-Allow-Methods") != "GET, HEAD, POST" {
		t.Errorf("preflight: %d %v", res.StatusCode, res.Header)
	}
	allowed := strings.ToLower(res.Header.Get("Access-Control-Allow-Headers"))
	for _, h := range []string{"authorization", "content-type", "x-elizaos-client-id", "x-elizaos-ui-language", "last-event-id", "upload-offset"} {
		if !strings.Contains(allowed, h) {
			t.Errorf("preflight does not allow %s", h)
		}
	}
	if res.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("foreign pages must not use the cookie")
	}
	r.URL.Path = "/api/nothing"
	if res, _ := do(t, s, r); res.StatusCode != 404 {
		t.Errorf("preflight of nothing: %d", res.StatusCode)
	}
}

func TestRouting(t *testing.T) {
	s := newServer(server.Options{})
	s.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/things/{thing}", Access: server.Public, Handler: func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		server.WriteJSON(w, 200, r.PathValue("thing"))
		return nil
	}})
	t.Run("path values", func(t *testing.T) {
		res, _ := do(t, s, request(http.MethodGet, "http://localhost/api/things/a%2Fb", nil))
		b, _ := io.ReadAll(res.Body)
		if string(b) != `"a/b"`+"\n" {
			t.Errorf("got %q", b)
		}
	})
	t.Run("method", func(t *testing.T) {
		res, reason := do(t, s, request(http.MethodDelete, "http://localhost/api/known", nil))
		if res.StatusCode != 405 || reason != server.ReasonMethod || res.Header.Get("Allow") != "GET, HEAD, POST" {
			t.Errorf("%d %s, Allow %q", res.StatusCode, reason, res.Header.Get("Allow"))
		}
	})
	t.Run("path", func(t *testing.T) {
		if res, reason := do(t, s, request(http.MethodGet, "http://localhost/nothing", nil)); res.StatusCode != 404 || reason != server.ReasonNotFound {
			t.Errorf("%d %s", res.StatusCode, reason)
		}
	})
	t.Run("undecided", func(t *testing.T) {
		for _, rt := range []server.Route{
			{Method: "GET", Pattern: "/x", Handler: whoami},
			{Method: "GET", Pattern: "/x", Handler: whoami, Access: server.InBand + 1},
			{Method: "GET", Pattern: "/x", Access: server.Public},
			{Pattern: "/x", Handler: whoami, Access: server.Public},
			{Method: "GET", Pattern: "/api/known", Handler: whoami, Access: server.Public},
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%+v was registered", rt)
					}
				}()
				s.Handle(rt)
			}()
		}
	})
}

func TestErrors(t *testing.T) {
	var log bytes.Buffer
	s := server.New(server.Options{Token: token, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	fail := map[string]error{
		"/api/internal": errors.New("secret path /var/lib"),
		"/api/rejected": &gateway.Rejection{Reason: gateway.ReasonUnfinished, Message: "a turn is unfinished"},
		"/api/draining": &gateway.Rejection{Reason: gateway.ReasonDraining, Message: "stopping"},
		"/api/gone":     fmt.Errorf("look: %w", gateway.ErrNotFound),
		"/api/down":     fmt.Errorf("%w: disk full", gateway.ErrUnavailable),
		"/api/stopped":  fmt.Errorf("append: %w", context.Canceled), // while its client waits
	}
	for path, err := range fail {
		s.Handle(server.Route{Method: "GET", Pattern: path, Access: server.Public, Handler: func(http.ResponseWriter, *http.Request, gateway.Principal) error { return err }})
	}
	s.Handle(server.Route{Method: "GET", Pattern: "/api/panic", Access: server.Public, Handler: func(http.ResponseWriter, *http.Request, gateway.Principal) error { panic("ouch") }})
	s.Handle(server.Route{Method: "GET", Pattern: "/api/late", Access: server.Public, Handler: func(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
		server.WriteJSON(w, 200, "fine")
		return errors.New("after the answer")
	}})
	for path, want := range map[string]struct {
		status int
		body   string
		retry  string
	}{
		"/api/internal": {500, `{"error":"internal error","reason":"internal"}`, ""},
		"/api/panic":    {500, `{"error":"internal error","reason":"internal"}`, ""},
		"/api/rejected": {409, `{"error":"a turn is unfinished","reason":"unfinished","rejected":true}`, ""},
		"/api/draining": {503, `{"error":"stopping","reason":"draining","rejected":true,"retryAfter":2000}`, "2"},
		"/api/gone":     {404, `{"error":"not found","reason":"not_found"}`, ""},
		"/api/down":     {503, `{"error":"the gateway can't do this now; try again in a moment","reason":"unavailable","retryAfter":2000}`, "2"},
		"/api/stopped":  {503, `{"error":"the gateway is stopping; try again at once","reason":"unavailable","retryAfter":250}`, "1"},
		"/api/late":     {200, `"fine"`, ""},
	} {
		r := request("GET", "http://localhost"+path+"?token="+token+"&q=private", nil)
		r.Header.Set("X-Api-Key", token)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != want.status || strings.TrimSpace(w.Body.String()) != want.body || w.Header().Get("Retry-After") != want.retry {
			t.Errorf("%s: %d %s, Retry-After %q", path, w.Code, w.Body, w.Header().Get("Retry-After"))
		}
	}
	for _, want := range []string{"secret path", "ouch", "after the answer", "route=/api/gone"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log doesn't contain %q", want)
		}
	}
	for _, secret := range []string{token, "private"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log tells %q", secret)
		}
	}
}
