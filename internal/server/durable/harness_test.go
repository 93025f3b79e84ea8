package durable

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/streams"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal/memory"
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

// harness is a gateway with the routes behind a real listener.
type harness struct {
	t     *testing.T
	gw    *gateway.Gateway
	srv   *server.Server
	store *streams.Store
	url   string
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
	h := &harness{t: t, gw: gw, srv: server.New(server.Options{Token: secret, Heartbeat: 20 * time.Millisecond})}
	h.store = streams.New(gw, j, slog.New(slog.DiscardHandler))
	Register(h.srv, gw, Options{Wait: 50 * time.Millisecond, Store: h.store})
	ts := httptest.NewServer(h.srv)
	h.url = ts.URL
	t.Cleanup(func() {
		h.srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		ts.Close()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// answered creates a conversation with an answered message, and returns the turn.
func (h *harness) answered(p gateway.Principal, id, text string) string {
	h.t.Helper()
	if _, _, err := h.gw.Create(h.t.Context(), p, gateway.CreateOptions{ID: id}); err != nil {
		h.t.Fatal(err)
	}
	turn := h.send(p, id, text)
	h.ended(p, id, turn)
	return turn
}

// send adds a message and returns the turn.
func (h *harness) send(p gateway.Principal, id, text string) string {
	h.t.Helper()
	ack, err := h.gw.Do(h.t.Context(), p, id, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: text}})
	if err != nil {
		h.t.Fatal(err)
	}
	return ack.Turn
}

// ended waits until a turn has ended.
func (h *harness) ended(p gateway.Principal, id, turn string) {
	h.t.Helper()
	f, err := h.gw.Feed(h.t.Context(), p, id)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Release()
	for hasEnded := false; ; {
		changed := f.Notify()
		f.View(func(tr *transcript.Transcript) { hasEnded = tr.Turn(turn) != nil && !tr.Turn(turn).Unfinished() })
		if hasEnded {
			return
		}
		<-changed
	}
}

// request is a request of a test. Without a subject it is the admin's.
type request struct {
	method, path, body, subject string
	header                      map[string]string
}

// do makes a request and reads its response.
func (h *harness) do(rq request) (*http.Response, string) {
	h.t.Helper()
	res := h.open(rq)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res, string(b)
}

// open makes a request. The response is closed at the end of the test.
func (h *harness) open(rq request) *http.Response {
	h.t.Helper()
	if rq.method == "" {
		rq.method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(h.t.Context(), rq.method, h.url+"/v1/stream/"+rq.path, strings.NewReader(rq.body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	if rq.subject != "" {
		r.Header.Set(server.HeaderSubject, rq.subject)
	}
	for name, value := range rq.header {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// reader folds the records of a stream.
type reader struct {
	t *testing.T
	transcript.Transcript
}

// add applies records to the fold.
func (r *reader) add(records string) {
	r.t.Helper()
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(records), &list); err != nil {
		r.t.Fatalf("%s: %v", records, err)
	}
	for _, record := range list {
		var snapshot struct {
			Type       string               `json:"type"`
			Transcript *transcript.Snapshot `json:"transcript"`
		}
		if err := json.Unmarshal(record, &snapshot); err != nil {
			r.t.Fatal(err)
		}
		if snapshot.Type == "snapshot" {
			r.Reset(snapshot.Transcript)
			continue
		}
		var e event.Event
		if err := json.Unmarshal(record, &e); err != nil {
			r.t.Fatal(err)
		}
		if err := r.Apply(&e); err != nil {
			r.t.Fatal(err)
		}
	}
}

// texts returns the texts of all messages.
func (r *reader) texts() string {
	var b strings.Builder
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			b.WriteString(p.Text(event.Text) + "|")
		}
	}
	return b.String()
}
