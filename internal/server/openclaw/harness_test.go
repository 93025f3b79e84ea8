package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

const (
	secret = "a-token"
	// patience is how long a test waits for what must happen.
	patience = time.Minute
	mainKey  = "agent:eliza:main"
)

var admin = gateway.Principal{Admin: true}

// agentFunc is an agent that runs a function.
type agentFunc func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (f agentFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}

// gate lets the agent continue when the test sends.
type gate chan struct{}

func (g gate) wait(ctx context.Context) error {
	select {
	case <-g:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// scripts is an agent that does what a message says. At each step of some scripts it waits at the gate.
func scripts(g gate) agent.Agent {
	return agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		seen := func(err error) error { return errors.Join(err, out.Flush()) }
		script, argument, _ := strings.Cut(in.Message.Text, " ")
		switch script {
		case "slow":
			return errors.Join(seen(out.Text("one ")), g.wait(ctx), seen(out.Text("two ")), g.wait(ctx), seen(out.Text("three")))
		case "tool":
			if err := errors.Join(seen(out.Reasoning("I think.")), seen(out.Text("Before."))); err != nil {
				return err
			}
			tool, err := out.Tool("clock", "call-1")
			if err != nil {
				return err
			}
			err = errors.Join(seen(tool.Input(`{"zone":"UTC"}`)), seen(tool.Output("noon")), seen(tool.Done()), seen(out.Text("After.")))
			if err != nil {
				return err
			}
			return out.End(event.Completed, "", &event.Usage{Input: 7, Output: 5})
		case "ask":
			a, err := out.Ask(ctx, event.Request{ID: "ask", Kind: event.RequestApproval, Tool: "shell", Prompt: "May I?"})
			if err != nil {
				return err
			}
			return out.Text("decision: " + string(a.Decision))
		case "question":
			a, err := out.Ask(ctx, event.Request{ID: "q", Kind: event.RequestInput, Prompt: "Which?", Options: []string{"red", "blue"}})
			if err != nil {
				return err
			}
			return out.Text("answer: " + string(a.Decision) + a.Text)
		case "fail":
			return errors.Join(seen(out.Text("so far")), &agent.Error{Code: "rate_limit_error", Message: "the model is busy"})
		case "status":
			return errors.Join(seen(out.Status("Looking…", dialect.Replace)), g.wait(ctx), seen(out.Status("Found", dialect.Replace)))
		case "words":
			for i := range 400 {
				if err := seen(out.Text(fmt.Sprintf("word%d ", i))); err != nil {
					return err
				}
			}
			return nil
		case "parts":
			return out.Text(fmt.Sprintf("%d parts", len(in.Message.Parts)))
		}
		return out.Text("re: " + script + argument)
	})
}

// harness is a gateway with this surface behind a real listener.
type harness struct {
	t    *testing.T
	gw   *gateway.Gateway
	srv  *server.Server
	ts   *httptest.Server
	gate gate
}

func newHarness(t *testing.T) *harness { return newHarnessOn(t, memory.New(), "") }

