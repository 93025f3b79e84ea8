package slack

import (
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/slack"
	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/channel"
)

// run starts a bot in a bubble and returns what it receives.
func run(t *testing.T, c *bot) inbox {
	received := make(inbox, 20)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, received) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait() // for the connection of the fake
	})
	synctest.Wait()
	return received
}

// next returns the message that was received, or fails.
func next(t *testing.T, received inbox) channel.InboundMessage {
	t.Helper()
	synctest.Wait()
	select {
	case m := <-received:
		return m
	default:
		t.Fatal("no message")
		return channel.InboundMessage{}
	}
}

func none(t *testing.T, received inbox) {
	t.Helper()
	synctest.Wait()
	select {
	case m := <-received:
		t.Errorf("%+v", m)
	default:
	}
}

// Messages, mentions, replies, files, buttons and commands become messages of the pipeline.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(fake.Options{})
		server.Say(member, "old")
		c := newBot(server)
		received := run(t, c)
		if got := c.Link(); got != "https://test.slack.com/team/UBOT" {
			t.Errorf("link %q", got)
		}
		if m := next(t, received); m.Content != "old" {
			t.Errorf("%+v", m)
		}
		compare := func(what string, got, want channel.InboundMessage) {
			t.Helper()
			if want.SenderName = "Ann"; got.ID != want.ID || got.ChatID != want.ChatID || got.Content != want.Content || got.Hints != want.Hints ||
				got.SenderID != "U7" ||
				got.SenderName != want.SenderName || got.Timestamp.IsZero() {
				t.Errorf("%s:\n%+v, want\n%+v", what, got, want)
			}
		}
		ts := server.Say(ann, "a &lt;b&gt; &amp; <https://example.com|example.com>")
		compare("direct", next(t, received), channel.InboundMessage{ID: "D7/" + ts + "/U7", ChatID: "D7", Content: "a <b> & https://example.com"})
		thread := ann
		thread.Thread = ts
		in := server.Say(thread, "/agent b")
		compare("thread", next(t, received), channel.InboundMessage{
			ID: "D7/" + in + "/U7", ChatID: "D7/" + ts, Content: "/agent b", Hints: channel.RoutingHints{ForceSync: true, Command: "agent", Args: "b"},
		})
		top := server.Say(member, "nothing for the bot")
		compare("channel", next(t, received), channel.InboundMessage{
			ID: "C1/" + top + "/U7", ChatID: "C1/" + top, Content: "nothing for the bot", Hints: channel.RoutingHints{Group: true},
		})
		reply := member
		reply.Thread = top
		said := server.Say(reply, "hi "+server.Mention()+", /stop")
		want := channel.InboundMessage{
			ID: "C1/" + said + "/U7", ChatID: "C1/" + top, Content: "hi , /stop", Hints: channel.RoutingHints{Group: true, Addressed: true},
		}
		compare("message with a mention", next(t, received), want)
		compare("mention", next(t, received), want) // the inbox takes the first one only
		said = server.Say(reply, server.Mention()+" /stop")
		compare("mention and command", next(t, received), channel.InboundMessage{
			ID: "C1/" + said + "/U7", ChatID: "C1/" + top, Content: "/stop",
			Hints: channel.RoutingHints{Group: true, Addressed: true, ForceSync: true, Command: "stop"},
		})
		next(t, received)
		if err := c.Send(t.Context(), channel.OutboundMessage{ChatID: "C1", Content: "a message of the bot"}); err != nil {
			t.Fatal(err)
		}
		reply.Thread = server.Visible("C1")[0].TS
		said = server.Say(reply, "an answer to it")
		compare("reply to the bot", next(t, received), channel.InboundMessage{
			ID: "C1/" + said + "/U7", ChatID: "C1/" + reply.Thread, Content: "an answer to it", Hints: channel.RoutingHints{Group: true, Addressed: true},
		})
		server.Edit("D7", ts, "another text")
		server.Join(member)
		none(t, received)
		server.Command(ann, "/new", "")
		m := next(t, received)
		compare("command", m, channel.InboundMessage{
			ID: m.ID, ChatID: "D7", Content: "/new", Hints: channel.RoutingHints{ForceSync: true, Command: "new", Addressed: true},
		})
		server.Command(ann, "/leat", "stop now")
		m = next(t, received)
		compare("shared command", m, channel.InboundMessage{
			ID: m.ID, ChatID: "D7", Content: "stop now", Hints: channel.RoutingHints{ForceSync: true, Command: "stop", Args: "now", Addressed: true},
		})
		server.SendFile(ann, fake.File{Name: "in.txt", Type: "text/plain", Content: []byte("inside")}, "read this")
		m = next(t, received)
		if m.Content != "read this" || len(m.Media) != 1 || m.Media[0].Name != "in.txt" || m.Media[0].Size != 6 {
			t.Fatalf("%+v", m)
		}
		r, err := c.FetchMedia(t.Context(), m.Media[0])
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r); string(b) != "inside" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		check(t, server)
	})
}

