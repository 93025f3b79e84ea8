package letta

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/all"
)

// v1 is a fake V1 server. It rejects what the real one rejects, and fails as the tests ask. Runs are scripted: all frames of
// a run exist at once, and each stream of them fails as its fault says.
type v1 struct {
	t   *testing.T
	srv *httptest.Server

	mu            sync.Mutex
	token         string
	scripts       [][]string // of the next runs
	faults        []fault    // of the next streams
	conversations map[string]string
	runs          map[string][]string
	sent          map[string]string // runs by otids
	pending       string            // message with the tool call that waits for an approval
	status        string            // of all runs
	pings         int               // number of pings sent instead of a run's remaining frames
	log           []string
	bodies        []map[string]any
	gates         map[string]chan struct{}
	closing       chan struct{}
	past          past
	old           bool // an old server, which can't list runs
	down          bool // rejects all requests
	refusals      int
}

// fault describes how a request fails. The zero value means success.
type fault struct {
	status int
	header string // Retry-After
	body   string
	drop   bool // closes the connection without a response
	// After this many frames the stream continues as how says.
	frames int
	how    string // reset, half, eof, silence, pings, garbage, loris, gate
}

func newV1(t *testing.T) *v1 {
	f := &v1{t: t, conversations: map[string]string{}, runs: map[string][]string{}, sent: map[string]string{}, gates: map[string]chan struct{}{}, closing: make(chan struct{})}
	mux := http.NewServeMux()
	f.routesOfPast(mux)
	mux.HandleFunc("POST /v1/conversations/{$}", f.create)
	mux.HandleFunc("POST /v1/conversations/{id}/messages", f.send)
	mux.HandleFunc("POST /v1/conversations/{id}/cancel", func(w http.ResponseWriter, r *http.Request) { f.note("cancel " + r.PathValue("id")) })
	mux.HandleFunc("POST /v1/runs/{id}/stream", f.resume)
	mux.HandleFunc("POST /v1/agents/{id}/messages/cancel", f.cancel)
	mux.HandleFunc("GET /v1/agents/{$}", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RawQuery {
		case "limit=1":
			fmt.Fprint(w, `[]`)
		case "limit=200":
			fmt.Fprint(w, listed)
		default:
			t.Errorf("the list is asked for with %q", r.URL.RawQuery)
		}
	})
	mux.HandleFunc("GET /v1/agents/{id}", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.PathValue("id"), "agent-") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprint(w, `{"id":"x"}`)
	})
	f.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		token, down := f.token, f.down
		if down {
			f.refusals++
		}
		f.mu.Unlock()
		if down {
			http.Error(w, `{"detail":"starting"}`, http.StatusServiceUnavailable)
			return
		}
		if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, `{"detail":"Unauthorized"}`, http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(f.srv.Close)
	t.Cleanup(f.srv.CloseClientConnections)
	t.Cleanup(func() { close(f.closing) })
	return f
}

func (f *v1) note(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, line)
}

func (f *v1) lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

// strict decodes a request's body and fails the test for keys that the API doesn't have.
func (f *v1) strict(w http.ResponseWriter, r *http.Request, keys ...string) (map[string]any, bool) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, false
	}
	body := map[string]any{}
	if err := json.Unmarshal(b, &body); err != nil {
		http.Error(w, `{"detail":"not JSON"}`, http.StatusUnprocessableEntity)
		return nil, false
	}
	for k := range body {
		if !slices.Contains(keys, k) {
			f.t.Errorf("%s: unknown parameter %q", r.URL.Path, k)
			http.Error(w, `{"detail":"unknown parameter"}`, http.StatusUnprocessableEntity)
			return nil, false
		}
	}
	f.mu.Lock()
	f.bodies = append(f.bodies, body)
	f.mu.Unlock()
	return body, true
}

