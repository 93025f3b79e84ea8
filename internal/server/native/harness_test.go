package native_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/dialect/leat"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/inspection"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/sse"
	"github.com/leat-dev/leat/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "sesame"

// script is an agent whose turns run a function of the test.
type script func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (s script) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return s(ctx, in, out)
}

// echo repeats the message.
var echo = script(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
	return out.Text("you said: " + in.Message.Text)
})

// harness is a gateway with the native protocol.
type harness struct {
	t      *testing.T
	gw     *gateway.Gateway
	pushes *push.Service
	srv    *server.Server
	url    string
	// header is sent with every request.
	header http.Header
	stop   func()
}

type options struct {
	agent   agent.Agent
	journal journal.Journal
	server  server.Options
	gateway func(*gateway.Config)
}

func newGateway(t *testing.T, o options) *gateway.Gateway {
	t.Helper()
	gw, _, _ := newInspected(t, o)
	return gw
}

// newInspected returns a gateway, the inspector of its turns, and what producers connect to.
func newInspected(t *testing.T, o options) (*gateway.Gateway, *inspection.Inspector, *push.Service) {
	t.Helper()
	if o.journal == nil {
		o.journal = memory.New()
	}
	if o.agent == nil {
		o.agent = echo
	}
	c := gateway.Config{
		Journal: o.journal, Dialects: dialect.NewRegistry(elizaactions.Dialect(), leat.Dialect()),
		Agents: gateway.Agents{"a": {Agent: o.agent, Kind: "script"}}, DefaultAgent: "a",
		Settings: gateway.Settings{Drain: time.Millisecond}, // no test waits for turns at shutdown
	}
	if o.gateway != nil {
		o.gateway(&c)
	}
	pushed := push.NewTurns(push.Config{Journal: c.Journal, Dialects: c.Dialects, URL: "http://gateway"})
	c.Pusher = pushed
	gw, err := gateway.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	inspector := inspection.New(gw, inspection.Config{Journal: o.journal, Captures: c.Raw, Dialects: c.Dialects, Agents: c.Agents, Metrics: c.Metrics, Log: c.Log})
	return gw, inspector, push.NewService(pushed, gw)
}

func newHarness(t *testing.T, o options) *harness {
	t.Helper()
	if o.server.Token == "" {
		o.server.Token = token
	}
	gw, turns, pushes := newInspected(t, o)
	h := &harness{t: t, gw: gw, pushes: pushes, srv: server.New(o.server), header: http.Header{"Authorization": {"Bearer " + token}}}
	native.Register(h.srv, h.gw)
	native.RegisterInspection(h.srv, turns)
	native.RegisterIngest(h.srv, h.gw, h.pushes)
	ts := httptest.NewServer(h.srv)
	h.url = ts.URL
	var once sync.Once
	h.stop = func() {
		once.Do(func() {
			h.srv.Close()
			if err := h.gw.Shutdown(context.Background()); err != nil {
				t.Error("shutdown:", err)
			}
			http.DefaultClient.CloseIdleConnections()
			ts.Close()
		})
	}
	t.Cleanup(h.stop)
	return h
}

// as returns the same harness for a user. The holder of the token acts for that user.
func (h *harness) as(subject string) *harness {
	c := *h
	c.header = h.header.Clone()
	c.header.Set(server.HeaderSubject, subject)
	c.header.Set(server.HeaderTenant, "t")
	return &c
}

var admin = gateway.Principal{Admin: true}

func (h *harness) create() string {
	h.t.Helper()
	s, _, err := h.gw.Create(h.t.Context(), admin, gateway.CreateOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return s.ID
}

func (h *harness) send(conversation, text string) gateway.Ack {
	h.t.Helper()
	ack, err := h.gw.Do(h.t.Context(), admin, conversation, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: text}})
	if err != nil {
		h.t.Fatal(err)
	}
	return ack
}

// ended waits for the end of a turn.
func (h *harness) ended(conversation, turn string) transcript.Turn {
	h.t.Helper()
	f, err := h.gw.Feed(h.t.Context(), admin, conversation)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Release()
	for {
		changed := f.Notify()
		var got transcript.Turn
		f.View(func(t *transcript.Transcript) {
			if turn := t.Turn(turn); turn != nil {
				got = *turn
			}
		})
		if got.State == transcript.TurnEnded {
			return got
		}
		select {
		case <-changed:
		case <-h.t.Context().Done():
			h.t.Fatal("the turn never ended")
		}
	}
}

