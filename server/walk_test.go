package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/gateway"
	"github.com/leat-dev/leat/journal/memory"
	"github.com/leat-dev/leat/server"
	"github.com/leat-dev/leat/server/eliza"
	"github.com/leat-dev/leat/server/native"
	"github.com/leat-dev/leat/server/ops"
	"github.com/leat-dev/leat/server/ui"
)

// The marks of what belongs to alice. Nobody else may ever be told one.
const (
	markID    = "alice-conversation"
	markTitle = "alice-title"
	markText  = "alice-text"
)

// open are the routes that answer without a token, each decided here a second time.
var open = []string{
	"GET /api/session", "POST /api/session", "DELETE /api/session", // swap the token, or learn that one is needed
	"GET /healthz", "GET /readyz", // machines ask
	"GET /metrics", // asks for the token itself, unless on this machine
	"GET /api/ws",  // takes the token as its first message
}

// nothingThere are the routes whose owner is answered 404 here: no Eliza turn streams, and no message has that id.
var nothingThere = []string{
	"GET /api/conversations/{id}/messages/stream", "POST /api/conversations/{id}/messages/truncate",
}

// bodies are what a route needs to get as far as its decision.
var bodies = map[string]struct {
	query, body string
	header      http.Header
}{
	"POST /api/conversations/{id}/commands":          {body: `{"type":"inject","message":{"text":"x"}}`},
	"POST /api/conversations/{id}/turns":             {query: "?dialect=eliza-actions", body: `{"type":"done"}` + "\n"},
	"PATCH /api/turns/{turn}/ingest":                 {header: http.Header{"Upload-Offset": {"0"}}},
	"POST /api/conversations/{id}/messages":          {body: `{"text":"x"}`},
	"POST /api/conversations/{id}/messages/stream":   {body: `{"text":"x"}`},
	"POST /api/conversations/{id}/messages/truncate": {body: `{"messageId":"m"}`},
	"PATCH /api/conversations/{id}":                  {body: `{"title":"x"}`},
}

type talker struct{}

func (talker) Run(_ context.Context, in agent.Input, out *agent.Emitter) error {
	return out.Text(markText)
}

// walk is a gateway with every surface over it.
type walk struct {
	t   *testing.T
	gw  *gateway.Gateway
	srv *server.Server
	ts  *httptest.Server
}

func newWalk(t *testing.T) *walk {
	t.Helper()
	gw, err := gateway.New(gateway.Config{
		Journal: memory.New(), Dialects: dialect.NewRegistry(elizaactions.Dialect()), Drain: time.Millisecond, Lease: 100 * time.Millisecond, // what waits behind the pushed turns gets its turn
		Agents: map[string]gateway.Agent{"a": {Agent: talker{}}}, DefaultAgent: "a",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Token: token})
	native.Register(srv, gw)
	ops.Register(srv, gw, prometheus.NewRegistry())
	eliza.Register(srv, gw, eliza.Options{})
	ui.Register(srv)
	w := &walk{t: t, gw: gw, srv: srv, ts: httptest.NewServer(srv)}
	t.Cleanup(func() {
		srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		w.ts.Close()
	})
	return w
}

var alice = gateway.Principal{Tenant: "t", Subject: "alice", Scopes: []string{gateway.ScopeAgent}}

// belongings makes a conversation of alice's with a pushed turn that is open, and returns the path values that name them.
func (w *walk) belongings(n string) map[string]string {
	w.t.Helper()
	id := markID + n
	if _, _, err := w.gw.Create(w.t.Context(), alice, gateway.CreateOptions{ID: id, Title: markTitle}); err != nil {
		w.t.Fatal(err)
	}
	pr, ack, err := w.gw.Push(w.t.Context(), alice, id, gateway.PushOptions{Dialect: "eliza-actions"})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := pr.Write(w.t.Context(), []byte(`{"type":"chunk","text":"`+markText+`"}`+"\n")); err != nil {
		w.t.Fatal(err)
	}
	<-pr.Acks()
	if err := pr.Close(false); err != nil {
		w.t.Fatal(err)
	}
	return map[string]string{"id": id, "conversation": id, "turn": ack.Turn, "message": "m"}
}

