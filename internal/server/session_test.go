package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

func record(s *server.Server, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func login(s *server.Server, tok string) *httptest.ResponseRecorder {
	return record(s, request(http.MethodPost, "http://localhost:31337/api/auth/session", strings.NewReader(`{"token":"`+tok+`"}`)))
}

// memoryStore is a session store with a fixed key.
type memoryStore map[string]time.Time

func (memoryStore) Key() []byte { return []byte("0123456789abcdef0123456789abcdef") }

func (m memoryStore) IsEnded(id string) bool { return !m[id].IsZero() }

func (m memoryStore) End(_ context.Context, id string, until time.Time) error {
	m[id] = until
	return nil
}

// with asks for who one is, with a cookie.
func with(s *server.Server, host string, c *http.Cookie) int {
	r := request(http.MethodGet, "http://"+host+"/api/known", nil)
	if c != nil {
		r.AddCookie(c)
	}
	return record(s, r).Code
}

func TestSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memoryStore{}
		s := newServer(server.Options{Token: token, SessionLife: time.Hour, Sessions: store})
		if w := login(s, "wrong"); w.Code != 401 || len(w.Result().Cookies()) != 0 {
			t.Errorf("wrong token: %d %v", w.Code, w.Result().Cookies())
		}
		w := login(s, token)
		cookies := w.Result().Cookies()
		if w.Code != 200 || len(cookies) != 1 {
			t.Fatalf("login: %d %s", w.Code, w.Body)
		}
		c := cookies[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure || c.MaxAge != 3600 || c.Name != "leat_session_31337" {
			t.Errorf("cookie %+v", c)
		}
		if strings.Contains(c.Value, token) {
			t.Error("the cookie tells the token")
		}
		if got := with(s, "localhost:31337", c); got != 200 {
			t.Errorf("with the cookie: %d", got)
		}
		if got := with(newServer(server.Options{Token: token, Sessions: store}), "localhost:31337", c); got != 200 {
			t.Errorf("after a restart: %d", got)
		}
		if got := with(newServer(server.Options{Token: "another", Sessions: store}), "localhost:31337", c); got != 401 {
			t.Errorf("after the token changed: %d", got)
		}
		for name, value := range map[string]string{
			"longer life": strings.Replace(c.Value, ".", ".9", 1), "no mac": c.Value[:strings.LastIndexByte(c.Value, '.')+1], "nothing": "", "dots": "..",
		} {
			if got := with(s, "localhost:31337", &http.Cookie{Name: c.Name, Value: value}); got != 401 {
				t.Errorf("forged cookie (%s): %d", name, got)
			}
		}
		// A foreign page may make a browser ask, but not with its origin.
		r := request(http.MethodGet, "http://localhost:31337/api/known", nil)
		r.AddCookie(c)
		r.Header.Set("Origin", "https://evil.example")
		if got := record(s, r).Code; got != 403 {
			t.Errorf("cookie from a foreign origin: %d", got)
		}
		// A wrong token is refused even with a valid cookie.
		r = request(http.MethodGet, "http://localhost:31337/api/known", nil)
		r.AddCookie(c)
		r.Header.Set("Authorization", "Bearer wrong")
		if got := record(s, r).Code; got != 401 {
			t.Errorf("wrong token with a valid cookie: %d", got)
		}
		time.Sleep(time.Hour)
		if got := with(s, "localhost:31337", c); got != 401 {
			t.Errorf("after its life: %d", got)
		}
	})
}

func TestSessionState(t *testing.T) {
	state := func(s *server.Server, header ...string) (got struct{ TokenNeeded, Authenticated, Admin bool }) {
		r := request(http.MethodGet, "http://localhost:31337/api/auth/session", nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := record(s, r)
		if err := json.Unmarshal(w.Body.Bytes(), &got); w.Code != 200 || err != nil {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return got
	}
	secured, open := server.New(server.Options{Token: token, TrustedProxies: prefixes("127.0.0.1/32")}), server.New(server.Options{})
	if got := state(secured); !got.TokenNeeded || got.Authenticated {
		t.Errorf("without a token: %+v", got)
	}
	if got := state(secured, "X-Api-Key", token); !got.TokenNeeded || !got.Authenticated || !got.Admin {
		t.Errorf("with the token: %+v", got)
	}
	if got := state(open); got.TokenNeeded || !got.Authenticated {
		t.Errorf("no token configured: %+v", got)
	}
	if w := login(open, "x"); w.Code != 200 || len(w.Result().Cookies()) != 0 {
		t.Errorf("login where no token is configured: %d %v", w.Code, w.Result().Cookies())
	}
	r := request(http.MethodPost, "http://leat.localhost/api/auth/session", strings.NewReader(`{"token":"`+token+`"}`))
	r.Header.Set("X-Forwarded-Proto", "https")
	if c := record(secured, r).Result().Cookies(); len(c) != 1 || !c[0].Secure || c[0].Name != "__Host-leat_session" {
		t.Errorf("behind TLS: %v", c)
	}
	out := record(secured, request(http.MethodDelete, "http://localhost:31337/api/auth/session", nil))
	if c := out.Result().Cookies(); out.Code != 204 || len(c) != 1 || c[0].MaxAge >= 0 {
		t.Errorf("logout: %d %v", out.Code, c)
	}
}

// endsAtOnce is a store in which a session ends right after its first successful check.
type endsAtOnce struct {
	memoryStore
	asked map[string]bool
}

func (e endsAtOnce) IsEnded(id string) bool {
	was := e.asked[id]
	e.asked[id] = true
	return was
}

// A stream that begins while its session is ended must end too: the end of the session has already looked for streams to close.
func TestStreamOfASessionThatJustEnded(t *testing.T) {
	s := newServer(server.Options{Token: token, Sessions: endsAtOnce{memoryStore{}, map[string]bool{}}})
	var cause error
	s.Handle(server.Route{
		Method: http.MethodGet, Pattern: "/api/stream", Access: server.Authenticated, Stream: true,
		Handler: func(_ http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
			cause = context.Cause(r.Context())
			return nil
		},
	})
	r := request(http.MethodGet, "http://localhost:31337/api/stream", nil)
	for _, c := range login(s, token).Result().Cookies() {
		r.AddCookie(c)
	}
	if record(s, r); cause == nil || server.Describe(cause).Status != http.StatusUnauthorized {
		t.Errorf("the stream didn't end with 401: %v", cause)
	}
}
