package wecom

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

var ann = Private("ann")

// client is a connection of a bot. A goroutine reads its frames, because a pipe holds none.
type client struct {
	t      *testing.T
	conn   *websocket.Conn
	frames chan frame // closed at the end of the connection
}

func dial(t *testing.T, s *Server) *client {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), "ws://fake", &websocket.DialOptions{HTTPClient: &http.Client{Transport: s}}) //nolint:bodyclose // Dial closes it
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, conn, make(chan frame, 10)}
	go func() {
		defer close(c.frames)
		for {
			_, raw, err := conn.Read(context.Background())
			var f frame
			if err != nil || json.Unmarshal(raw, &f) != nil {
				return
			}
			c.frames <- f
		}
	}()
	t.Cleanup(func() { _ = conn.CloseNow() })
	return c
}

// read returns the next frame, or an empty one at the end of the connection.
func (c *client) read() frame { return <-c.frames }

// send sends a frame and returns the code of its acknowledgement, or -2 without one.
func (c *client) send(command, id, body string) int {
	f := frame{Command: command, Body: json.RawMessage(body)}
	f.Headers.ID = id
	raw, err := json.Marshal(f)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.conn.Write(context.Background(), websocket.MessageText, raw); err != nil {
		return -2
	}
	if answer := c.read(); answer.Code != nil && answer.Headers.ID == id {
		return *answer.Code
	}
	return -2
}

const credentials = `{"bot_id": "bot", "secret": "secret"}`

func markdown(chat, text string) string {
	return `{"chatid": "` + chat + `", "msgtype": "markdown", "markdown": {"content": "` + text + `"}}`
}

func stream(text, finish string) string {
	return `{"msgtype": "stream", "stream": {"id": "s", "content": "` + text + `", "finish": ` + finish + `}}`
}

// The server refuses what the platform refuses.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{BotID: "bot", Secret: "secret"})
		if code := dial(t, s).send("aibot_subscribe", "1", `{"bot_id": "bot", "secret": "x"}`); code != codeCredential {
			t.Errorf("a wrong secret: code %d", code)
		}
		if code := dial(t, s).send("aibot_send_msg", "1", markdown("ann", "hi")); code != codeCredential {
			t.Errorf("without a subscription: code %d", code)
		}
		c := dial(t, s)
		if code := c.send("aibot_subscribe", "1", credentials); code != 0 {
			t.Fatalf("code %d", code)
		}
		s.Say(ann, "hello")
		asked := c.read()
		if asked.Command != "aibot_msg_callback" || !strings.Contains(string(asked.Body), `"content":"hello"`) {
			t.Fatalf("%+v", asked)
		}
		for _, f := range []struct {
			name, command, id, body string
			code                    int
		}{
			{"unknown command", "x", "2", "{}", codeUnknown},
			{"unknown chat", "aibot_send_msg", "2", markdown("bob", "hi"), codeChat},
			{"empty", "aibot_send_msg", "2", markdown("ann", " "), codeParameter},
			{"too long", "aibot_send_msg", "2", markdown("ann", strings.Repeat("词", 6827)), codeParameter},
			{"media", "aibot_send_msg", "2", `{"chatid": "ann", "msgtype": "image", "image": {"media_id": "x"}}`, 40007},
			{"sent", "aibot_send_msg", "2", markdown("ann", "hi"), 0},
			{"unknown request", "aibot_respond_msg", "2", stream("a", "false"), codeRequest},
			{"long stream", "aibot_respond_msg", asked.Headers.ID, stream(strings.Repeat("x", 20481), "false"), codeParameter},
			{"begun", "aibot_respond_msg", asked.Headers.ID, stream("a", "false"), 0},
			{"grown", "aibot_respond_msg", asked.Headers.ID, stream("ab", "false"), 0},
			{"finished", "aibot_respond_msg", asked.Headers.ID, stream("abc", "true"), 0},
			{"repeated", "aibot_respond_msg", asked.Headers.ID, stream("abc", "true"), 0},
			{"changed", "aibot_respond_msg", asked.Headers.ID, stream("abcd", "true"), codeExpired},
			{"incomplete file", "aibot_upload_media_finish", "3", `{"upload_id": "x"}`, codeParameter},
			{"ping", "ping", "4", "{}", 0},
		} {
			if code := c.send(f.command, f.id, f.body); code != f.code {
				t.Errorf("%s: code %d, want %d", f.name, code, f.code)
			}
		}
		if got := s.Visible("ann"); len(got) != 2 || got[1].Text != "abc" || got[1].IsOpen || len(got[1].Versions) != 4 {
			t.Errorf("%+v", got)
		}
		if v := s.Violations(); len(v) != 1 || !strings.Contains(v[0], "finished") {
			t.Errorf("%q", v)
		}
		s.Say(ann, "again")
		asked = c.read()
		time.Sleep(6*time.Minute + time.Second)
		if code := c.send("aibot_respond_msg", asked.Headers.ID, stream("late", "true")); code != codeExpired {
			t.Errorf("late: code %d", code)
		}
	})
}

// A second subscription displaces the first, and a frame must wait for the acknowledgement of the one before.
func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{BotID: "bot", Secret: "secret", AckDelay: time.Second})
		first, second := dial(t, s), dial(t, s)
		first.send("aibot_subscribe", "1", credentials)
		s.Say(ann, "hello")
		first.read()
		for range 2 {
			f := frame{Command: "aibot_send_msg", Body: json.RawMessage(markdown("ann", "hi"))}
			f.Headers.ID = "2"
			raw, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			if err := first.conn.Write(t.Context(), websocket.MessageText, raw); err != nil {
				t.Fatal(err)
			}
		}
		first.read()
		first.read()
		if v := s.Violations(); len(v) != 1 {
			t.Errorf("%q", v)
		}
		second.send("aibot_subscribe", "1", credentials)
		if f := first.read(); !strings.Contains(string(f.Body), "disconnected_event") {
			t.Errorf("%+v", f)
		}
		if f := first.read(); f.Command != "" {
			t.Errorf("%+v", f)
		}
	})
}

// Faults meet the frames that they name.
func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{BotID: "bot", Secret: "secret"})
		s.Say(ann, "hello")
		s.Fail(Fault{Skip: 1, Code: 45009})
		s.Fail(Fault{After: true, Skip: 2})
		c := dial(t, s)
		c.send("aibot_subscribe", "1", credentials)
		var codes []int
		for range 4 {
			codes = append(codes, c.send("aibot_send_msg", "2", markdown("ann", "hi")))
		}
		synctest.Wait()
		if codes[0] != 0 || codes[1] != 45009 || codes[2] != 0 || codes[3] != -2 || len(s.Visible("ann")) != 3 || s.IsConnected() {
			t.Errorf("codes %v, %d messages", codes, len(s.Visible("ann")))
		}
	})
}