// After a disconnect, a lost connection or an outage the bot connects again, and misses nothing.
func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(fake.Options{})
		received := run(t, newBot(server))
		server.Disconnect("refresh_requested")
		server.Say(ann, "one")
		if m := next(t, received); m.Content != "one" {
			t.Errorf("%+v", m)
		}
		time.Sleep(65 * time.Second)
		server.Fail(fake.Fault{Method: "apps.connections.open", RetryAfter: 30 * time.Second})
		server.Drop()
		synctest.Wait()
		server.Say(ann, "two")
		time.Sleep(20 * time.Second)
		none(t, received)
		time.Sleep(12 * time.Second)
		if m := next(t, received); m.Content != "two" {
			t.Errorf("%+v", m)
		}
		time.Sleep(10 * time.Minute) // pings keep the connection
		if n := server.Connections(); n != 1 {
			t.Errorf("%d connections", n)
		}
		check(t, server)
	})
}

// refusing is an inbox that can't store.
type refusing struct{ inbox }

func (b refusing) Receive(ctx context.Context, m channel.InboundMessage) error {
	if len(b.inbox) == 0 {
		_ = b.inbox.Receive(ctx, m)
		return io.ErrUnexpectedEOF
	}
	return b.inbox.Receive(ctx, m)
}

// A message that can't be stored is not confirmed, so it comes again.
func TestNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(fake.Options{})
		received := make(inbox, 10)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		c := newBot(server)
		go func() { done <- c.Run(ctx, refusing{received}) }()
		synctest.Wait()
		server.Say(ann, "hello")
		time.Sleep(10 * time.Second)
		if first, second := next(t, received), next(t, received); first.ID != second.ID {
			t.Errorf("%+v, %+v", first, second)
		}
		none(t, received)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// The bot also works over sockets.
func TestSockets(t *testing.T) {
	server := newServer(fake.Options{})
	h := httptest.NewServer(server)
	defer h.Close()
	c := New(Options{Name: "slack", Token: "xoxb-test", AppToken: "xapp-test", URL: h.URL + "/api", Log: slog.New(slog.DiscardHandler)})
	received := make(inbox, 5)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, received) }()
	server.SendFile(ann, fake.File{Name: "a.txt", Type: "text/plain", Content: []byte("inside")}, "hello")
	m := <-received
	if m.Content != "hello" || m.SenderName != "Ann" {
		t.Errorf("%+v", m)
	}
	if err := c.Send(t.Context(), channel.OutboundMessage{ChatID: m.ChatID, Content: "Hi **Ann**"}); err != nil {
		t.Error(err)
	}
	if m := server.Visible("D7"); len(m) != 1 || m[0].Text != "Hi **Ann**" {
		t.Errorf("%+v", m)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Tokens that Slack refuses end Run, so that the channel is shown as not working. No error contains a token.
func TestRunRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, spoil := range []func(*client){func(c *client) { c.token = "xoxb-secret" }, func(c *client) { c.appToken = "xapp-secret" }} {
			c := newBot(newServer(fake.Options{}))
			spoil(c.client)
			if err := c.Run(t.Context(), make(inbox)); !isRefused(err) || strings.Contains(err.Error(), "secret") {
				t.Error(err)
			}
		}
	})
}

// The token is not sent to other hosts.
func TestUntrustedFile(t *testing.T) {
	c := newBot(newServer(fake.Options{}))
	for address, want := range map[string]bool{
		"https://files.slack.com/files-pri/T1-F1/download/a": true, "http://slack.test/files-pri/a": true, "https://files.slack.com.evil.test/a": false,
		"http://files.slack.com/a": false, "https://evil.test/slack.com": false, "https://notslack.com/": false,
	} {
		if got := outbound.IsWithin(address, c.client.base, hosts...); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	if _, err := c.FetchMedia(t.Context(), channel.Media{Ref: "https://evil.test/a"}); err == nil {
		t.Error("fetched from another host")
	}
}

func TestOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"":               {Token: "xoxb-1", AppToken: "xapp-1"},
		"xoxb-":          {Token: "xoxp-1", AppToken: "xapp-1"},
		"xapp-":          {Token: "xoxb-1", AppToken: "xoxb-1"},
		"signing_secret": {Token: "xoxb-1"},
	} {
		if err := o.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
