package elizaws

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/signals"
)

// The result of a handshake by its path, origin and tokens: 101 for a socket that is active at once, 0 for one that waits for
// auth.
func TestUpgrade(t *testing.T) {
	const good, bad = "Bearer " + secret, "Bearer wrong"
	const waits = 0
	for i, tt := range []struct {
		open, query          bool // no token is configured; ?token= is allowed
		path, origin, header string
		want                 int
	}{
		{path: "/ws", want: waits},
		{path: "/ws", header: good, want: 101},
		{path: "/ws", header: bad, want: 401},
		{path: "/ws", header: "Basic abc", want: 401},
		{path: "/ws", header: "bearer " + secret, want: 101},
		{path: "/ws", origin: "https://evil.example", want: 403},
		{path: "/ws", origin: "https://evil.example", header: good, want: 403},
		{path: "/ws", origin: "https://ok.example", header: good, want: 101},
		{path: "/ws", origin: "https://ok.example", want: waits},
		{path: "/ws", origin: "null", header: good, want: 403},
		{path: "/wsx", header: good, want: 404},
		{path: "/wsx", origin: "https://evil.example", header: good, want: 404},
		{path: "/ws/", header: good, want: 404},
		{path: "/", header: good, want: 404},
		{path: "/ws?token=" + secret, want: 401},
		{path: "/ws?token=" + secret, header: good, want: 401},
		{path: "/ws?token=" + secret, origin: "https://evil.example", want: 403},
		{path: "/wsx?token=" + secret, origin: "https://evil.example", want: 404},
		{query: true, path: "/ws?token=" + secret, want: 101},
		{query: true, path: "/ws?token=wrong", want: 401},
		{query: true, path: "/ws?token=wrong", header: good, want: 101},
		{open: true, path: "/ws", want: 101},
		{open: true, path: "/ws", origin: "https://evil.example", want: 403},
		{open: true, path: "/ws?token=whatever", want: 101},
	} {
		t.Run(fmt.Sprintf("%d %s %s %s", i+1, tt.path, tt.origin, tt.header), func(t *testing.T) {
			h := newHarness(t, func(so *server.Options, o *Options) {
				so.AllowedOrigins, o.QueryToken = []string{"https://ok.example"}, tt.query
				if tt.open {
					so.Token = ""
				}
			})
			hd := http.Header{}
			for name, v := range map[string]string{"Origin": tt.origin, "Authorization": tt.header} {
				if v != "" {
					hd.Set(name, v)
				}
			}
			conn, res, err := websocket.Dial(t.Context(), h.hs.URL+tt.path, &websocket.DialOptions{HTTPHeader: hd})
			if err != nil {
				if res == nil || res.StatusCode != tt.want {
					t.Fatalf("got %v, want %d", err, tt.want)
				}
				return
			}
			defer func() { _ = conn.CloseNow() }()
			c := &client{t: t, conn: conn}
			if tt.want == waits {
				c.send(`{"type":"auth","token":"` + secret + `"}`)
				c.want("auth-ok")
			} else if tt.want != 101 {
				t.Fatalf("a socket was opened, want %d", tt.want)
			}
			c.want("status")
		})
	}
}

// Before authentication, any frame except a valid auth closes the socket with 1008, and the client gets no frame.
func TestBeforeAuth(t *testing.T) {
	h := newHarness(t, nil)
	for _, first := range []string{
		`{"type":"ping"}`, `{"type":"auth"}`, `{"type":"auth","token":"wrong"}`, `{"type":"auth","token":""}`, `{"type":"auth","token":7}`, `{"type":"auth","token":null}`,
		`{"type":"active-conversation","conversationId":"c"}`, `{`, ``, `null`, `[]`, `"auth"`,
	} {
		status, frames := h.dial("").send(first).closed()
		if status != websocket.StatusPolicyViolation || len(frames) > 0 {
			t.Errorf("%q: closed with %d after %q", first, status, frames)
		}
	}
}

// Wrong tokens on sockets count like wrong tokens of requests. Above the limit, even the right token is refused until the delay
// is over, in a message and in the handshake.
func TestGuessing(t *testing.T) {
	timed(t, func(h *harness, dial func(http.Header) *client) {
		right := http.Header{"Authorization": {"Bearer " + secret}}
		auth := func(token string) *client { return dial(nil).send(`{"type":"auth","token":"` + token + `"}`) }
		good := func() {
			t.Helper()
			c := auth(secret)
			c.want("auth-ok")
			_ = c.conn.CloseNow()
			c = dial(right)
			c.want("status")
			_ = c.conn.CloseNow()
		}
		for i := range 31 {
			if i == 29 {
				good()
			}
			if status, frames := auth(fmt.Sprint("guess-", i)).closed(); status != websocket.StatusPolicyViolation || len(frames) > 0 {
				t.Fatalf("wrong token %d: closed with %d after %q", i+1, status, frames)
			}
		}
		if status, frames := auth(secret).closed(); status != websocket.StatusPolicyViolation || len(frames) > 0 {
			t.Errorf("the right token in a message: closed with %d after %q", status, frames)
		}
		conn, res, err := websocket.Dial(h.t.Context(), "http://localhost/ws", &websocket.DialOptions{HTTPClient: h.http, HTTPHeader: right})
		if err == nil {
			_ = conn.CloseNow()
			t.Error("the right token at the handshake: a socket was opened")
		} else if res == nil || res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" {
			t.Errorf("the right token at the handshake: %v", err)
		}
		time.Sleep(10 * time.Second) // in virtual time
		good()
	})
}

