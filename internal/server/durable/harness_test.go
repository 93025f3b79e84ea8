package durable

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/streams"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/outputtest"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/transcript"
)

const secret = outputtest.Secret

type agentFunc = outputtest.AgentFunc

var echo = outputtest.Echo

// harness is a gateway with the routes behind a real listener.
type harness struct {
	*outputtest.Harness
	store *streams.Store
}

func newHarness(t *testing.T, a agent.Agent, limits quota.Limits) *harness {
	t.Helper()
	h := &harness{}
	h.Harness = outputtest.Start(t, a, limits, func(g *outputtest.Harness) {
		h.store = streams.New(g.Gateway, g.Journal, slog.New(slog.DiscardHandler))
		Register(g.Server, g.Gateway, Options{Wait: 50 * time.Millisecond, Store: h.store})
	})
	return h
}

// answered creates a conversation with an answered message, and returns the turn.
func (h *harness) answered(p gateway.Principal, id, text string) string {
	h.T.Helper()
	if _, _, err := h.Gateway.Create(h.T.Context(), p, gateway.CreateOptions{ID: id}); err != nil {
		h.T.Fatal(err)
	}
	turn := h.send(p, id, text)
	h.ended(p, id, turn)
	return turn
}

// send adds a message and returns the turn.
func (h *harness) send(p gateway.Principal, id, text string) string {
	h.T.Helper()
	ack, err := h.Gateway.Do(h.T.Context(), p, id, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: text}})
	if err != nil {
		h.T.Fatal(err)
	}
	return ack.Turn
}

// ended waits until a turn has ended.
func (h *harness) ended(p gateway.Principal, id, turn string) {
	h.T.Helper()
	f, err := h.Gateway.Feed(h.T.Context(), p, id)
	if err != nil {
		h.T.Fatal(err)
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
	h.T.Helper()
	res := h.open(rq)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.T.Fatal(err)
	}
	return res, string(b)
}

// open makes a request. The response is closed at the end of the test.
func (h *harness) open(rq request) *http.Response {
	h.T.Helper()
	if rq.method == "" {
		rq.method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(h.T.Context(), rq.method, h.URL+"/v1/stream/"+rq.path, strings.NewReader(rq.body))
	if err != nil {
		h.T.Fatal(err)
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
		h.T.Fatal(err)
	}
	h.T.Cleanup(func() { _ = res.Body.Close() })
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
