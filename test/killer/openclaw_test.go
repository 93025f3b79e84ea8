//go:build unix

package killer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent/llm/llmtest"
)

// TestKillerOpenClaw kills the program while a client of OpenClaw's protocol reads an answer. After each restart, the client finds its run with
// at least the text that it has seen, and a repeated message is not sent again. At the end its text is that of the agent and of the log.
func TestKillerOpenClaw(t *testing.T) {
	s := llmtest.New(t, "responses")
	var words []string
	for i := range 60 {
		words = append(words, fmt.Sprintf("wörd-%02d ", i))
	}
	s.Say(words...)
	const before = 4 // events that come before the first word
	s.Hold(before + 1)
	p := newProgram(t, t.TempDir(), "--agent", "responses:"+llmtest.Model+"?background=true&token_env=LEAT_KILLER_KEY&base_url="+s.URL)
	p.env = append(p.env, "LEAT_KILLER_KEY="+llmtest.Key, "LEAT_OUTPUTS_OPENCLAW=true")
	api := begin(t, p)

	const run = "run-of-the-client"
	message := map[string]any{"sessionKey": "main", "message": "go", "idempotencyKey": run}
	c := dialClaw(t, p)
	if status := c.call("chat.send", message)["status"]; status != "started" {
		t.Fatalf("chat.send: %v", status)
	}
	for _, word := range []int{0, 7, 20, 33, 59} {
		s.Hold(before + word + 1)
		c.readTo(run, strings.Join(words[:word+1], ""))
		seen := c.text
		if err := p.end(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := p.start(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, p.said())
		}
		c = dialClaw(t, p)
		page := c.call("chat.startup", map[string]any{"sessionKey": "main"})
		inFlight, _ := page["inFlightRun"].(map[string]any)
		c.text, _ = inFlight["text"].(string)
		if inFlight["runId"] != run || !strings.HasPrefix(c.text, seen) || !strings.HasPrefix(s.Text(), c.text) {
			t.Fatalf("after %q, the run in flight is %v", seen, inFlight)
		}
		if status := c.call("chat.send", message)["status"]; status != "in_flight" {
			t.Errorf("the repeated message is %v", status)
		}
	}
	s.Hold(-1)
	c.readTo(run, "")
	id, _ := c.call("chat.history", map[string]any{"sessionKey": "main"})["sessionId"].(string)
	if c.text != s.Text() {
		t.Errorf("the client has %q", c.text)
	}
	tr, err := api.Transcript(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Turns) != 1 || tr.Visible(tr.Turns[0].ID) != c.text {
		t.Errorf("%d turns in the log, which don't have the client's text", len(tr.Turns))
	}
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	posts := 0
	for _, call := range s.Calls() {
		if call.Method == "POST" {
			posts++
		}
	}
	if posts != 1 {
		t.Errorf("the agent was asked %d times", posts)
	}
}

// clawClient is a client of OpenClaw's protocol. Only the test's goroutine uses it.
type clawClient struct {
	t    *testing.T
	conn *websocket.Conn
	n    int
	text string // of the run, from what was read
	ends []string
}

// dialClaw connects a client.
func dialClaw(t *testing.T, p *program) *clawClient {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(p.url(), "http")+"/openclaw", nil) //nolint:bodyclose // it is empty
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(16 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() }) // the program may have been killed
	c := &clawClient{t: t, conn: conn}
	c.call("connect", map[string]any{
		"minProtocol": 4, "maxProtocol": 4, "client": map[string]any{"id": "cli", "mode": "ui", "version": "1", "platform": "linux"},
		"role": "operator", "scopes": []string{"operator.write"}, "auth": map[string]any{"token": "any"},
	})
	return c
}

// clawFrame is a response or an event.
type clawFrame struct {
	ID      string         `json:"id"`
	OK      bool           `json:"ok"`
	Event   string         `json:"event"`
	Payload map[string]any `json:"payload"`
	Error   any            `json:"error"`
}

// read reads a frame, and applies it to the text if it belongs to the run.
func (c *clawClient) read() (f clawFrame) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), calmLimit)
	defer cancel()
	_, b, err := c.conn.Read(ctx)
	if err := errors.Join(err, json.Unmarshal(b, &f)); err != nil {
		c.t.Fatalf("%v; the client has %q", err, c.text)
	}
	if f.Event != "chat" {
		return f
	}
	if f.Payload["state"] != "delta" {
		c.ends = append(c.ends, fmt.Sprint(f.Payload["runId"], " ", f.Payload["state"]))
		return f
	}
	if f.Payload["replace"] == true {
		c.text = ""
	}
	delta, _ := f.Payload["deltaText"].(string)
	c.text += delta
	return f
}

// call returns the payload of a response.
func (c *clawClient) call(method string, params any) map[string]any {
	c.t.Helper()
	c.n++
	id := fmt.Sprint(c.n)
	b, err := json.Marshal(map[string]any{"type": "req", "id": id, "method": method, "params": params})
	if err := errors.Join(err, c.conn.Write(c.t.Context(), websocket.MessageText, b)); err != nil {
		c.t.Fatal(err)
	}
	for {
		switch f := c.read(); {
		case f.ID != id:
		case !f.OK:
			c.t.Fatalf("%s: %v", method, f.Error)
		default:
			return f.Payload
		}
	}
}

// readTo reads until the client has a text, or until the run is over if the text is empty.
func (c *clawClient) readTo(run, text string) {
	c.t.Helper()
	for text == "" && !slices.Contains(c.ends, run+" final") || text != "" && c.text != text {
		if len(c.ends) > 0 {
			c.t.Fatalf("the run has ended: %v", c.ends)
		}
		c.read()
	}
}