// open makes a request and returns the response with its body unread.
func (h *harness) open(method, path string, body io.Reader, header ...string) *http.Response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, body)
	if err != nil {
		h.t.Fatal(err)
	}
	for k, v := range h.header {
		r.Header[k] = v
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// do makes a request. The response must match the schema: the definition kind, or an error.
func (h *harness) do(method, path, body, kind string, header ...string) (int, []byte) {
	h.t.Helper()
	res := h.open(method, path, strings.NewReader(body), header...)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	switch {
	case res.StatusCode >= 400:
		valid(h.t, "error", b)
	case kind != "":
		valid(h.t, kind, b)
	}
	return res.StatusCode, b
}

// refused checks that a request gets an error.
func (h *harness) refused(method, path, body string, status int, reason string, header ...string) {
	h.t.Helper()
	got, b := h.do(method, path, body, "", header...)
	var e struct{ Reason string }
	if err := json.Unmarshal(b, &e); err != nil || got != status || e.Reason != reason {
		h.t.Errorf("%s %s %.80q: %d %s, want %d %s", method, path, body, got, b, status, reason)
	}
}

// schemas compiles the definitions of docs/protocol.schema.json.
var schemas = sync.OnceValue(func() *jsonschema.Compiler {
	return jsonschema.NewCompiler()
})

var (
	compiled   = map[string]*jsonschema.Schema{}
	compiledMu sync.Mutex
)

func schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	compiledMu.Lock()
	defer compiledMu.Unlock()
	if s := compiled[name]; s != nil {
		return s
	}
	path, err := filepath.Abs("../../../docs/protocol.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := schemas().Compile("file://" + filepath.ToSlash(path) + "#/$defs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	compiled[name] = s
	return s
}

// valid checks JSON against a definition of the schema.
func valid(t *testing.T, name string, b []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Errorf("%s: no JSON: %v: %.300s", name, err, b)
		return
	}
	if err := schema(t, name).Validate(v); err != nil {
		t.Errorf("not a valid %s: %v\n%.600s", name, err, b)
	}
}

// frame is any frame that the server sends.
type frame struct {
	Type, ID, Conversation, Error, Reason, Protocol, Message, Turn, State string
	RetryAfter, Seq, Expires                                              int64
	Turns                                                                 []transcript.Turn
	Repeated, Created                                                     bool
	raw                                                                   []byte
	sseID                                                                 string
}

func parse(t *testing.T, b []byte) frame {
	t.Helper()
	valid(t, "serverFrame", b)
	f := frame{raw: bytes.Clone(b)}
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatalf("%v: %.300s", err, b)
	}
	return f
}

// reader is a client: its transcript, folded from the frames, and its cursor.
type reader struct {
	t      *testing.T
	cursor feed.Cursor
	fold   transcript.Transcript
	resets int
}

// take folds a frame with a cursor. For a frame without one it returns false.
func (r *reader) take(f frame) bool {
	r.t.Helper()
	if f.Type != "snapshot" && f.Type != "batch" {
		return false
	}
	b, err := feed.ParseFrame(f.raw)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := b.Apply(&r.fold); err != nil {
		r.t.Fatalf("%v at cursor %s in %.300s", err, r.cursor, f.raw)
	}
	if b.Reset {
		r.resets++
	}
	r.cursor = b.Cursor
	return true
}

func (r *reader) text() string {
	var out []string
	for _, m := range r.fold.Messages {
		out = append(out, string(m.Role)+": "+m.Visible())
	}
	return strings.Join(out, "\n")
}

func (r *reader) state(turn string) string {
	if t := r.fold.Turn(turn); t != nil {
		return string(t.State)
	}
	return ""
}

// events opens a stream of frames over HTTP.
type events struct {
	*http.Response
	t      *testing.T
	scan   *sse.Reader
	ready  []sse.Event
	buf    []byte
	rest   []byte
	ndjson bool
}

func (h *harness) events(conversation string, header ...string) *events {
	h.t.Helper()
	return h.after(conversation, "", header...)
}

// after opens a stream with a cursor in the URL.
func (h *harness) after(conversation, cursor string, header ...string) *events {
	h.t.Helper()
	path := "/api/conversations/" + conversation + "/events"
	if cursor != "" {
		path += "?after=" + url.QueryEscape(cursor)
	}
	res := h.open(http.MethodGet, path, nil, header...)
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body)
		h.t.Fatalf("events: %d %s", res.StatusCode, b)
	}
	return &events{
		Response: res, t: h.t, scan: &sse.Reader{}, buf: make([]byte, 4<<10),
		ndjson: strings.HasPrefix(res.Header.Get("Content-Type"), "application/x-ndjson"),
	}
}

// next returns the next frame, or false at the end of the stream.
func (e *events) next() (frame, bool) {
	e.t.Helper()
	for {
		if e.ndjson {
			if line, rest, ok := bytes.Cut(e.rest, []byte("\n")); ok {
				e.rest = rest
				return parse(e.t, line), true
			}
		} else if len(e.ready) > 0 {
			ev := e.ready[0]
			e.ready = e.ready[1:]
			f := parse(e.t, ev.Data)
			f.sseID = ev.ID
			return f, true
		}
		n, err := e.Body.Read(e.buf)
		e.feed(e.buf[:n])
		if err != nil && n == 0 {
			if !errors.Is(err, io.EOF) {
				e.t.Logf("stream ended: %v", err)
			}
			return frame{}, false
		}
	}
}

func (e *events) feed(b []byte) {
	if e.ndjson {
		e.rest = append(e.rest, b...)
		return
	}
	err := e.scan.Feed(b, func(ev sse.Event) error {
		ev.Data = bytes.Clone(ev.Data)
		e.ready = append(e.ready, ev)
		return nil
	})
	if err != nil {
		e.t.Fatal(err)
	}
}

// until folds frames until ok returns true.
func (e *events) until(r *reader, ok func() bool) {
	e.t.Helper()
	for !ok() {
		f, more := e.next()
		if !more {
			e.t.Fatalf("the stream ended at %q", r.text())
		}
		if r.take(f) && !e.ndjson && f.sseID != string(r.cursor) {
			e.t.Errorf("id %q, cursor %q", f.sseID, r.cursor)
		}
	}
}