// A client that sends its queued frames right behind its token.
func TestAuthMessage(t *testing.T) {
	h := newHarness(t, nil)
	h.publish(1, "")
	c := h.dial("?clientId=ui-1")
	c.send(`{"type":"auth","token":"` + secret + `"}`).send(`{"type":"active-conversation","conversationId":"c"}`).send(`{"type":"ping"}`)
	if f := c.next(); f.raw != `{"type":"auth-ok"}` {
		t.Errorf("first %s", f.raw)
	}
	for _, want := range []string{"status", "training_event"} {
		if f := c.next(); f.Type != want {
			t.Fatalf("got %s, want %s", f.raw, want)
		}
	}
	if f := c.want("pong"); f.raw != `{"type":"pong"}` {
		t.Errorf("pong %s", f.raw)
	}
	c.send(`{"type":"auth","token":"wrong"}`).send(`{"type":"ping"}`).want("pong") // an auth that is not needed is ignored
}

// After authentication, only a frame that is too large or not UTF-8 ends the socket.
func TestNonsense(t *testing.T) {
	h := newHarness(t, nil)
	c := h.greeted("")
	for _, s := range []string{``, `{`, `null`, `[]`, `7`, `"x"`, `{"type":7}`, `{"type":"dance"}`, `{"__proto__":1}`, `{"type":"active-conversation","conversationId":7}`, `{"type":"active-conversation"}`} {
		c.send(s)
	}
	if err := c.conn.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	frame := func(n int) string {
		s := `{"type":"ping","x":""}`
		return s[:len(s)-2] + strings.Repeat("x", n-len(s)) + s[len(s)-2:]
	}
	c.send(frame(65_536)).want("pong")
	_ = c.conn.Write(t.Context(), websocket.MessageText, []byte(frame(65_537))) // the socket may close during this write
	if status, frames := c.closed(); status != websocket.StatusMessageTooBig || len(frames) > 0 {
		t.Errorf("65,537 bytes: closed with %d after %q", status, frames)
	}
	if status, frames := h.greeted("").send("\xff").closed(); status != websocket.StatusInvalidFramePayloadData {
		t.Errorf("not UTF-8: closed with %d after %q", status, frames)
	}
}

// Live frames reach the users who may see them.
func TestHubOnSockets(t *testing.T) {
	h := newHarness(t, nil)
	conv := h.create(alice)
	c, a, b := h.greeted(""), h.greeted("", as("alice")...), h.greeted("", as("bob")...)
	for _, c := range []*client{c, a, b} {
		c.send(`{"type":"ping"}`).want("pong") // the socket has joined
	}
	h.hub.Send(hub.Frame{Conversation: conv, JSON: []byte(`{"type":"conversation-updated"}`)})
	h.hub.Send(hub.Frame{JSON: []byte(`{"type":"terminal-output"}`)})
	h.hub.Send(hub.Frame{Broadcast: true, JSON: []byte(`{"type":"emote"}`)})
	for name, who := range map[string]struct {
		c    *client
		want []string
	}{"admin": {c, []string{"conversation-updated", "terminal-output", "emote"}}, "alice": {a, []string{"conversation-updated", "emote"}}, "bob": {b, []string{"emote"}}} {
		for _, want := range who.want {
			if f := who.c.want(want); f.raw != `{"type":"`+want+`"}` {
				t.Errorf("%s gets %s", name, f.raw)
			}
		}
	}
}

// The hub knows the open conversation of each socket until the socket closes.
func TestActiveConversation(t *testing.T) {
	h := newHarness(t, nil)
	look := func(c *client, id, want string) {
		t.Helper()
		c.send(`{"type":"active-conversation","conversationId":` + id + `}`).send(`{"type":"ping"}`).want("pong")
		if got := h.hub.Active(alice); got != want {
			t.Errorf("after %s: %q, want %q", id, got, want)
		}
	}
	a, b, other := h.greeted("", as("alice")...), h.greeted("", as("alice")...), h.greeted("", as("bob")...)
	look(a, `"one"`, "one")
	look(b, `"two"`, "two")
	look(other, `"three"`, "two")
	look(b, `7`, "one")
	look(b, `"two"`, "two")
	look(b, `null`, "one")
	look(a, `{}`, "")
}

// A server that stops asks its clients to reconnect.
func TestShutdown(t *testing.T) {
	h := newHarness(t, nil)
	c := h.greeted("")
	h.srv.Close()
	if status, _ := c.closed(); status != websocket.StatusServiceRestart {
		t.Errorf("closed with %d", status)
	}
}

func TestLastEvent(t *testing.T) {
	for s, want := range map[string]int64{"42": 42, "evt-42": 42, "007": 7, "%207%20": 7, "%2B42": -1, "42.5": -1, "evt-42-extra": -1, "999garbage": -1, "9007199254740992": -1, "": -1, "-1": -1} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "/ws?since="+s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := lastEvent(r); got != want {
			t.Errorf("%q is %d, want %d", s, got, want)
		}
	}
	if signals.ID(42) != "evt-42" {
		t.Error(signals.ID(42))
	}
}
