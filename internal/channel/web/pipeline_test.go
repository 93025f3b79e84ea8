package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/web"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

type agentFunc func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (f agentFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}

// count writes as many words as the message says, and waits for the test after each if step isn't nil.
func count(step <-chan struct{}) agentFunc {
	return func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		if in.Message.Text == "fail" {
			return &agent.Error{Code: "broken", Message: "no luck"}
		}
		var n int
		if _, err := fmt.Sscan(in.Message.Text, &n); err != nil {
			return err
		}
		for i := range n {
			if err := out.Text(fmt.Sprint(i, " ")); err != nil {
				return err
			}
			if err := out.Flush(); err != nil {
				return err
			}
			if step == nil {
				continue
			}
			select {
			case <-step:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
}

// start runs a gateway with a web channel over a journal and returns the address of its sockets.
func start(t *testing.T, j journal.Journal, a agent.Agent) (url string, stop func()) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	roster := gateway.NewRoster(quiet)
	if err := roster.Add("a", gateway.Agent{Agent: a}); err != nil {
		t.Fatal(err)
	}
	pipeline := channel.New(channel.Config{Journal: j, Log: quiet})
	c := web.New(web.Options{Name: "web", Listen: "off", Log: quiet})
	c.ReadFrom(pipeline)
	pipeline.Add(c, channel.Options{Allow: []string{web.Visitor}})
	gw, err := gateway.New(gateway.Config{
		Journal: j, Agents: roster, DefaultAgent: "a", Settings: gateway.Settings{Drain: time.Millisecond},
		Hooks: gateway.Hooks{Watchers: []gateway.Watcher{pipeline}},
	})
	if err != nil {
		t.Fatal(err)
	}
	roster.Start()
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := pipeline.Start(t.Context(), gw, nil); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c)
	return strings.Replace(server.URL, "http", "ws", 1) + "/ws", func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		pipeline.Shutdown(ctx)
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		roster.Close()
		server.Close()
	}
}

// received is what the test reads of a frame.
type received struct {
	Type, Delta, Content, Session, Turn, Text string
	Messages                                  []struct{ Role, Content, Message, Turn string }
	ID                                        int64
}

type client struct {
	t    *testing.T
	conn *websocket.Conn
}

func dial(t *testing.T, url string) *client {
	t.Helper()
	for {
		conn, response, err := websocket.Dial(t.Context(), url, nil)
		if err == nil {
			t.Cleanup(func() { _ = conn.CloseNow() })
			return &client{t, conn}
		}
		if response == nil || response.StatusCode != 503 { // until Run runs
			t.Fatal(err)
		}
	}
}

func (c *client) say(text string) {
	c.t.Helper()
	b, err := json.Marshal(map[string]string{"type": "message", "content": text})
	if err == nil {
		err = c.conn.Write(c.t.Context(), websocket.MessageText, b)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) until(kind string) (list []received) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for {
		_, b, err := c.conn.Read(ctx)
		if err != nil {
			c.t.Fatalf("no %s after %+v: %v", kind, list, err)
		}
		var f received
		if err := json.Unmarshal(b, &f); err != nil {
			c.t.Fatal(err)
		}
		if list = append(list, f); f.Type == kind {
			return list
		}
	}
}

func textOf(list []received) string {
	text := ""
	for _, f := range list {
		text += f.Delta
	}
	return text
}

// A visitor who resumes gets the rest of a running answer, each delta as a frame; after a restart of the gateway the conversation, and
// an answer that the restart has interrupted.
func TestWithGateway(t *testing.T) {
	j := memory.New()
	t.Cleanup(func() { _ = j.Close() })
	step := make(chan struct{})
	url, stop := start(t, j, count(step))
	c := dial(t, url+"?session=")
	session := c.until("session")[0].Session
	c.say("10")
	var at int64
	for i := range 4 {
		list := c.until("stream")
		if f := list[len(list)-1]; f.Delta != fmt.Sprint(i, " ") {
			t.Errorf("delta %q", f.Delta)
		}
		at = list[len(list)-1].ID
		step <- struct{}{}
	}
	_ = c.conn.CloseNow()
	for range 3 {
		step <- struct{}{}
	}
	c = dial(t, fmt.Sprint(url, "?session=", session, "&after=", at))
	for range 3 {
		step <- struct{}{}
	}
	if text := textOf(c.until("stream_done")); text != "4 5 6 7 8 9 " {
		t.Errorf("the rest is %q", text)
	}
	c.say("fail")
	if list := c.until("message"); list[len(list)-1].Content != "⚠️ no luck" {
		t.Errorf("frames %+v", list)
	}
	c.say("/help")
	c.until("message")
	c.say("5")
	c.until("stream")
	_ = c.conn.CloseNow()
	stop()

	url, stop = start(t, j, count(nil))
	defer stop()
	c = dial(t, fmt.Sprint(url, "?session=", session, "&after=", at))
	list := c.until("history")
	messages := list[len(list)-1].Messages
	last := list[len(list)-1]
	text := ""
	for _, m := range messages {
		text += m.Role + ":" + m.Content + "|"
	}
	want := "user:10|assistant:0 1 2 3 4 5 6 7 8 9 |user:fail|assistant:⚠️ no luck|user:5|"
	if !strings.HasPrefix(text, want) {
		t.Errorf("history %q, want %q", text, want)
	}
	if !strings.Contains(text, "assistant:0 \n\n⚠️") { // the interrupted answer may be delivered by frames, too
		rest := c.until("message")
		if textOf(rest) == "" && last.Text == "" {
			t.Errorf("frames %+v", rest)
		}
	}
	c.say("3")
	if got := textOf(c.until("stream_done")); got != "0 1 2 " {
		t.Errorf("answer %q", got)
	}
	other := dial(t, url+"?session=")
	other.until("session")
	other.say("2")
	if list := other.until("stream_done"); textOf(list) != "0 1 " {
		t.Errorf("frames %+v", list)
	}
	_, _ = c.conn.CloseNow(), other.conn.CloseNow()
}
