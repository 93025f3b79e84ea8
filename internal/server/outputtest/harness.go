package outputtest

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// Secret is the token of the gateway.
const Secret = "a-token"

// Harness is a gateway with one output behind a real listener. Its agent has the name eliza.
type Harness struct {
	T       *testing.T
	Journal journal.Journal
	Gateway *gateway.Gateway
	Server  *server.Server
	URL     string
	Stop    func() // may be called more than once
}

// Start starts a gateway with an empty journal. The limits are those of each user, and register adds the output's routes.
func Start(t *testing.T, a agent.Agent, limits quota.Limits, register func(*Harness)) *Harness {
	t.Helper()
	j := memory.New()
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return StartWith(t, j, a, limits, register)
}

// StartWith starts a gateway with a journal, which stays open.
func StartWith(t *testing.T, j journal.Journal, a agent.Agent, limits quota.Limits, register func(*Harness)) *Harness {
	t.Helper()
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
	h := &Harness{T: t, Journal: j, Gateway: gw, Server: server.New(server.Options{Token: Secret, Heartbeat: 20 * time.Millisecond})}
	register(h)
	ts := httptest.NewServer(h.Server)
	h.URL = ts.URL
	h.Stop = sync.OnceFunc(func() {
		h.Server.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		ts.Close()
	})
	t.Cleanup(h.Stop)
	return h
}

// Do makes a request for a subject, with additional headers. If the subject is empty, the admin makes it.
func (h *Harness) Do(subject, method, path, body string, header http.Header) *http.Response {
	h.T.Helper()
	r, err := http.NewRequestWithContext(h.T.Context(), method, h.URL+path, strings.NewReader(body))
	if err != nil {
		h.T.Fatal(err)
	}
	maps.Copy(r.Header, header)
	r.Header.Set("Authorization", "Bearer "+Secret)
	if subject != "" {
		r.Header.Set(server.HeaderSubject, subject)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// Ask is Do for a whole response with an expected status.
func (h *Harness) Ask(status int, subject, method, path, body string) string {
	h.T.Helper()
	res := h.Send(subject, method, path, body)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.T.Fatal(err)
	}
	if res.StatusCode != status {
		h.T.Fatalf("%s %s: %d %s, want %d", method, path, res.StatusCode, b, status)
	}
	return string(b)
}

// Send is Do without additional headers.
func (h *Harness) Send(subject, method, path, body string) *http.Response {
	h.T.Helper()
	return h.Do(subject, method, path, body, nil)
}