func (f *v1) create(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := r.URL.Query().Get("agent_id")
	if !strings.HasPrefix(a, "agent-") {
		http.Error(w, `{"detail":"Agent not found"}`, http.StatusNotFound)
		return
	}
	id := fmt.Sprintf("conv-%d", len(f.conversations)+1)
	f.conversations[id] = a
	f.log = append(f.log, "create "+id+" of "+a)
	fmt.Fprintf(w, `{"id":%q,"agent_id":%q}`, id, a)
}

func (f *v1) send(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	body, ok := f.strict(w, r, "messages", "streaming", "stream_tokens", "include_pings", "background", "agent_id")
	if !ok {
		return
	}
	f.mu.Lock()
	_, known := f.conversations[id]
	if id == ownConversation {
		known = strings.HasPrefix(fmt.Sprint(body["agent_id"]), "agent-")
	}
	f.mu.Unlock()
	if !known {
		http.Error(w, `{"detail":"Conversation not found"}`, http.StatusNotFound)
		return
	}
	ft := f.fault()
	if f.fail(w, ft) {
		return
	}
	var otids []string
	var kinds []string
	for _, m := range body["messages"].([]any) {
		m := m.(map[string]any)
		if m["otid"] == nil {
			f.t.Error("a message without otid")
		}
		otids, kinds = append(otids, fmt.Sprint(m["otid"])), append(kinds, fmt.Sprint(m["type"]))
	}
	f.mu.Lock()
	if f.pending != "" && !slices.Contains(kinds, "approval") {
		p := f.pending
		f.mu.Unlock()
		http.Error(w, `{"detail":{"code":"PENDING_APPROVAL","message":"CONFLICT: waiting for approval","pending_request_id":"`+p+`"}}`, http.StatusConflict)
		return
	}
	f.pending = ""
	key := strings.Join(otids, " ")
	run, again := f.sent[key]
	if !again || body["background"] != true {
		if len(f.scripts) == 0 {
			f.t.Error("no run is scripted")
			f.mu.Unlock()
			return
		}
		run = fmt.Sprintf("run-%d", len(f.runs)+1)
		f.runs[run], f.scripts = number(run, f.scripts[0]), f.scripts[1:]
		f.sent[key] = run
	}
	f.log = append(f.log, fmt.Sprintf("send %s to %s: %s", strings.Join(kinds, "+"), id, run))
	f.mu.Unlock()
	f.stream(w, r, run, 0, ft)
}

// number adds run and seq_id to frames, as the server does: stop reason, usage and [DONE] use up numbers but don't contain them.
func number(run string, script []string) []string {
	emitter := []string{`{"id":"ping-1","message_type":"ping","run_id":"` + run + `","seq_id":null}`}
	for i, s := range script {
		emitter = append(emitter, strings.NewReplacer("RUN", run, "SEQ", fmt.Sprint(i+1)).Replace(s))
	}
	return emitter
}

func (f *v1) resume(w http.ResponseWriter, r *http.Request) {
	body, ok := f.strict(w, r, "starting_after", "include_pings", "poll_interval", "batch_size", "run_id", "otid", "agent_id")
	if !ok {
		return
	}
	ft := f.fault()
	if f.fail(w, ft) {
		return
	}
	after := int(body["starting_after"].(float64))
	f.note(fmt.Sprintf("resume %s after %d", r.PathValue("id"), after))
	f.stream(w, r, r.PathValue("id"), after, ft)
}

func (f *v1) cancel(w http.ResponseWriter, r *http.Request) {
	body, ok := f.strict(w, r, "run_ids")
	if ok {
		f.note(fmt.Sprintf("cancel %v", body["run_ids"]))
		fmt.Fprint(w, `{"run-1":"cancelled"}`)
	}
}

func (f *v1) fault() (ft fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.faults) > 0 {
		ft, f.faults = f.faults[0], f.faults[1:]
	}
	return ft
}

