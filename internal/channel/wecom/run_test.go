package wecom

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/wecom"
	"github.com/leat-dev/leat/internal/channel"
)

// Messages, commands, voice messages and files become messages of the pipeline.
func TestInbound(t *testing.T) {
	test(t, fake.Options{}, func(t *testing.T, b *bench) {
		for _, c := range []struct {
			what string
			do   func() string
			want channel.InboundMessage
		}{
			{"private", func() string { return b.server.Say(ann, "hello") }, channel.InboundMessage{ChatID: "ann", Content: "hello"}},
			{"command", func() string { return b.server.Say(ann, "/agent b") }, channel.InboundMessage{
				ChatID: "ann", Content: "/agent b", Hints: channel.RoutingHints{ForceSync: true, Command: "agent", Args: "b"},
			}},
			{"group", func() string { return b.server.Say(team, "@Leat /stop") }, channel.InboundMessage{
				ChatID: "group", Content: "/stop", Hints: channel.RoutingHints{ForceSync: true, Command: "stop", Group: true, Addressed: true},
			}},
			{"voice", func() string { return b.server.Speak(ann, "hi") }, channel.InboundMessage{ChatID: "ann", Content: "hi"}},
		} {
			id := c.do()
			got := b.inbox.take()
			if len(got) != 1 || got[0].ID != id || got[0].ChatID != c.want.ChatID || got[0].Content != c.want.Content || got[0].Hints != c.want.Hints ||
				got[0].SenderID != "ann" {
				t.Errorf("%s:\n%+v, want\n%+v", c.what, got, c.want)
			}
		}
		for _, text := range []string{"", "Read this"} {
			b.server.SendFile(ann, fake.File{Name: "a.bin", Content: []byte("content")}, text)
			got := b.inbox.take()
			if len(got) != 1 || len(got[0].Media) != 1 || got[0].Content != text {
				t.Fatalf("%+v", got)
			}
			r, err := b.FetchMedia(t.Context(), got[0].Media[0])
			if err != nil {
				t.Fatal(err)
			}
			if content, err := io.ReadAll(r); string(content) != "content" || err != nil {
				t.Errorf("%q, %v", content, err)
			}
			got[0].Media[0].Ref = "x" + got[0].Media[0].Ref
			if _, err := b.FetchMedia(t.Context(), got[0].Media[0]); err == nil {
				t.Error("a file with another key")
			}
		}
	})
}

// A message is stored although that fails for minutes. Meanwhile the connection works.
func TestStoredLater(t *testing.T) {
	test(t, fake.Options{}, func(t *testing.T, b *bench) {
		b.inbox.failures = 8
		b.server.Say(ann, "stored later")
		b.server.Say(ann, "and the next one")
		time.Sleep(time.Second)
		if err := b.Send(t.Context(), to("ann", "meanwhile", "")); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Minute)
		if got := b.inbox.take(); len(got) != 2 || got[0].Content != "stored later" || strings.Contains(b.log.String(), "connection was lost") {
			t.Errorf("%+v, %s", got, b.log)
		}
	})
}

// A message that waits to be stored when the bot is stopped gets a last chance.
func TestStoredAtTheEnd(t *testing.T) {
	test(t, fake.Options{}, func(t *testing.T, b *bench) {
		b.inbox.failures = 1
		b.server.Say(ann, "hello")
		synctest.Wait()
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		if got := b.inbox.take(); len(got) != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// A lost connection is restored, and kept alive by pings.
func TestConnection(t *testing.T) {
	test(t, fake.Options{}, func(t *testing.T, b *bench) {
		for range 8 { // the wait after each loss is short, because the connection has worked
			b.server.Disconnect()
			time.Sleep(5 * time.Second)
			if !b.server.IsConnected() {
				t.Error("not connected after 5 s")
			}
		}
		time.Sleep(5*time.Minute + time.Second)
		pings := 0
		for _, r := range b.server.Requests() {
			if r.Command == commandPing {
				pings++
			}
		}
		if pings != 10 {
			t.Errorf("%d pings in 5 minutes", pings)
		}
		b.server.Fail(fake.Fault{Command: commandPing, Silent: true})
		time.Sleep(40 * time.Second)
		b.server.Say(ann, "hello")
		if got := b.inbox.take(); len(got) != 1 {
			t.Errorf("after a ping without an answer: %+v", got)
		}
	})
}

// A connection that another one displaces is restored after five minutes, and not before: the other one would lose.
func TestDisplaced(t *testing.T) {
	test(t, fake.Options{}, func(t *testing.T, b *bench) {
		other := start(t, b.server)
		time.Sleep(4 * time.Minute)
		b.server.Say(ann, "hello")
		if got := other.inbox.take(); len(got) != 1 || !strings.Contains(b.log.String(), "displaced") {
			t.Errorf("%+v, %s", got, b.log)
		}
		if err := other.stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		b.server.Say(ann, "hello again")
		if got := b.inbox.take(); len(got) != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// A secret that the platform refuses ends Run, so that the channel is shown as not working.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &strings.Builder{}
		c := openBot(fake.New(fake.Options{BotID: "bot", Secret: "other"}), log)
		if err := c.Run(t.Context(), &inbox{}); !isRefused(err) || strings.Contains(err.Error()+log.String(), "secret\"") {
			t.Error(err)
		}
	})
}
