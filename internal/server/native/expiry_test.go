package native_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/server/servertest"
)

// testTokens accepts tokens such as "alice/60/read": the subject, the end in seconds after begin, and the scopes.
type testTokens struct{ begin time.Time }

func (b testTokens) Verify(_ context.Context, token string) (server.Identity, error) {
	parts := strings.Split(token, "/")
	seconds, err := strconv.Atoi(parts[min(1, len(parts)-1)])
	if len(parts) < 2 || err != nil {
		return server.Identity{}, errors.New("no badge")
	}
	id := server.Identity{Principal: gateway.Principal{Tenant: "t", Subject: parts[0]}, Expires: b.begin.Add(time.Duration(seconds) * time.Second)}
	if len(parts) > 2 {
		id.Scopes = parts[2:]
	}
	if !time.Now().Before(id.Expires) {
		return server.Identity{}, fmt.Errorf("token: %w", server.ErrExpired)
	}
	return id, nil
}

// timedHarness is a gateway in virtual time whose users have testTokens.
type timedHarness struct {
	t  *testing.T
	gw *gateway.Gateway
	hc *http.Client
}

var aliceOfT = gateway.Principal{Tenant: "t", Subject: "alice"}

// inVirtualTime runs a test at second 0 of its tokens.
func inVirtualTime(t *testing.T, fn func(t *testing.T, c *timedHarness)) {
	synctest.Test(t, func(t *testing.T) {
		gw, _, pushes := newInspected(t, options{})
		srv := server.New(server.Options{Token: token, Users: testTokens{time.Now()}})
		native.Register(srv, gw)
		native.RegisterIngest(srv, gw, pushes)
		l := servertest.Listen()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- srv.Serve(ctx, l) }()
		c := &timedHarness{t, gw, l.Client()}
		fn(t, c)
		c.hc.CloseIdleConnections()
		cancel()
		if err := errors.Join(<-served, gw.Shutdown(context.Background())); err != nil {
			t.Error(err)
		}
	})
}

func (c *timedHarness) request(method, path, proof, body string) *http.Request {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, "http://localhost:31337"+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	switch {
	case strings.HasPrefix(proof, "leat_session"):
		r.Header.Set("Cookie", proof)
		r.Header.Set("Origin", "http://localhost:31337")
	case proof != "":
		r.Header.Set("Authorization", "Bearer "+proof)
	}
	return r
}

func (c *timedHarness) do(method, path, proof, body string) *http.Response {
	c.t.Helper()
	res, err := c.hc.Do(c.request(method, path, proof, body))
	if err != nil {
		c.t.Fatal(err)
	}
	return res
}

func (c *timedHarness) dial(proof string) *client {
	c.t.Helper()
	conn, _, err := websocket.Dial(c.t.Context(), "http://localhost:31337/api/ws", &websocket.DialOptions{HTTPClient: c.hc, HTTPHeader: c.request("GET", "/", proof, "").Header})
	if err != nil {
		c.t.Fatal(err)
	}
	return &client{t: c.t, conn: conn}
}

