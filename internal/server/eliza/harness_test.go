package eliza

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
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

// harness is a gateway with the chat, in a synctest bubble. Requests call the handler without a socket.
type harness struct {
	t       *testing.T
	journal journal.Journal
	store   journal.Journal // the gateway's journal: journal, or a wrapper around it
	agents  gateway.Agents
	user    quota.Limits
	watcher gateway.Watcher // optional
	gw      *gateway.Gateway
	pushes  *push.Service
	srv     *server.Server
}

// bubble runs a test with a harness and an agent.
func bubble(t *testing.T, a agent.Agent, test func(h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		h := &harness{t: t, journal: j, store: j, agents: gateway.Agents{"eliza": {Agent: a}}}
		h.start()
		test(h)
		h.stop()
		if err := h.journal.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (h *harness) start() {
	h.t.Helper()
	cfg := gateway.Config{Journal: h.store, Agents: h.agents, Dialects: all.Registry(), Quotas: gateway.Quotas{User: h.user}, Titles: true}
	if len(h.agents) > 0 {
		cfg.DefaultAgent = "eliza"
	}
	if h.watcher != nil {
		cfg.Watchers = []gateway.Watcher{h.watcher}
	}
	turns := push.NewTurns(push.Config{Journal: cfg.Journal, Dialects: cfg.Dialects})
	cfg.Pusher = turns
	var err error
	if h.gw, err = gateway.New(cfg); err != nil {
		h.t.Fatal(err)
	}
	h.pushes = push.NewService(turns, h.gw)
	if err := h.gw.Start(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	h.srv = server.New(server.Options{Token: secret})
	Register(h.srv, h.gw, Options{})
}

func (h *harness) stop() {
	h.t.Helper()
	h.srv.Close()
	if err := h.gw.Shutdown(context.WithoutCancel(h.t.Context())); err != nil {
		h.t.Error(err)
	}
}

// request builds a request of the admin. The headers are name, value pairs.
func (h *harness) request(method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+secret)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// do makes a request, checks the status, and decodes the JSON of the response into v.
func (h *harness) do(status int, v any, method, path, body string, headers ...string) http.Header {
	h.t.Helper()
	rec := httptest.NewRecorder()
	h.srv.ServeHTTP(rec, h.request(method, path, body, headers...))
	if rec.Code != status {
		h.t.Fatalf("%s %s: %d %s, want %d", method, path, rec.Code, rec.Body, status)
	}
	if v != nil {
		if err := json.Unmarshal(rec.Body.Bytes(), v); err != nil {
			h.t.Fatalf("%s %s: %v: %s", method, path, err, rec.Body)
		}
	}
	return rec.Header()
}

// refused expects an error with a text.
func (h *harness) refused(status int, text, method, path, body string, headers ...string) {
	h.t.Helper()
	var e struct{ Error, Reason string }
	h.do(status, &e, method, path, body, headers...)
	if e.Reason == "" {
		h.t.Errorf("%s %s %s: %q has no reason", method, path, body, e.Error)
	}
	if !strings.Contains(e.Error, text) {
		h.t.Errorf("%s %s %s: error %q, want %q", method, path, body, e.Error, text)
	}
}

// create creates a conversation.
func (h *harness) create() string {
	h.t.Helper()
	var c conversationResponse
	h.do(200, &c, "POST", "/api/conversations", `{}`)
	return c.Conversation.ID
}

func at(conversation, rest string) string { return "/api/conversations/" + conversation + rest }

// send sends a message and waits for its answer.
func (h *harness) send(conversation, text string) reply {
	h.t.Helper()
	var r reply
	h.do(200, &r, "POST", at(conversation, "/messages"), `{"text":`+quote(text)+`}`)
	return r
}

func (h *harness) messages(conversation string) []message {
	h.t.Helper()
	var l struct{ Messages []message }
	h.do(200, &l, "GET", at(conversation, "/messages"), "")
	return l.Messages
}

// visible returns the visible text and the callback history of a turn.
func (h *harness) visible(conversation, turn string) (text string, history []string) {
	h.t.Helper()
	f, err := h.gw.Feed(h.t.Context(), gateway.Principal{Admin: true}, conversation)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Release()
	f.View(func(t *transcript.Transcript) { text, history = t.Visible(turn), t.History(turn) })
	return text, history
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// wire is the client's end of a stream. While it is on hold, the client reads nothing.
type wire struct {
	t      *testing.T
	cancel context.CancelFunc
	over   chan struct{} // closed when the handler has returned

	mu     sync.Mutex
	header http.Header
	status int
	chat   chat
	body   []byte
	held   chan struct{} // writes wait for this channel; nil if the wire is not on hold
	wrote  func()        // called with mu locked
}

// stream starts a request with a streamed response.
func (h *harness) stream(method, path, body string, headers ...string) *wire {
	h.t.Helper()
	return h.open(&wire{}, method, path, body, headers...)
}

func (h *harness) open(w *wire, method, path, body string, headers ...string) *wire {
	r := h.request(method, path, body, headers...)
	ctx, cancel := context.WithCancel(context.Background())
	w.t, w.cancel, w.over, w.header = h.t, cancel, make(chan struct{}), http.Header{}
	go func() {
		defer close(w.over)
		defer cancel()
		h.srv.ServeHTTP(w, r.WithContext(ctx))
	}()
	return w
}

func (w *wire) Header() http.Header { return w.header }

func (w *wire) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = status
}

func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	held := w.held
	w.mu.Unlock()
	if held != nil {
		<-held
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.body = append(w.body, b...)
	if w.status == 200 {
		if err := w.chat.feed(b); err != nil {
			w.t.Error(err)
		}
	}
	if w.wrote != nil {
		w.wrote()
	}
	return len(b), nil
}

func (w *wire) Flush() {}

// seen returns the client's current text.
func (w *wire) seen() chat {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chat
}

// wait returns the client's text at the end of the stream.
func (w *wire) wait() chat {
	<-w.over
	return w.seen()
}
