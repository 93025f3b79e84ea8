package openclaw

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/coder/websocket"
)

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
	// What neither side has read or sent is small, so that a client that stops reading soon stops the server's writes.
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return c, c.(*net.TCPConn).SetReadBuffer(socketBuffer)
	}
	conn, res, err := websocket.Dial(h.t.Context(), h.ts.URL+"/openclaw", &websocket.DialOptions{
		HTTPHeader: header, HTTPClient: &http.Client{Transport: &http.Transport{DialContext: dial}},
	})
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
	return h.connectAs(mode, secret)
}

// connectAs opens a connection with a token.
func (h *harness) connectAs(mode, token string) *client {
	h.t.Helper()
	c := h.dial(nil)
	if e := c.read(); e["event"] != "connect.challenge" {
		h.t.Fatalf("first frame %v", e)
	}
	hello := c.call("connect", map[string]any{
		"minProtocol": 4, "maxProtocol": 4, "client": map[string]any{"id": "cli", "mode": mode, "version": "1", "platform": "linux"},
		"role": "operator", "scopes": []string{"operator.read", "operator.write"}, "auth": map[string]any{"token": token},
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
				c.t.Fatalf("the end has %.500q, the deltas made %.500q", textOf(e["message"]), *text)
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
		c.t.Fatalf("the message is %.500q, the deltas made %.500q", got, *text)
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