func newHarnessOn(t *testing.T, j journal.Journal, page string) *harness {
	t.Helper()
	h := &harness{t: t, gate: make(gate)}
	a := scripts(h.gate)
	gw, err := gateway.New(gateway.Config{
		Journal: j, Agents: gateway.Agents{"eliza": {Agent: a}, "Max": {Agent: a}}, DefaultAgent: "eliza", Settings: gateway.Settings{Drain: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.gw, h.srv = gw, server.New(server.Options{Token: secret})
	Register(h.srv, gw, page)
	h.ts = httptest.NewServer(h.srv)
	t.Cleanup(func() {
		h.srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		h.ts.Close()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// open lets the agent take a step.
func (h *harness) open() {
	h.t.Helper()
	select {
	case h.gate <- struct{}{}:
	case <-time.After(patience):
		h.t.Fatal("the agent doesn't wait")
	}
}

// client is a connection that knows nothing of the server's types.
type client struct {
	t      *testing.T
	conn   *websocket.Conn
	n      int
	seq    float64
	events []map[string]any // that call has read
}

// dial opens a connection without the handshake.
func (h *harness) dial(header http.Header) *client {
	h.t.Helper()
	conn, res, err := websocket.Dial(h.t.Context(), h.ts.URL+"/openclaw", &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		h.t.Fatal(err)
	}
	if res.Body != nil {
		_ = res.Body.Close()
	}
	conn.SetReadLimit(64 << 20)
	h.t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{t: h.t, conn: conn}
}

// connect opens a connection as a client of a mode.
func (h *harness) connect(mode string) *client {
	h.t.Helper()
	return h.connectAs(mode, nil)
}

func (h *harness) connectAs(mode string, header http.Header) *client {
	h.t.Helper()
	c := h.dial(header)
	if e := c.read(); e["event"] != "connect.challenge" {
		h.t.Fatalf("first frame %v", e)
	}
	hello := c.call("connect", map[string]any{
		"minProtocol": 4, "maxProtocol": 4, "client": map[string]any{"id": "cli", "mode": mode, "version": "1", "platform": "linux"},
		"role": "operator", "scopes": []string{"operator.read", "operator.write"}, "auth": map[string]any{"token": secret},
	})
	if hello["type"] != "hello-ok" {
		h.t.Fatalf("hello %v", hello)
	}
	return c
}

// read returns the next frame. The numbers of events have no gap.
func (c *client) read() map[string]any {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	_, b, err := c.conn.Read(ctx)
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	var f map[string]any
	if err := json.Unmarshal(b, &f); err != nil {
		c.t.Fatalf("%s: %v", b, err)
	}
	if seq, ok := f["seq"].(float64); ok {
		if seq != c.seq+1 {
			c.t.Fatalf("event %v after %v: %s", seq, c.seq, b)
		}
		c.seq = seq
	}
	return f
}

// request sends a request.
func (c *client) request(method string, params any) (id string) {
	c.t.Helper()
	c.n++
	id = fmt.Sprint("r", c.n)
	b, err := json.Marshal(map[string]any{"type": "req", "id": id, "method": method, "params": params})
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(string(b))
	return id
}

func (c *client) write(frame string) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		c.t.Fatal(err)
	}
}

// response reads up to the response to a request.
func (c *client) response(id string) map[string]any {
	c.t.Helper()
	for {
		f := c.read()
		if f["type"] == "res" {
			if f["id"] != id {
				c.t.Fatalf("response to %v, want %s", f["id"], id)
			}
			return f
		}
		c.events = append(c.events, f)
	}
}

// call returns the payload of a response.
func (c *client) call(method string, params any) map[string]any {
	c.t.Helper()
	f := c.response(c.request(method, params))
	if f["ok"] != true {
		c.t.Fatalf("%s: %v", method, f)
	}
	payload, _ := f["payload"].(map[string]any)
	return payload
}

// refused returns the error of a response.
func (c *client) refused(method string, params any) map[string]any {
	c.t.Helper()
	f := c.response(c.request(method, params))
	fault, ok := f["error"].(map[string]any)
	if !ok || f["ok"] == true {
		c.t.Fatalf("%s: %v, want an error", method, f)
	}
	return fault
}

// next returns the payload of the next event of a name.
func (c *client) next(name string) map[string]any {
	c.t.Helper()
	for {
		var f map[string]any
		if len(c.events) > 0 {
			f, c.events = c.events[0], c.events[1:]
		} else {
			f = c.read()
		}
		if f["event"] == name {
			return f["payload"].(map[string]any)
		}
	}
}

// send sends a message in a session and returns the id of its run.
func (c *client) send(key, run, text string) {
	c.t.Helper()
	got := c.call("chat.send", map[string]any{"sessionKey": key, "message": text, "idempotencyKey": run})
	if got["runId"] != run || got["status"] != "started" {
		c.t.Fatalf("chat.send: %v", got)
	}
}

// finish applies chat events to a text until the run ends, and returns the last event.
func (c *client) finish(run string, text *string) map[string]any {
	c.t.Helper()
	for {
		e := c.next("chat")
		if e["runId"] != run {
			continue
		}
		if e["state"] != "delta" {
			if e["message"] != nil && textOf(e["message"]) != *text {
				c.t.Fatalf("the end has %q, the deltas made %q", textOf(e["message"]), *text)
			}
			return e
		}
		c.apply(e, text)
	}
}

// apply applies a delta.
func (c *client) apply(e map[string]any, text *string) {
	c.t.Helper()
	if e["replace"] == true {
		*text = ""
	}
	*text += e["deltaText"].(string)
	if got := textOf(e["message"]); got != *text {
		c.t.Fatalf("the message is %q, the deltas made %q", got, *text)
	}
}

// textOf returns the texts of a message.
func textOf(m any) (text string) {
	for _, b := range m.(map[string]any)["content"].([]any) {
		if t, ok := b.(map[string]any)["text"].(string); ok {
			text += t
		}
	}
	return text
}

// visible returns the visible text of the newest turn of a session from the log.
func (h *harness) visible(c *client, key string) (text string) {
	h.t.Helper()
	id := c.call("chat.history", map[string]any{"sessionKey": key})["sessionId"].(string)
	err := h.gw.ViewTranscript(h.t.Context(), admin, id, func(t *transcript.Transcript) bool {
		text = t.Visible(t.Turns[len(t.Turns)-1].ID)
		return true
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return text
}

// controlUI makes a folder like that of the Control UI.
func controlUI(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"index.html": `<html lang="en"><head><title>x</title></head></html>`, "assets/a.js": "1"} {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
