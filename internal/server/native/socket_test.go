package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/server/servertest"
)

// client is the client side of one socket.
type client struct {
	t    *testing.T
	conn *websocket.Conn
}

// dial opens a socket, without reading the hello.
func (h *harness) dial(header ...string) *client {
	h.t.Helper()
	hd := h.header.Clone()
	for i := 0; i < len(header); i += 2 {
		hd.Set(header[i], header[i+1])
	}
	conn, _, err := websocket.Dial(h.t.Context(), h.url+"/api/ws", &websocket.DialOptions{HTTPHeader: hd})
	if err != nil {
		h.t.Fatal(err)
	}
	conn.SetReadLimit(64 << 20)
	h.t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{t: h.t, conn: conn}
}

// greeted opens a socket and reads the hello.
func (h *harness) greeted(header ...string) *client {
	h.t.Helper()
	c := h.dial(header...)
	if f := c.next(); f.Type != "hello" || f.Protocol != "leat/1" {
		h.t.Fatalf("first frame %s", f.raw)
	}
	return c
}

func (c *client) send(format string, args ...any) *client {
	c.t.Helper()
	b := fmt.Appendf(nil, format, args...)
	valid(c.t, "clientFrame", b)
	return c.sendRaw(b)
}

func (c *client) sendRaw(b []byte) *client {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageText, b); err != nil {
		c.t.Fatal(err)
	}
	return c
}

