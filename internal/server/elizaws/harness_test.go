package elizaws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/service/signals"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "a-token"

var admin = gateway.Principal{Admin: true}

type agentFunc func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (f agentFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}

var echo = agentFunc(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
	if strings.HasPrefix(in.Message.Text, "fail") {
		return &agent.Error{Code: "broken", Message: "no"}
	}
	if in.Message.Text == "stream" { // a word a second, for tests in virtual time
		for range 5 {
			if err := errors.Join(out.Text("word "), out.Flush()); err != nil {
				return err
			}
			time.Sleep(time.Second)
		}
	}
	if err := out.Text("re: " + in.Message.Text); err != nil {
		return err
	}
	return out.End(event.Completed, "", &event.Usage{Model: "model-1"})
})

// harness is a running server over a journal.
type harness struct {
	t       *testing.T
	journal journal.Journal
	gw      *gateway.Gateway
	srv     *server.Server
	hs      *httptest.Server // nil in virtual time
	http    *http.Client     // only in virtual time
	log     *signals.Log
	hub     *hub.Hub
	agent   *status.Agent
	close   func()
	down    func() // close without the connections
}

func newHarness(t *testing.T, change func(*server.Options, *Options)) *harness {
	t.Helper()
	j := memory.New()
	t.Cleanup(func() { _ = j.Close() })
	return openHarness(t, j, change)
}

func openHarness(t *testing.T, j journal.Journal, change func(*server.Options, *Options)) *harness {
	t.Helper()
	h := build(t, j, change)
	h.hs = httptest.NewServer(h.srv)
	down := h.down
	h.close = sync.OnceFunc(func() {
		down()
		http.DefaultClient.CloseIdleConnections()
		h.hs.Close()
	})
	t.Cleanup(h.close)
	return h
}

// viewers is how many sockets a user may have.
const viewers = 4

// build returns a harness without a listener.
func build(t *testing.T, j journal.Journal, change func(*server.Options, *Options)) *harness {
	t.Helper()
	h := &harness{t: t, journal: j}
	quiet := slog.New(slog.DiscardHandler)
	h.log, h.agent = signals.New(j, quiet), status.NewAgent("eliza", "test")
	if err := h.log.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	tasks.Go(func() { h.log.Run(running) })
	var err error
	h.gw, err = gateway.New(gateway.Config{
		Journal: j, Agents: gateway.Agents{"eliza": {Agent: echo}}, DefaultAgent: "eliza",
		Hooks:  gateway.Hooks{Watchers: []gateway.Watcher{status.NewTurns(h.log), h.agent}, Admit: h.agent.Admit},
		Quotas: gateway.Quotas{User: quota.Limits{Viewers: viewers}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.agent.Begin()
	if err := h.gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.agent.Ready()
	h.hub = hub.New(h.gw)
	so := server.Options{Token: secret}
	opt := Options{Signals: h.log, Hub: h.hub, Agent: h.agent}
	if change != nil {
		change(&so, &opt)
	}
	opt.Restart = func() error { opt.Agent.Pend(); opt.Agent.Leave(); return nil }
	h.srv = server.New(so)
	Register(h.srv, h.gw, opt)
	h.down = func() {
		h.srv.Close()
		if err := h.gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		stop()
		tasks.Wait()
	}
	return h
}

// call makes a request of the admin, or of the user in the headers.
func (h *harness) call(method, path, body string, headers ...string) (int, string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.hs.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(b))
}

func (h *harness) wantCall(status int, answer, method, path, body string, headers ...string) {
	h.t.Helper()
	if code, got := h.call(method, path, body, headers...); code != status || !strings.Contains(got, answer) {
		h.t.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, code, got, status, answer)
	}
}

func (h *harness) create(p gateway.Principal) string {
	h.t.Helper()
	s, _, err := h.gw.Create(h.t.Context(), p, gateway.CreateOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return s.ID
}

// send runs a turn to its end.
func (h *harness) send(p gateway.Principal, conversation, text string) (turn string) {
	h.t.Helper()
	ack, err := h.gw.Do(h.t.Context(), p, conversation, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: text, Source: "web"}})
	if err != nil {
		h.t.Fatal(err)
	}
	f, err := h.gw.Feed(h.t.Context(), p, conversation)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Release()
	for over := false; !over; {
		changed := f.Notify()
		f.View(func(tr *transcript.Transcript) { over = !tr.Turn(ack.Turn).Unfinished() })
		if !over {
			<-changed
		}
	}
	return ack.Turn
}

// publish writes n training events. Their payloads count from 1.
func (h *harness) publish(n int, conversation string) {
	h.t.Helper()
	for i := 0; i < n; i += 500 {
		var all []signals.Signal
		for k := i + 1; k <= min(n, i+500); k++ {
			all = append(all, signals.Signal{Type: signals.TrainingEvent, Conversation: conversation, Payload: fmt.Append(nil, k)})
		}
		if _, err := h.log.Publish(h.t.Context(), all...); err != nil {
			h.t.Fatal(err)
		}
	}
}

// client is the client side of one socket.
type client struct {
	t     *testing.T
	conn  *websocket.Conn
	reads bool         // include conversation-read frames, which next skips otherwise
	pings atomic.Int64 // received from the server, in virtual time
}

// frame has the fields of any frame that tests look at.
type frame struct {
	raw     string
	Type    string
	State   string
	EventID string `json:"eventId"`
	RoomID  string `json:"roomId"`
	Stream  string
	Payload json.RawMessage
}

// dial opens a socket. The headers are name, value pairs.
func (h *harness) dial(query string, headers ...string) *client {
	h.t.Helper()
	hd := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		hd.Set(headers[i], headers[i+1])
	}
	conn, _, err := websocket.Dial(h.t.Context(), h.hs.URL+"/ws"+query, &websocket.DialOptions{HTTPHeader: hd})
	if err != nil {
		h.t.Fatal(err)
	}
	conn.SetReadLimit(1 << 20)
	h.t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{t: h.t, conn: conn}
}

// greeted opens a socket of the admin and reads its first status.
func (h *harness) greeted(query string, headers ...string) *client {
	h.t.Helper()
	c := h.dial(query, append([]string{"Authorization", "Bearer " + secret}, headers...)...)
	c.want("status")
	return c
}

func (c *client) send(s string) *client {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageText, []byte(s)); err != nil {
		c.t.Fatal(err)
	}
	return c
}

func (c *client) next() frame {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	_, b, err := c.conn.Read(ctx)
	if err != nil {
		c.t.Fatalf("no frame: %v", err)
	}
	f := frame{raw: string(b)}
	if err := json.Unmarshal(b, &f); err != nil {
		c.t.Fatalf("%s: %v", b, err)
	}
	if f.Type == "conversation-read" && !c.reads {
		return c.next()
	}
	return f
}

// want reads the next frame, except for repeated statuses.
func (c *client) want(typ string) frame {
	c.t.Helper()
	f := c.next()
	for f.Type == "status" && typ != "status" {
		f = c.next()
	}
	if f.Type != typ {
		c.t.Fatalf("got %s, want %s", f.raw, typ)
	}
	return f
}

// closed reads up to the end of the socket.
func (c *client) closed() (status websocket.StatusCode, frames []string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	for {
		_, b, err := c.conn.Read(ctx)
		if err != nil {
			return websocket.CloseStatus(err), frames
		}
		frames = append(frames, string(b))
	}
}