func (f *v1) fail(w http.ResponseWriter, ft fault) bool {
	switch {
	case ft.drop:
		reset(w)
	case ft.status != 0:
		if ft.header != "" {
			w.Header().Set("Retry-After", ft.header)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(ft.status)
		fmt.Fprint(w, ft.body)
	default:
		return false
	}
	return true
}

// reset closes a connection with a TCP reset, as a crash does.
func reset(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// stream sends a ping and then a run's frames after a seq_id.
func (f *v1) stream(w http.ResponseWriter, r *http.Request, run string, after int, ft fault) {
	f.mu.Lock()
	frames := f.runs[run]
	f.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	for i, fr := range append(frames[:1:1], frames[min(1+after, len(frames)):]...) {
		if ft.how != "" && i == ft.frames {
			switch ft.how {
			case "reset":
				reset(w)
				return
			case "half":
				fmt.Fprintf(w, "data: %s", fr[:len(fr)/2])
				_ = rc.Flush()
				reset(w)
				return
			case "eof":
				return
			case "garbage":
				fmt.Fprint(w, "data: \x00\x01 what? {\n\n")
				_ = rc.Flush()
				return
			case "pings": // as for a run whose process has died
				for seq := after; ; {
					_, err := fmt.Fprintf(w, "data: {\"id\":\"ping-2\",\"message_type\":\"ping\",\"run_id\":%q,\"seq_id\":%d}\n\n", run, seq)
					if err == nil {
						err = rc.Flush()
					}
					select {
					case <-time.After(time.Millisecond):
					case <-r.Context().Done():
						return
					case <-f.closing:
						return
					}
					if err != nil {
						return
					}
					f.mu.Lock()
					f.pings++
					f.mu.Unlock()
				}
			case "silence", "gate":
				_ = rc.Flush()
				select {
				case <-f.gate(ft.how):
				case <-f.closing:
					return
				}
				if ft.how == "silence" {
					return
				}
			}
		}
		text := "data: " + fr + "\n\n"
		if name, data, ok := strings.Cut(fr, "|"); ok && !strings.HasPrefix(fr, "{") {
			text = "event: " + name + "\ndata: " + data + "\n\n"
		}
		if ft.how == "loris" {
			for _, c := range []byte(text) {
				_, _ = w.Write([]byte{c})
				_ = rc.Flush()
			}
			continue
		}
		_, _ = io.WriteString(w, text)
		_ = rc.Flush()
	}
}

// gate returns a channel that the test closes to let the script continue.
func (f *v1) gate(name string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gates[name] == nil {
		f.gates[name] = make(chan struct{})
	}
	return f.gates[name]
}

func (f *v1) agent(options map[string]string) *restAgent {
	f.t.Helper()
	spec := agent.Spec{Name: "letta", Kind: "letta", Target: f.srv.URL, Options: map[string]string{"agent": "agent-1"}}
	for k, v := range options {
		spec.Options[k] = v
	}
	a, err := agent.Kinds{Kind(all.Registry())}.Make(spec)
	if err != nil {
		f.t.Fatal(err)
	}
	r := a.(*restAgent)
	r.times = quick
	f.t.Cleanup(r.Close)
	return r
}

// words returns the frames of an answer, one word each.
func words(otid string, ws ...string) (frames []string) {
	for _, w := range ws {
		frames = append(frames, fmt.Sprintf(`{"id":"message-%s","otid":%q,"step_id":"step-%s","message_type":"assistant_message","content":%q,"run_id":"RUN","seq_id":SEQ}`, otid, otid, otid, w))
	}
	return frames
}

const (
	endTurn = `{"message_type":"stop_reason","stop_reason":"end_turn"}`
	counted = `{"message_type":"usage_statistics","prompt_tokens":20,"completion_tokens":10}`
	fin     = "[DONE]"
	callOf  = `{"id":"message-a","otid":"a","step_id":"step-1","message_type":"approval_request_message","tool_call":{"name":"Bash","arguments":"{}","tool_call_id":"c1"},"run_id":"RUN","seq_id":SEQ}`
	waitFor = `{"message_type":"stop_reason","stop_reason":"requires_approval"}`
)

func plainRun(ws ...string) []string { return append(words("x", ws...), endTurn, counted, fin, fin) }