// room creates a conversation of alice.
func (c *timedHarness) room() string {
	c.t.Helper()
	s, _, err := c.gw.Create(c.t.Context(), aliceOfT, gateway.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return s.ID
}

// wantClosed reads up to the end of a socket.
func wantClosed(t *testing.T, c *client, code websocket.StatusCode, reason string) {
	t.Helper()
	last, status := c.closed()
	if status != code || last.Type != "error" || last.Reason != reason {
		t.Errorf("closed with %d after %s, want %d after %s", status, last.raw, code, reason)
	}
}

// A socket is warned a minute before its token expires, accepts a new token of the same subject, and is closed at the end.
func TestSocketExpires(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, c *timedHarness) {
		begin := time.Now()
		after := func() time.Duration { return time.Since(begin) }
		s := c.dial("alice/300")
		if f := s.next(); f.Type != "hello" || f.Expires != begin.Add(300*time.Second).UnixMilli() {
			t.Errorf("hello: %s", f.raw)
		}
		room := c.room()
		s.send(`{"type":"subscribe","conversation":%q}`, room).want("subscribed", "")
		if f := s.want("expiring", ""); after() != 240*time.Second || f.Expires != begin.Add(300*time.Second).UnixMilli() {
			t.Errorf("warned after %v: %s", after(), f.raw)
		}
		for _, wrong := range []string{"bob/600", token, "nonsense", "alice/10", ""} {
			if f := s.send(`{"type":"auth","id":"w","token":%q}`, wrong).want("error", "w"); f.Conversation != "" {
				t.Errorf("%s: %s", wrong, f.raw)
			}
		}
		if f := s.send(`{"type":"auth","id":"n","token":"alice/600"}`).want("authenticated", "n"); f.Expires != begin.Add(600*time.Second).UnixMilli() {
			t.Errorf("renewed: %s", f.raw)
		}
		time.Sleep(100 * time.Second) // after the end of the first token
		s.send(`{"type":"command","id":"1","conversation":%q,"command":{"type":"send","message":{"text":"still here"}}}`, room).want("ack", "1")
		s.want("expiring", "")
		if after() != 540*time.Second {
			t.Errorf("warned a second time after %v", after())
		}
		wantClosed(t, s, 4001, server.ReasonExpired)
		if after() != 600*time.Second {
			t.Errorf("closed after %v", after())
		}
		// A token that is about to expire is warned of at once.
		late := c.dial("alice/630")
		late.want("expiring", "")
		if after() != 600*time.Second {
			t.Errorf("the warning came after %v", after())
		}
		wantClosed(t, late, 4001, server.ReasonExpired)
		// A token in the first frame expires too. The admin's token does not.
		admin, first := c.dial(token), c.dial("").send(`{"type":"auth","token":"alice/700"}`)
		if f := admin.next(); f.Expires != 0 {
			t.Errorf("the admin's: %s", f.raw)
		}
		wantClosed(t, first, 4001, server.ReasonExpired)
		if after() != 700*time.Second {
			t.Errorf("the first frame's was closed after %v", after())
		}
		for range 100 {
			admin.want("ping", "") // one every 15 s
		}
		admin.send(`{"type":"ping"}`).want("pong", "")
		_ = admin.conn.CloseNow()
	})
}

// A new token with fewer scopes ends the subscriptions that it does not allow.
func TestSocketScopesReduced(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, c *timedHarness) {
		room := c.room()
		s := c.dial("alice/300/agent")
		s.want("hello", "")
		s.send(`{"type":"subscribe","conversation":%q}`, room).want("subscribed", "")
		command := `{"type":"command","id":"1","conversation":%q,"command":{"type":"inject","message":{"text":"x"}}}`
		s.send(command, room).want("ack", "1")
		s.send(`{"type":"auth","token":"alice/300/read"}`).want("authenticated", "")
		if f := s.send(command, room).want("rejected", "1"); f.Reason != server.ReasonForbidden {
			t.Errorf("as a reader: %s", f.raw)
		}
		s.send(`{"type":"auth","token":"alice/300/none"}`)
		if f := s.want("error", ""); f.Conversation != room || f.Reason != server.ReasonForbidden {
			t.Errorf("without a scope: %s", f.raw)
		}
		s.want("authenticated", "")
		_ = s.conn.CloseNow()
	})
}

// lastFrame reads an SSE stream to its end and returns its last data.
func lastFrame(t *testing.T, body io.Reader) (last string) {
	t.Helper()
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			last = data
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	return last
}

// A stream ends with its token and names the reason. It resumes with a new token.
func TestStreamExpires(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, c *timedHarness) {
		begin := time.Now()
		path := "/api/conversations/" + c.room() + "/events"
		res := c.do("GET", path, "alice/90", "")
		last := lastFrame(t, res.Body)
		if !strings.Contains(last, `"reason":"expired"`) || time.Since(begin) != 90*time.Second {
			t.Errorf("after %v: %s", time.Since(begin), last)
		}
		for proof, want := range map[string]int{"alice/90": 401, "alice/200": 200, "bob/200": 404} {
			res := c.do("HEAD", path, proof, "")
			if res.StatusCode != want {
				t.Errorf("%s: %d, want %d", proof, res.StatusCode, want)
			}
		}
	})
}

