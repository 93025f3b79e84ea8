package discord

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/discord"
	"github.com/leat-dev/leat/internal/channel"
)

// Messages, mentions, replies, threads, commands and buttons become messages of the pipeline; what bots and the platform write doesn't.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		b, stop := start(t, c)
		defer stop()
		if got := c.Link(); !strings.HasPrefix(got, "https://discord.com/oauth2/authorize?client_id=1002&permissions=") {
			t.Errorf("link %q", got)
		}
		server.Say(bob, "hello")
		b.next(t)
		if err := c.Send(t.Context(), channel.OutboundMessage{ChatID: "50", Content: "answer"}); err != nil {
			t.Fatal(err)
		}
		answer := server.Visible("50")[0].ID
		thread := fake.Member(server.StartThread(bob, "a thread"), "8", "Bob")
		addressed := channel.RoutingHints{Group: true, Addressed: true}
		for _, step := range []struct {
			what string
			do   func() string
			want channel.InboundMessage
		}{
			{"direct", func() string { return server.Say(ann, "hello") }, channel.InboundMessage{ChatID: "97", Content: "hello"}},
			{"command as text", func() string { return server.Say(ann, "/agent b") }, channel.InboundMessage{
				ChatID: "97", Content: "/agent b", Hints: channel.RoutingHints{ForceSync: true, Command: "agent", Args: "b"},
			}},
			{"group", func() string { return server.Say(bob, "not for <@77>") }, channel.InboundMessage{
				ChatID: "50", Content: "not for @User77", Hints: channel.RoutingHints{Group: true},
			}},
			{"mention", func() string { return server.Say(bob, "hi "+fake.BotMention+", help") }, channel.InboundMessage{
				ChatID: "50", Content: "hi , help", Hints: addressed,
			}},
			{"mention with a command", func() string { return server.Say(bob, fake.BotMention+" /stop") }, channel.InboundMessage{
				ChatID: "50", Content: "/stop", Hints: channel.RoutingHints{Group: true, Addressed: true, ForceSync: true, Command: "stop"},
			}},
			{"reply", func() string { return server.Reply(bob, answer, "why?") }, channel.InboundMessage{ChatID: "50", Content: "why?", Hints: addressed}},
			{"thread", func() string { return server.Say(thread, "in the thread") }, channel.InboundMessage{
				ChatID: thread.Channel, Content: "in the thread", Hints: channel.RoutingHints{Group: true},
			}},
			{"slash command", func() string { return "interaction/" + server.Invoke(bob, "agent", "name", "helper") }, channel.InboundMessage{
				ChatID: "50", Content: "/agent helper",
				Hints: channel.RoutingHints{Group: true, Addressed: true, ForceSync: true, Command: "agent", Args: "helper"},
			}},
		} {
			id := step.do()
			m := b.next(t)
			step.want.ID = id
			if step.want.SenderID, step.want.SenderName = "8", "Bob"; step.want.ChatID == "97" {
				step.want.SenderID, step.want.SenderName = "7", "Ann"
			}
			if m.Timestamp.IsZero() {
				t.Errorf("%s: no time", step.what)
			}
			m.Timestamp = time.Time{}
			if !reflect.DeepEqual(m, step.want) {
				t.Errorf("%s:\n%+v, want\n%+v", step.what, m, step.want)
			}
		}
		server.Say(fake.Writer{Channel: "50", Guild: "500", User: "9", Name: "Other", IsBot: true}, "I am a bot")
		server.Join(bob)
		synctest.Wait()
		if len(b.received) > 0 {
			t.Errorf("%+v", <-b.received)
		}
		var names []string
		for _, o := range server.Commands() {
			names = append(names, o.Name)
		}
		if got := strings.Join(names, " "); got != "new stop agent compact link help" {
			t.Errorf("commands %q", got)
		}
		check(t, server)
	})
}

// A slash command is confirmed at once, and its reply takes the place of the animation. Without a reply the animation ends.
func TestSlashCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		b, stop := start(t, c)
		defer stop()
		server.Fail(fake.Fault{Route: fake.Callback, After: true})
		server.Fail(fake.Fault{Route: fake.EditOriginal, After: true})
		server.Invoke(ann, "new")
		m := b.next(t)
		time.Sleep(time.Second)
		if shown := server.Visible("97"); len(shown) != 1 || !shown[0].Loading {
			t.Errorf("%+v", shown)
		}
		reply := channel.OutboundMessage{ChatID: "97", ReplyTo: m.ID, Content: "✅ Started " + strings.Repeat("a fresh session ", 200), Key: "k"}
		if err := c.Send(t.Context(), reply); err != nil {
			t.Error(err)
		}
		if shown := server.Visible("97"); len(shown) != 2 || shown[0].Loading || !strings.HasPrefix(shown[0].Text, "✅ Started") || shown[1].ReplyTo != "" {
			t.Errorf("%+v", shown)
		}
		server.Invoke(bob, "new")
		b.next(t)
		time.Sleep(2 * time.Minute)
		if shown := server.Visible("50"); len(shown) != 0 {
			t.Errorf("without a reply: %+v", shown)
		}
		server.Fail(fake.Fault{Route: fake.Callback, Status: http.StatusNotFound, Code: codeUnknownInteraction})
		server.Invoke(bob, "help")
		reply.ChatID, reply.ReplyTo = "50", b.next(t).ID
		if err := c.Send(t.Context(), reply); err != nil || len(server.Visible("50")) != 2 {
			t.Errorf("a reply to what can't be confirmed: %v, %+v", err, server.Visible("50"))
		}
	})
}

