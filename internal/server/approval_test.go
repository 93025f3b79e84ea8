package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/demo"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/compat"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/elizaws"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/service/signals"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// viewers is a gateway with the demo agent under all surfaces on which people read.
func viewers(t *testing.T) *httptest.Server {
	t.Helper()
	return viewersOf(t, demo.New(demo.Config{}))
}

func viewersOf(t *testing.T, a agent.Agent) *httptest.Server {
	t.Helper()
	j, quiet := memory.New(), slog.New(slog.DiscardHandler)
	told := signals.New(j, quiet)
	if err := told.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	tasks.Go(func() { told.Run(running) })
	gw, err := gateway.New(gateway.Config{
		Journal: j, Agents: gateway.Agents{"demo": {Agent: a, Kind: "demo"}}, DefaultAgent: "demo", Hooks: gateway.Hooks{Watchers: []gateway.Watcher{status.NewTurns(told)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Token: token})
	native.Register(srv, gw)
	eliza.Register(srv, gw, eliza.Options{})
	compat.Register(srv, gw)
	elizaws.Register(srv, gw, elizaws.Options{Signals: told, Hub: hub.New(gw), Agent: status.NewAgent("demo", "test")})
	ts := httptest.NewServer(srv)
	t.Cleanup(func() {
		srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		stop()
		tasks.Wait()
		http.DefaultClient.CloseIdleConnections()
		ts.Close()
	})
	return ts
}

// reading is a stream that is read line by line.
type reading struct {
	t     *testing.T
	name  string
	lines *bufio.Scanner
	seen  strings.Builder
	head  http.Header
}

// streamOf makes a request of the admin and reads its answer.
func streamOf(t *testing.T, ts *httptest.Server, method, path, accept, body string) *reading {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, ts.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	in := &reading{t: t, name: method + " " + path, lines: bufio.NewScanner(res.Body), head: res.Header}
	in.lines.Buffer(nil, 1<<20)
	in.head.Set("Status", fmt.Sprint(res.StatusCode))
	return in
}

// until reads up to a line that holds the text, and returns it.
func (r *reading) until(text string) string {
	r.t.Helper()
	for r.lines.Scan() {
		r.seen.WriteString(r.lines.Text() + "\n")
		if strings.Contains(r.lines.Text(), text) {
			return r.lines.Text()
		}
	}
	r.t.Fatalf("%s ended without %q: %v\n%s", r.name, text, r.lines.Err(), r.seen.String())
	return ""
}

func (r *reading) all() string {
	for r.lines.Scan() {
		r.seen.WriteString(r.lines.Text() + "\n")
	}
	return r.seen.String()
}

// socket is a WebSocket of the admin.
type socket struct {
	t *testing.T
	c *websocket.Conn
}

func dial(t *testing.T, ts *httptest.Server, path string) *socket {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), ts.URL+path, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	c.SetReadLimit(-1)
	return &socket{t, c}
}

func (s *socket) write(frame string) {
	s.t.Helper()
	if err := s.c.Write(s.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *socket) until(texts ...string) string {
	s.t.Helper()
	for {
		_, b, err := s.c.Read(s.t.Context())
		if err != nil {
			s.t.Fatalf("without %q: %v", texts, err)
		}
		all := true
		for _, text := range texts {
			all = all && strings.Contains(string(b), text)
		}
		if all {
			return string(b)
		}
	}
}

const prompt = "May I tidy up?"

// TestApproval asks a question on one surface and answers it on another. Every surface sees the pending question and its
// result, and only the first answer counts.
func TestApproval(t *testing.T) {
	for name, how := range map[string]struct {
		path, body string
		sees       string // that the turn waits, as who has asked sees it
		ends       string
	}{
		"Eliza":               {"/api/conversations/c/messages/stream", `{"text":"ask tidy up"}`, prompt, `"type":"done"`},
		"Chat Completions":    {"/v1/chat/completions", `{"model":"demo","stream":true,"user":"c","messages":[{"role":"user","content":"ask tidy up"}]}`, prompt, `[DONE]`},
		"Messages":            {"/v1/messages", `{"model":"demo","max_tokens":9,"stream":true,"metadata":{"conversation_id":"c"},"messages":[{"role":"user","content":"ask tidy up"}]}`, prompt, `message_stop`},
		"Messages, one piece": {"/v1/messages", `{"model":"demo","max_tokens":9,"metadata":{"conversation_id":"c"},"messages":[{"role":"user","content":"ask tidy up"}]}`, "", `cut by hand`},
	} {
		t.Run(name, func(t *testing.T) {
			ts := viewers(t)
			live := dial(t, ts, "/ws")
			streamOf(t, ts, http.MethodPost, "/api/conversations", "", `{"id":"c"}`).all()
			asked := make(chan *reading, 1)
			if how.sees == "" { // which answers when all is over
				go func() { asked <- streamOf(t, ts, http.MethodPost, how.path, "", how.body) }()
			} else {
				asked <- streamOf(t, ts, http.MethodPost, how.path, "", how.body)
			}

			var signal struct{ RoomID, RunID string }
			frame := live.until(`"stream":"approval"`, `"phase":"requested"`, prompt)
			if err := json.Unmarshal([]byte(frame), &signal); err != nil || signal.RoomID == "" || signal.RunID == "" {
				t.Fatalf("%v: %s", err, frame)
			}
			conv, turn := signal.RoomID, signal.RunID
			reader := streamOf(t, ts, http.MethodGet, "/api/conversations/"+conv+"/events", "application/x-ndjson", "")
			reader.until(prompt)
			native := dial(t, ts, "/api/ws")
			native.write(fmt.Sprintf(`{"type":"subscribe","conversation":%q,"id":"s"}`, conv))
			native.until(prompt)
			var first *reading
			if how.sees != "" {
				first = <-asked
				first.until(how.sees)
			}

			answer := fmt.Sprintf(`{"type":"answer","turn":%q,"request":"approve","decision":%%q}`, turn)
			path := "/api/conversations/" + conv + "/commands"
			for decision, want := range map[string]string{"perhaps": "400", "": "400"} {
				if res := streamOf(t, ts, http.MethodPost, path, "", fmt.Sprintf(answer, decision)); res.head.Get("Status") != want {
					t.Errorf("%q is answered %s: %s", decision, res.head.Get("Status"), res.all())
				}
			}
			native.write(fmt.Sprintf(`{"type":"command","id":"a","conversation":%q,"command":%s}`, conv, fmt.Sprintf(answer, event.Approve)))
			native.until(`"type":"ack"`, `"id":"a"`)
			late := streamOf(t, ts, http.MethodPost, path, "", fmt.Sprintf(answer, event.Deny))
			if body := late.all(); late.head.Get("Status") != "409" || !strings.Contains(body, `"already_ended"`) {
				t.Errorf("the second answer: %s %s", late.head.Get("Status"), body)
			}
			reader.until(`"outcome":"completed"`) // in a batch, or in a snapshot where it comes late
			live.until(`"stream":"approval"`, `"phase":"resolved"`, string(event.Approve))
			if first == nil {
				first = <-asked
			}
			if all := first.all(); !strings.Contains(all, how.ends) || strings.Contains(all, "All right, I leave it") {
				t.Errorf("the asking client got:\n%s", first.seen.String())
			}
		})
	}
}

// A question of a turn that a model API started is not part of the answer's text.
func TestApprovalIsNoText(t *testing.T) {
	ts := viewers(t)
	res := streamOf(t, ts, http.MethodPost, "/v1/chat/completions", "", `{"model":"demo","stream":true,"messages":[{"role":"user","content":"ask tidy up"}]}`)
	res.until(prompt)
	conv, turn := res.head.Get("Leat-Conversation"), res.head.Get("Leat-Turn")
	streamOf(t, ts, http.MethodPost, "/api/conversations/"+conv+"/commands", "", fmt.Sprintf(`{"type":"answer","turn":%q,"request":"approve","text":"not today"}`, turn)).all()
	text := ""
	for line := range strings.SplitSeq(res.all(), "\n") {
		data, ok := strings.CutPrefix(line, "data: {")
		if !ok {
			continue
		}
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte("{"+data), &chunk); err != nil {
			t.Fatal(err)
		}
		for _, c := range chunk.Choices {
			text += c.Delta.Content
		}
	}
	if !strings.HasSuffix(text, "I take that as a no, with a reason: not today\n") || strings.Contains(text, prompt) {
		t.Errorf("text %q", text)
	}
}
