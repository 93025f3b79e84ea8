package compat

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/sse"
	"github.com/leat-dev/leat/transcript"
)

const secret = "a-token"

// agentFunc is an agent that runs a function.
type agentFunc func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (f agentFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}

var echo = agentFunc(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
	return out.Text("re: " + in.Message.Text)
})

// harness is a gateway with the model APIs behind a real listener.
type harness struct {
	t       *testing.T
	journal journal.Journal
	gw      *gateway.Gateway
	srv     *server.Server
	url     string
}

// stored returns the number of conversations, listed or not.
func (h *harness) stored() int {
	h.t.Helper()
	all, err := h.journal.Conversations(h.t.Context(), journal.Query{})
	if err != nil {
		h.t.Fatal(err)
	}
	return len(all)
}

// listed returns the number of listed conversations.
func (h *harness) listed() int {
	h.t.Helper()
	all, err := h.gw.List(h.t.Context(), admin, nil, 100)
	if err != nil {
		h.t.Fatal(err)
	}
	return len(all)
}

func newHarness(t *testing.T, agents map[string]agent.Agent, user quota.Limits, change ...func(*gateway.Config)) *harness {
	t.Helper()
	j := memory.New()
	known := gateway.Agents{}
	cfg := gateway.Config{Journal: j, Agents: known, Dialects: all.Registry(), Quotas: gateway.Quotas{User: user}, Settings: gateway.Settings{Drain: time.Millisecond}}
	for name, a := range agents {
		known[name], cfg.DefaultAgent = gateway.Agent{Agent: a}, name
	}
	for _, c := range change {
		c(&cfg)
	}
	gw, err := gateway.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Token: secret, Heartbeat: 50 * time.Millisecond})
	Register(srv, gw)
	ts := httptest.NewServer(srv)
	t.Cleanup(func() {
		srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		ts.Close()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return &harness{t: t, journal: j, gw: gw, srv: srv, url: ts.URL}
}

func one(a agent.Agent) map[string]agent.Agent { return map[string]agent.Agent{"eliza": a} }

// send makes a request of the admin. The headers are name, value pairs. The response is closed at the end of the test.
func (h *harness) send(method, path, body string, headers ...string) *http.Response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", secret)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// post is send for an expected status. It decodes the JSON of the response.
func (h *harness) post(status int, v any, path, body string, headers ...string) http.Header {
	h.t.Helper()
	res := h.send(http.MethodPost, path, body, headers...)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	if res.StatusCode != status {
		h.t.Fatalf("%s: %d %s, want %d", path, res.StatusCode, b, status)
	}
	if v != nil {
		if err := json.Unmarshal(b, v); err != nil {
			h.t.Fatalf("%s: %v: %s", path, err, b)
		}
	}
	return res.Header
}

// events returns all events of a stream that ends.
func (h *harness) events(res *http.Response) []sse.Event {
	h.t.Helper()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body)
		h.t.Fatalf("%d %s", res.StatusCode, b)
	}
	b, err := io.ReadAll(bufio.NewReader(res.Body))
	if err != nil {
		h.t.Fatal(err)
	}
	var all []sse.Event
	r := &sse.Reader{}
	if err := r.Feed(b, func(e sse.Event) error {
		e.Data = append([]byte(nil), e.Data...)
		all = append(all, e)
		return nil
	}); err != nil {
		h.t.Fatal(err)
	}
	return all
}

var admin = gateway.Principal{Admin: true}

// visible returns the text of a turn in its conversation's transcript.
func (h *harness) visible(header http.Header) (text string) {
	h.t.Helper()
	err := h.gw.ViewTranscript(h.t.Context(), admin, header.Get(headerConversation), func(t *transcript.Transcript) bool {
		text = t.Visible(header.Get("Leat-Turn"))
		return t.Turn(header.Get("Leat-Turn")) != nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return text
}

func readAll(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