func (c *client) next() frame {
	c.t.Helper()
	_, b, err := c.conn.Read(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return parse(c.t, b)
}

// want reads frames up to the next one of a type, and checks its id.
func (c *client) want(kind, id string) frame {
	c.t.Helper()
	for {
		f := c.next()
		if f.Type != kind {
			if f.Type == "error" || f.Type == "rejected" || f.Type == "ack" {
				c.t.Fatalf("got %s, want %s", f.raw, kind)
			}
			continue
		}
		if f.ID != id {
			c.t.Fatalf("got id %q, want %q", f.ID, id)
		}
		return f
	}
}

// closed reads up to the end of the socket.
func (c *client) closed() (last frame, status websocket.StatusCode) {
	c.t.Helper()
	for {
		_, b, err := c.conn.Read(c.t.Context())
		if err != nil {
			return last, websocket.CloseStatus(err)
		}
		last = parse(c.t, b)
	}
}

func (c *client) until(r *reader, conversation string, ok func() bool) {
	c.t.Helper()
	for !ok() {
		if f := c.next(); f.Conversation == conversation {
			r.take(f)
		}
	}
}

func TestSocket(t *testing.T) {
	h := newHarness(t, options{})
	c := h.greeted()
	id := c.send(`{"type":"create","id":"1","create":{"title":"T","metadata":{"a":1},"key":"k"}}`).want("ack", "1").Conversation
	if f := c.send(`{"type":"create","id":"2","create":{"title":"T","metadata":{"a":1},"key":"k"}}`).want("ack", "2"); f.Conversation != id || f.Created {
		t.Errorf("created again: %s", f.raw)
	}
	other := c.send(`{"type":"create","id":"3"}`).want("ack", "3").Conversation
	c.send(`{"type":"subscribe","id":"s1","conversation":%q}`, id).want("subscribed", "s1")
	c.send(`{"type":"subscribe","conversation":%q}`, other)
	r, o := &reader{t: t}, &reader{t: t}
	var acks int
	c.send(`{"type":"command","id":"4","conversation":%q,"command":{"type":"send","message":{"text":"hi"},"key":"m"}}`, id)
	c.send(`{"type":"command","id":"5","conversation":%q,"command":{"type":"send","message":{"text":"ho"}}}`, other)
	for acks < 2 || r.text() != "user: hi\nassistant: you said: hi" || o.text() != "user: ho\nassistant: you said: ho" {
		f := c.next()
		switch {
		case f.Type == "ack":
			acks++
			if f.State != "started" || f.Seq == 0 {
				t.Errorf("ack %s", f.raw)
			}
		case f.Conversation == id:
			r.take(f)
		case f.Conversation == other:
			o.take(f)
		}
	}
	if r.fold.Title != "T" || string(r.fold.Metadata["a"]) != "1" {
		t.Errorf("title %q, metadata %v", r.fold.Title, r.fold.Metadata)
	}
	// After unsubscribe, no frame of the conversation arrives.
	c.send(`{"type":"unsubscribe","conversation":%q}`, id).send(`{"type":"ping"}`).want("pong", "")
	h.ended(id, h.send(id, "unseen").Turn)
	c.send(`{"type":"ping"}`)
	for f := c.next(); f.Type != "pong"; f = c.next() {
		if f.Conversation == id {
			t.Errorf("after unsubscribe: %s", f.raw)
		}
	}
	// From the cursor, without a snapshot.
	c.send(`{"type":"subscribe","id":"s2","conversation":%q,"after":%q}`, id, r.cursor).want("subscribed", "s2")
	c.until(r, id, func() bool { return strings.HasSuffix(r.text(), "user: unseen\nassistant: you said: unseen") })
	if r.resets != 1 {
		t.Errorf("%d resets", r.resets)
	}
	// A second subscribe without a cursor, as after a gap: no frame of the old subscription follows the answer.
	c.send(`{"type":"subscribe","id":"s3","conversation":%q}`, id).want("subscribed", "s3")
	if f := c.next(); f.Type != "snapshot" {
		t.Errorf("after a new subscription: %s", f.raw)
	}
}

func TestSocketCommands(t *testing.T) {
	block := make(chan struct{})
	h := newHarness(t, options{agent: script(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		if in.Message.Text == "block" {
			select {
			case <-block:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return out.Text("ok")
	})})
	c := h.greeted()
	id := h.create()
	cmd := func(id, conversation, command string) *client {
		return c.send(`{"type":"command","id":%q,"conversation":%q,"command":%s}`, id, conversation, command)
	}
	ack := cmd("1", id, `{"type":"send","message":{"text":"block"}}`).want("ack", "1")
	queued := cmd("2", id, `{"type":"send","message":{"text":"next","id":"m2"}}`).want("ack", "2")
	if queued.State != "queued" || queued.Message != "m2" {
		t.Errorf("second send: %s", queued.raw)
	}
	if f := cmd("3", id, `{"type":"truncate"}`).want("rejected", "3"); f.Reason != gateway.ReasonUnfinished || f.Conversation != id {
		t.Errorf("truncate: %s", f.raw)
	}
	if f := cmd("4", id, `{"type":"send","message":{"text":"x","id":"m2"}}`).want("rejected", "4"); f.Reason != gateway.ReasonConflict {
		t.Errorf("taken id: %s", f.raw)
	}
	cmd("5", id, fmt.Sprintf(`{"type":"stop","turn":%q}`, ack.Turn)).want("ack", "5")
	if turn := h.ended(id, queued.Turn); turn.Outcome != "completed" {
		t.Errorf("the next turn: %+v", turn)
	}
	if f := cmd("6", "nowhere", `{"type":"stop","turn":"x"}`).want("rejected", "6"); f.Reason != server.ReasonNotFound {
		t.Errorf("unknown conversation: %s", f.raw)
	}
	if f := cmd("7", id, `{"type":"stop","turn":"x"}`).want("rejected", "7"); f.Reason != gateway.ReasonUnknown {
		t.Errorf("unknown turn: %s", f.raw)
	}
	for range 2 {
		if f := cmd("8", id, `{"type":"inject","message":{"text":"note","role":"assistant"},"key":"i"}`).want("ack", "8"); f.Message == "" {
			t.Errorf("inject: %s", f.raw)
		}
	}
	if f := cmd("9", id, `{"type":"inject","message":{"text":"other"},"key":"i"}`).want("rejected", "9"); f.Reason != gateway.ReasonConflict {
		t.Errorf("key with another body: %s", f.raw)
	}
	cmd("10", id, `{"type":"update","title":"New"}`).want("ack", "10")
	cmd("11", id, `{"type":"delete"}`).want("ack", "11")
	if f := c.send(`{"type":"subscribe","id":"12","conversation":%q}`, id).want("error", "12"); f.Reason != server.ReasonNotFound || f.Conversation != id {
		t.Errorf("subscribe to a deleted one: %s", f.raw)
	}
}

// Commands of one conversation keep their order.
func TestSocketOrder(t *testing.T) {
	h := newHarness(t, options{})
	c := h.greeted()
	id := h.create()
	const n = 100
	for i := range n {
		c.send(`{"type":"command","id":"%d","conversation":%q,"command":{"type":"inject","message":{"text":"%d"}}}`, i, id, i)
	}
	seen := map[string]bool{}
	for len(seen) < n {
		f := c.next()
		if f.Type != "ack" || seen[f.ID] {
			t.Fatalf("got %s", f.raw)
		}
		seen[f.ID] = true
	}
	r := h.folded(id)
	for i, m := range r.fold.Messages {
		if want := fmt.Sprint(n - len(r.fold.Messages) + i); m.Visible() != want {
			t.Fatalf("message %d is %q, want %s", i, m.Visible(), want)
		}
	}
}

func TestSocketInvalidFrames(t *testing.T) {
	h := newHarness(t, options{})
	c := h.greeted()
	for _, bad := range []string{
		``, `x`, `[]`, `{"type":1}`, `{"type":"subscribe","conversation":"c","extra":1}`, `{"type":"\ud800"}`,
		`{"type":"ping"}{}`, `{"__proto__":1,"type":"ping"}`, `{"type":"dance"}`, `{}`,
	} {
		f := c.sendRaw([]byte(bad)).want("error", "")
		if f.Reason != server.ReasonInvalid || f.Error == "" {
			t.Errorf("%q: %s", bad, f.raw)
		}
	}
	if err := c.conn.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	c.want("error", "")
	if f := c.sendRaw([]byte(`{"type":"command","id":"a","conversation":"c"}`)).want("rejected", "a"); f.Reason != server.ReasonInvalid {
		t.Errorf("no command: %s", f.raw)
	}
	if f := c.sendRaw([]byte(`{"type":"command","id":"b","conversation":"c","command":{"type":"dance"}}`)).want("rejected", "b"); f.Reason != gateway.ReasonInvalid {
		t.Errorf("unknown command: %s", f.raw)
	}
	c.send(`{"type":"ping"}`).want("pong", "") // the socket is still usable

	big := `{"type":"ping","id":"` + strings.Repeat("a", native.MaxCommand) + `"}`
	_ = c.conn.Write(t.Context(), websocket.MessageText, []byte(big))
	if _, status := c.closed(); status != websocket.StatusMessageTooBig && status != -1 {
		t.Errorf("an oversize frame: closed with %d", status)
	}
	if _, status := h.greeted().sendRaw([]byte("{\"type\":\"\xff\"}")).closed(); status != websocket.StatusInvalidFramePayloadData {
		t.Errorf("a frame that is not UTF-8: closed with %d", status)
	}
}

func TestSocketAuth(t *testing.T) {
	h := newHarness(t, options{})
	id := h.create()
	bare := *h
	bare.header = http.Header{}

	c := bare.dial().send(`{"type":"auth","token":%q}`, token)
	if f := c.next(); f.Type != "hello" {
		t.Errorf("after auth: %s", f.raw)
	}
	c.send(`{"type":"subscribe","conversation":%q}`, id).want("subscribed", "")
	c.send(`{"type":"auth","id":"a","token":%q}`, token).want("authenticated", "a")
	c.send(`{"type":"auth","token":"wrong"}`).want("error", "")

	for _, first := range []string{`{"type":"auth","token":"wrong"}`, `{"type":"auth","token":""}`, `{"type":"ping"}`, `nonsense`, fmt.Sprintf(`{"type":"subscribe","conversation":%q}`, id)} {
		last, status := bare.dial().sendRaw([]byte(first)).closed()
		if status != websocket.StatusPolicyViolation || last.Type != "error" || last.Reason != server.ReasonUnauthorized {
			t.Errorf("%s: closed with %d after %s", first, status, last.raw)
		}
	}
	for _, header := range []http.Header{{"Authorization": {"Bearer wrong"}}, {"Authorization": {"Bearer " + token}, "Origin": {"https://evil.example"}}, {"Authorization": {"Bearer " + token}, "Leat-Tenant": {"t"}}} {
		_, res, err := websocket.Dial(t.Context(), h.url+"/api/ws", &websocket.DialOptions{HTTPHeader: header})
		if err == nil || res == nil || res.StatusCode < 400 {
			t.Errorf("%v: a socket was opened", header)
		}
	}
	// A user for whom the holder of the token acts sees no other user's conversations.
	alice := h.as("alice").greeted()
	if f := alice.send(`{"type":"subscribe","id":"1","conversation":%q}`, id).want("error", "1"); f.Reason != server.ReasonNotFound {
		t.Errorf("foreign subscribe: %s", f.raw)
	}
	if f := alice.send(`{"type":"command","id":"2","conversation":%q,"command":{"type":"delete"}}`, id).want("rejected", "2"); f.Reason != server.ReasonNotFound {
		t.Errorf("foreign command: %s", f.raw)
	}
	res := h.open(http.MethodGet, "/api/ws", nil)
	var e struct{ Error, Reason string }
	if err := json.NewDecoder(res.Body).Decode(&e); err != nil || res.StatusCode != http.StatusUpgradeRequired || e.Reason != server.ReasonInvalid || res.Header.Get("Upgrade") != "websocket" {
		t.Errorf("no upgrade: %d %v %+v %v", res.StatusCode, res.Header, e, err)
	}
}

// A client gets an answer with its id even for a frame that can't be parsed.
func TestSocketAnswersInvalidFrames(t *testing.T) {
	h := newHarness(t, options{})
	c := h.greeted()
	for raw, want := range map[string]string{
		`{"type":"create","id":"1","create":{"nope":1}}`:                           "rejected 1 ",
		`{"type":"command","id":"2","conversation":"c","command":{"type":1}}`:      "rejected 2 c",
		`{"type":"read","id":"3","conversation":"c","seq":"x"}`:                    "rejected 3 c",
		`{"type":"subscribe","id":"4","conversation":"c","nope":1}`:                "error 4 ",
		`{"type":"command","id":5,"conversation":"c","command":{"type":"delete"}}`: "rejected  c",
		`{"id":"6","type":["command"]}`:                                            "error 6 ",
		`{"type":"command","id":"7"`:                                               "error  ",
		`[]`:                                                                       "error  ",
	} {
		f := c.sendRaw([]byte(raw)).next()
		if got := f.Type + " " + f.ID + " " + f.Conversation; got != want || f.Reason != server.ReasonInvalid {
			t.Errorf("%s: %s", raw, f.raw)
		}
	}
}

func TestSocketSubscriptions(t *testing.T) {
	h := newHarness(t, options{})
	c := h.greeted()
	var last string
	for range native.MaxSubscriptions {
		last = h.create()
		c.send(`{"type":"subscribe","conversation":%q}`, last).want("subscribed", "")
	}
	one := h.create()
	if f := c.send(`{"type":"subscribe","conversation":%q}`, one).want("error", ""); f.Reason != server.ReasonBusy || f.Conversation != one {
		t.Errorf("one too many: %s", f.raw)
	}
	c.send(`{"type":"subscribe","conversation":%q}`, last).want("subscribed", "") // the same subscription does not count twice
	h.do(http.MethodPost, "/api/conversations/"+last+"/commands", `{"type":"delete"}`, "ack")
	if f := c.want("error", ""); f.Reason != gateway.ReasonDeleted || f.Conversation != last {
		t.Errorf("deleted: %s", f.raw)
	}
	c.send(`{"type":"subscribe","conversation":%q}`, one).want("subscribed", "") // the slot of the deleted one is free
}

// While a socket accepts no bytes, other readers are not delayed. The missed events arrive merged.
func TestSocketSlow(t *testing.T) {
	texts, a := teller()
	h := newHarness(t, options{agent: a})
	id := h.create()
	c := h.greeted()
	r := &reader{t: t}
	c.send(`{"type":"subscribe","conversation":%q}`, id)
	c.until(r, id, func() bool { return r.resets == 1 })
	ack := h.send(id, "go")
	word := strings.Repeat("y", 10_000) + " "
	const words = 1 << 10
	for range words {
		texts <- word
	}
	close(texts)
	h.ended(id, ack.Turn)
	frames := 0
	for r.state(ack.Turn) != "ended" {
		r.take(c.next())
		frames++
	}
	// The system buffers some MB of frames with one word each. The rest is merged.
	if len(r.text()) < words*len(word) || frames > words*3/4 {
		t.Errorf("%d bytes in %d frames", len(r.text()), frames)
	}
}

func TestSocketShutdown(t *testing.T) {
	h := newHarness(t, options{})
	c := h.greeted()
	go h.stop()
	last, status := c.closed()
	if last.Type != "error" || last.Reason != server.ReasonUnavailable || status != websocket.StatusServiceRestart {
		t.Errorf("closed with %d after %s", status, last.raw)
	}
	h.stop()
}

// Heartbeats, the limit to authenticate, and the end of a client that accepts no bytes, in virtual time.
func TestSocketTime(t *testing.T) {
	for name, check := range map[string]func(t *testing.T, dial func(http.Header) *client, gw *gateway.Gateway){
		"heartbeat": func(t *testing.T, dial func(http.Header) *client, _ *gateway.Gateway) {
			c := dial(http.Header{"Authorization": {"Bearer " + token}})
			c.next()
			start := time.Now()
			for i := 1; i <= 3; i++ {
				if f := c.next(); f.Type != "ping" || time.Since(start) != time.Duration(i)*15*time.Second {
					t.Errorf("%s after %v", f.raw, time.Since(start))
				}
			}
			// The interval starts at the last write.
			time.Sleep(4 * time.Second)
			if err := c.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"ping"}`)); err != nil {
				t.Fatal(err)
			}
			if f := c.next(); f.Type != "pong" {
				t.Errorf("%s for a ping", f.raw)
			}
			start = time.Now()
			if f := c.next(); f.Type != "ping" || time.Since(start) > 15*time.Second || time.Since(start) < 14*time.Second {
				t.Errorf("%s after %v", f.raw, time.Since(start))
			}
			_ = c.conn.CloseNow()
		},
		"unauthenticated": func(t *testing.T, dial func(http.Header) *client, _ *gateway.Gateway) {
			c := dial(nil)
			start := time.Now()
			last, status := c.closed()
			if last.Reason != server.ReasonUnauthorized || status != websocket.StatusPolicyViolation || time.Since(start) != 10*time.Second {
				t.Errorf("closed with %d after %v and %s", status, time.Since(start), last.raw)
			}
		},
		"stalled": func(t *testing.T, dial func(http.Header) *client, gw *gateway.Gateway) {
			c := dial(http.Header{"Authorization": {"Bearer " + token}})
			c.next()
			s, _, err := gw.Create(t.Context(), admin, gateway.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.conn.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"type":"subscribe","conversation":%q}`, s.ID)); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			time.Sleep(server.DefaultStall - time.Second)
			synctest.Wait()
			c.next() // the connection was still open
			time.Sleep(server.DefaultStall)
			synctest.Wait()
			for {
				if _, _, err := c.conn.Read(t.Context()); err != nil {
					break
				}
			}
			if time.Since(start) > 2*server.DefaultStall {
				t.Errorf("cut after %v", time.Since(start))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gw := newGateway(t, options{})
				srv := server.New(server.Options{Token: token})
				native.Register(srv, gw)
				l := servertest.Listen()
				ctx, cancel := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() { served <- srv.Serve(ctx, l) }()
				hc := l.Client()
				check(t, func(h http.Header) *client {
					conn, _, err := websocket.Dial(t.Context(), "http://localhost/api/ws", &websocket.DialOptions{HTTPClient: hc, HTTPHeader: h})
					if err != nil {
						t.Fatal(err)
					}
					return &client{t: t, conn: conn}
				}, gw)
				hc.CloseIdleConnections()
				cancel()
				if err := errors.Join(<-served, gw.Shutdown(context.Background())); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