// A pushed stream ends with its producer's token, and resumes with a new one.
func TestIngestExpires(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, c *timedHarness) {
		r := c.request("POST", "/api/conversations/"+c.room()+"/turns?dialect=eliza-actions", "alice/20/agent", "")
		body, w := io.Pipe()
		r.Body = body
		go func() { _, _ = io.WriteString(w, `{"type":"chunk","text":"one"}`+"\n") }() // and no end of the body
		res, err := c.hc.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err != nil || !strings.Contains(string(b), `"reason":"expired"`) || !strings.Contains(string(b), `"ended":false`) {
			t.Errorf("%s, %v", b, err)
		}
		_ = w.Close()
		turn := res.Header.Get("Leat-Turn")
		head := c.do("HEAD", "/api/turns/"+turn+"/ingest", "alice/60/agent", "")
		patch := c.request("PATCH", "/api/turns/"+turn+"/ingest", "alice/60/agent", `{"type":"done"}`+"\n")
		patch.Header.Set("Upload-Offset", head.Header.Get("Upload-Offset"))
		res, err = c.hc.Do(patch)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(b), `"completed"`) {
			t.Errorf("resumed: %s, %v", b, err)
		}
	})
}

// When a session ends, the streams and sockets that its cookie opened end. Those of other sessions stay.
func TestLogoutEndsStreams(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, c *timedHarness) {
		room := c.room()
		login := func() string {
			res := c.do("POST", "/api/auth/session", "alice/300", "")
			if len(res.Cookies()) != 1 {
				t.Fatalf("log in: %d", res.StatusCode)
			}
			return res.Cookies()[0].Name + "=" + res.Cookies()[0].Value
		}
		first, second := login(), login()
		s, other := c.dial(first), c.dial(second)
		other.want("hello", "")
		s.want("hello", "")
		stream := c.do("GET", "/api/conversations/"+room+"/events", first, "")
		if res := c.do("DELETE", "/api/auth/session", first, ""); res.StatusCode != http.StatusNoContent {
			t.Errorf("log out: %d", res.StatusCode)
		}
		wantClosed(t, s, websocket.StatusPolicyViolation, server.ReasonUnauthorized)
		if last := lastFrame(t, stream.Body); !strings.Contains(last, `"reason":"unauthorized"`) {
			t.Errorf("the stream ends with %s", last)
		}
		// A copy of the cookie is invalid now.
		if res := c.do("HEAD", "/api/conversations/"+room+"/events", first, ""); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("the copy: %d", res.StatusCode)
		}
		other.send(`{"type":"ping"}`).want("pong", "")
		_ = other.conn.CloseNow()
	})
}

// After a share is revoked, the user's streams of that conversation end, and on a socket only the subscription.
func TestUnshareEndsStreams(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, c *timedHarness) {
		room := c.room()
		do := func(cmd gateway.Command) {
			if _, err := c.gw.Do(t.Context(), aliceOfT, room, cmd); err != nil {
				t.Fatal(err)
			}
		}
		do(gateway.Command{Type: gateway.CommandShare, Subject: "bob", Access: gateway.AccessRead})
		s := c.dial("bob/9000")
		s.want("hello", "")
		s.send(`{"type":"subscribe","conversation":%q}`, room).want("subscribed", "")
		stream := c.do("GET", "/api/conversations/"+room+"/events", "bob/9000", "")
		synctest.Wait()
		do(gateway.Command{Type: gateway.CommandUnshare, Subject: "bob"})
		do(gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "a secret"}})
		if f := s.want("error", ""); f.Conversation != room || f.Reason != server.ReasonNotFound {
			t.Errorf("on the socket: %s", f.raw)
		}
		all, err := io.ReadAll(stream.Body)
		if err != nil || strings.Contains(string(all), "secret") || !strings.Contains(string(all), `"reason":"not_found"`) {
			t.Errorf("on the stream: %s, %v", all, err)
		}
		s.send(`{"type":"ping"}`).want("pong", "")
		_ = s.conn.CloseNow()
	})
}