// The session is resumed after every kind of interruption, and events that could not be stored are received again.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		b, stop := start(t, c)
		defer stop()
		say := func(text string) {
			t.Helper()
			server.Say(ann, text)
			time.Sleep(time.Minute) // until there is another connection
			if m := b.next(t); m.Content != text {
				t.Errorf("%q, want %q", m.Content, text)
			}
			if len(b.received) > 0 {
				t.Errorf("received twice: %q", (<-b.received).Content)
			}
		}
		for name, interrupt := range map[string]func(){
			"nothing": func() {}, "broken": server.Drop, "asked": server.AskReconnect, "restart of the server": func() { server.CloseGateway(4000) },
			"invalid but resumable": func() { server.Invalidate(true) }, "not stored": func() { b.err = errors.New("disk full") },
			"heartbeat asked": server.AskHeartbeat,
		} {
			interrupt()
			say(name)
		}
		if n := server.Sessions(); n != 1 {
			t.Errorf("%d sessions", n)
		}
		server.Invalidate(false)
		time.Sleep(10 * time.Second)
		say("new session")
		server.CloseGateway(4009)
		time.Sleep(10 * time.Second)
		say("another session")
		if n := server.Sessions(); n != 3 {
			t.Errorf("%d sessions", n)
		}
		check(t, server)
	})
}

// A connection that is dead without being closed is noticed by its missing confirmations of heartbeats.
func TestDeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		b, stop := start(t, c)
		defer stop()
		server.Mute(true)
		server.Say(ann, "hello")
		time.Sleep(2 * time.Minute)
		server.Mute(false)
		time.Sleep(2 * time.Minute)
		if m := b.next(t); m.Content != "hello" || server.Sessions() != 1 {
			t.Errorf("%+v, %d sessions", m, server.Sessions())
		}
	})
}

// The bot keeps trying while the platform is down, and no faster than it is asked to.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		for range 3 {
			server.Fail(fake.Fault{Route: fake.GatewayBot, Status: http.StatusBadGateway})
		}
		server.Fail(fake.Fault{Route: fake.GatewayBot, Status: http.StatusTooManyRequests, RetryAfter: 2 * time.Minute})
		b, stop := start(t, c)
		defer stop()
		time.Sleep(3 * time.Minute)
		server.Say(ann, "hello")
		b.next(t)
		check(t, server)
	})
}

// A bot that the platform refuses for good ends Run with the reason, so that the channel is shown as not working.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		o      fake.Options
		change func(*bot, *fake.Server)
		want   string
	}{
		"token":   {fake.Options{}, func(c *bot, _ *fake.Server) { c.client.token = "wrong" }, "401"},
		"content": {fake.Options{NoMessageContent: true}, func(*bot, *fake.Server) {}, "Message Content Intent"},
		"later":   {fake.Options{}, func(_ *bot, s *fake.Server) { s.CloseGateway(4004) }, "token is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bot, server := newBot(c.o)
				if name != "later" {
					c.change(bot, server)
				}
				done := make(chan error, 1)
				go func() { done <- bot.Run(t.Context(), &inbox{}) }()
				synctest.Wait()
				if name == "later" {
					c.change(bot, server)
				}
				if err := <-done; err == nil || !strings.Contains(err.Error(), c.want) {
					t.Error(err)
				}
			})
		})
	}
}

// A token with a typing error is found before a connection is made.
func TestCheck(t *testing.T) {
	for token, ok := range map[string]bool{"MTIz.GabcDe.x_y-z": true, "": false, "Bot MTIz.a.b": false, "MTIz.a": false} {
		if err := (Options{Token: token}).Check(); (err == nil) != ok {
			t.Errorf("%q: %v", token, err)
		}
	}
}

// The token is sent to no unencrypted gateway.
func TestGatewayAddress(t *testing.T) {
	c := newClient(defaultURL, "t", false)
	for address, ok := range map[string]bool{"wss://gateway.discord.gg": true, "ws://gateway.discord.gg": false, "": false, "https://x": false} {
		got, err := c.gatewayAddress(address)
		if (err == nil) != ok || ok && got != address+"/?v=10&encoding=json" {
			t.Errorf("%q: %q, %v", address, got, err)
		}
	}
}

// The same works over sockets: the gateway has another client than the API.
func TestSockets(t *testing.T) {
	server := fake.New(fake.Options{Token: "test"})
	front := httptest.NewServer(server)
	defer front.Close()
	c := New(Options{Name: "dc", Token: "test", URL: front.URL, Log: slog.New(slog.DiscardHandler)})
	b := &inbox{received: make(chan channel.InboundMessage, 10)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, b) }()
	for server.Connections() == 0 {
		<-server.Changed()
	}
	server.SendFiles(ann, "look", fake.File{Name: "a.txt", Type: "text/plain", Content: []byte("content")})
	m := <-b.received
	r, err := c.(channel.MediaChannel).FetchMedia(ctx, m.Media[0])
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(r); err != nil || string(raw) != "content" {
		t.Errorf("%q, %v", raw, err)
	}
	_ = r.Close()
	if err := c.Send(ctx, channel.OutboundMessage{ChatID: m.ChatID, Content: "hi", ReplyTo: m.ID}); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	check(t, server)
}