var wildcard = regexp.MustCompile(`\{([a-zA-Z]+)(\.\.\.|\$)?\}`)

// ask makes the route's request as somebody. A stream is read only as far as it comes at once.
func (w *walk) ask(rt server.Route, values map[string]string, who string) (status int, body string) {
	w.t.Helper()
	name := rt.Method + " " + rt.Pattern
	path := wildcard.ReplaceAllStringFunc(rt.Pattern, func(m string) string {
		key := wildcard.FindStringSubmatch(m)[1]
		v, ok := values[key]
		if !ok {
			w.t.Fatalf("%s: the walk does not know what {%s} is", name, key)
		}
		return v
	})
	path = strings.TrimSuffix(path, "{$}")
	b := bodies[name]
	if b.body == "" && rt.Method != http.MethodGet && rt.Method != http.MethodHead {
		b.body = "{}"
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, rt.Method, w.ts.URL+path+b.query, strings.NewReader(b.body))
	if err != nil {
		w.t.Fatal(err)
	}
	for k, v := range b.header {
		r.Header[k] = v
	}
	switch who {
	case "":
	case "admin":
		r.Header.Set("Authorization", "Bearer "+token)
	default:
		r.Header.Set("Authorization", "Bearer "+token)
		subject, tenant, _ := strings.Cut(who, "@")
		r.Header.Set(server.HeaderTenant, tenant)
		r.Header.Set(server.HeaderSubject, subject)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatalf("%s as %q: %v", name, who, err)
	}
	defer func() { _ = res.Body.Close() }()
	if rt.Stream && res.StatusCode < 300 {
		first := make([]byte, 64<<10)
		n, _ := res.Body.Read(first)
		return res.StatusCode, string(first[:n])
	}
	all, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatalf("%s as %q: %v", name, who, err)
	}
	return res.StatusCode, string(all)
}

// TestWalk calls every registered route as nobody, as another user of the same tenant, as one of another tenant, and as
// its owner.
func TestWalk(t *testing.T) {
	w := newWalk(t)
	for i, rt := range w.srv.Routes() {
		name := rt.Method + " " + rt.Pattern
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			n := string(rune('a'+i/26)) + string(rune('a'+i%26))
			values := w.belongings(n)
			mine := regexp.MustCompile(`\{(id|conversation|turn|message)\}`).MatchString(rt.Pattern)
			static := rt.Method == http.MethodGet && (rt.Pattern == "/{$}" || strings.HasPrefix(rt.Pattern, "/ui/"))
			silent := func(who string) (status int) {
				status, body := w.ask(rt, values, who)
				for _, mark := range []string{markID, markTitle, markText, values["turn"]} {
					if strings.Contains(body, mark) {
						t.Errorf("%q is told %q: %.300s", who, mark, body)
					}
				}
				return status
			}
			switch status := silent(""); rt.Access {
			case server.Public, server.InBand:
				if !static && !slices.Contains(open, name) {
					t.Errorf("it is %s, but the walk does not know that it is to be", rt.Access)
				}
			default:
				if status != http.StatusUnauthorized {
					t.Errorf("nobody gets %d, not 401", status)
				}
			}
			for _, who := range []string{"bob@t", "alice@t2", "alice@"} {
				status := silent(who)
				if mine && status != http.StatusNotFound {
					t.Errorf("%s gets %d, not 404", who, status)
				}
			}
			if mine {
				// Its owner gets as far as the thing itself, else the refusals prove nothing.
				status, body := w.ask(rt, values, "alice@t")
				if status >= 300 && status != http.StatusConflict && !slices.Contains(nothingThere, name) {
					t.Errorf("its owner gets %d: %.300s", status, body)
				}
			}
			if rt.Access == server.Admin {
				if status, _ := w.ask(rt, values, "alice@t"); status != http.StatusForbidden {
					t.Errorf("a user gets %d, not 403", status)
				}
			}
		})
	}
	t.Run("lists", func(t *testing.T) {
		var list struct{ Conversations []struct{ ID string } }
		_, body := w.ask(server.Route{Method: http.MethodGet, Pattern: "/api/conversations"}, nil, "alice@t")
		if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Conversations) == 0 {
			t.Errorf("alice does not see her own: %.300s", body)
		}
	})
}
