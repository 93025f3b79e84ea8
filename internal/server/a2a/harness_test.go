package a2a

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal/memory"
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

// harness is a gateway with this surface behind a real listener.
type harness struct {
	t   *testing.T
	gw  *gateway.Gateway
	srv *server.Server
	url string
}

func newHarness(t *testing.T, a agent.Agent, limits quota.Limits) *harness {
	t.Helper()
	j := memory.New()
	gw, err := gateway.New(gateway.Config{
		Journal: j, Agents: gateway.Agents{"eliza": {Agent: a}}, DefaultAgent: "eliza", Settings: gateway.Settings{Drain: time.Millisecond},
		Quotas: gateway.Quotas{User: limits},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Token: secret, Heartbeat: 20 * time.Millisecond})
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
	return &harness{t: t, gw: gw, srv: srv, url: ts.URL}
}

// do makes a request for a subject, with additional headers. If the subject is empty, the admin makes it.
func (h *harness) do(subject, method, path, body string, header http.Header) *http.Response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	r.Header.Set("Authorization", "Bearer "+secret)
	if subject != "" {
		r.Header.Set(server.HeaderSubject, subject)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// asking is an agent that asks for a permission.
var asking = agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	a, err := out.Ask(ctx, event.Request{ID: "ask", Kind: event.RequestApproval, Tool: "shell", Prompt: "May I?"})
	if err != nil {
		return err
	}
	return out.Text("the answer is " + string(a.Decision))
})
