package matrix

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/matrix"
	"github.com/leat-dev/leat/internal/channel"
)

// Messages of people become messages of the pipeline. What isn't one is ignored.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{Name: "Leat Bot"})
		ann := server.Direct("@ann:matrix.test", "Ann")
		group := server.Group(fake.Writer{ID: "@ann:matrix.test", Name: "Ann"}, fake.Writer{ID: "@bob:matrix.test", Name: "Bob"})
		bob := group[1]
		server.Say(ann, "written before the bot's first start")
		received, stop := run(t, c)
		if got := c.Link(); got != "https://matrix.to/#/@leat:matrix.test" {
			t.Errorf("link %q", got)
		}
		sent, err := c.newChat(place{room: bob.Room}).send(t.Context(), "k", content{Kind: kindText, Body: "of the bot"})
		if err != nil {
			t.Fatal(err)
		}
		thread, own := bob, bob
		thread.Thread = server.Say(bob, "the first message of a thread")
		own.Thread = sent
		message := func(w fake.Writer, kind, text string, extra map[string]any) {
			m := map[string]any{"msgtype": kind, "body": text}
			for key, v := range extra {
				m[key] = v
			}
			server.Write(w, "m.room.message", m)
		}
		synctest.Wait()
		<-received
		type in = channel.InboundMessage
		toBot := channel.RoutingHints{Group: true, Addressed: true}
		for _, step := range []struct {
			what string
			do   func()
			want *in // nil if it is ignored
		}{
			{"direct", func() { server.Say(ann, "hello") }, &in{ChatID: ann.Room, SenderID: ann.ID, SenderName: "Ann", Content: "hello"}},
			{"command", func() { server.Say(ann, "/agent b") }, &in{
				ChatID: ann.Room, SenderID: ann.ID, SenderName: "Ann", Content: "/agent b",
				Hints: channel.RoutingHints{ForceSync: true, Command: "agent", Args: "b"},
			}},
			{"other sign", func() { server.Say(ann, "!stop") }, &in{
				ChatID: ann.Room, SenderID: ann.ID, SenderName: "Ann", Content: "!stop", Hints: channel.RoutingHints{ForceSync: true, Command: "stop"},
			}},
			{"emote", func() { message(ann, "m.emote", "waves", nil) }, &in{ChatID: ann.Room, SenderID: ann.ID, SenderName: "Ann", Content: "waves"}},
			{"notice", func() { message(ann, "m.notice", "from another bot", nil) }, nil},
			{"edit", func() {
				message(ann, "m.text", "* x", map[string]any{"m.relates_to": map[string]any{"rel_type": "m.replace", "event_id": "$x"}})
			}, nil},
			{"reaction", func() { server.Write(ann, "m.reaction", map[string]any{}) }, nil},
			{"redacted", func() { server.Write(ann, "m.room.message", map[string]any{}) }, nil},
			{"group", func() { server.Say(bob, "nothing for you") }, &in{
				ChatID: bob.Room, SenderID: bob.ID, SenderName: "Bob", Content: "nothing for you", Hints: channel.RoutingHints{Group: true},
			}},
			{"name", func() { server.Say(bob, "leat bot: what is it?") }, &in{
				ChatID: bob.Room, SenderID: bob.ID, SenderName: "Bob", Content: "what is it?", Hints: toBot,
			}},
			{"id", func() { server.Say(bob, "hey @leat:matrix.test, help") }, &in{
				ChatID: bob.Room, SenderID: bob.ID, SenderName: "Bob", Content: "hey , help", Hints: toBot,
			}},
			{"local part", func() { server.Say(bob, "@Leat help") }, &in{
				ChatID: bob.Room, SenderID: bob.ID, SenderName: "Bob", Content: "help", Hints: toBot,
			}},
			{"longer name", func() { server.Say(bob, "leather and cleats") }, &in{
				ChatID: bob.Room, SenderID: bob.ID, SenderName: "Bob", Content: "leather and cleats", Hints: channel.RoutingHints{Group: true},
			}},
			{"m.mentions", func() {
				message(bob, "m.text", "help", map[string]any{"m.mentions": map[string]any{"user_ids": []string{"@leat:matrix.test"}}})
			}, &in{ChatID: bob.Room, SenderID: bob.ID, SenderName: "Bob", Content: "help", Hints: toBot}},
			{"reply", func() { server.Reply(bob, sent, "> <@leat:matrix.test> of the bot\n> more\n\nwhy?") }, &in{
				ChatID: bob.Room, SenderID: bob.ID, SenderName: "Bob", Content: "why?", Hints: toBot,
			}},
			{"reply to a person", func() { server.Reply(bob, thread.Thread, "no") }, &in{
				ChatID: bob.Room, SenderID: bob.ID, SenderName: "Bob", Content: "no", Hints: channel.RoutingHints{Group: true},
			}},
			{"thread", func() { server.Say(thread, "aside") }, &in{
				ChatID: bob.Room + "/" + thread.Thread, SenderID: bob.ID, SenderName: "Bob", Content: "aside", Hints: channel.RoutingHints{Group: true},
			}},
			{"thread of the bot", func() { server.Say(own, "more") }, &in{
				ChatID: bob.Room + "/" + sent, SenderID: bob.ID, SenderName: "Bob", Content: "more", Hints: toBot,
			}},
		} {
			step.do()
			synctest.Wait()
			select {
			case m := <-received:
				if step.want == nil {
					t.Errorf("%s: %+v", step.what, m)
					continue
				}
				if w := *step.want; m.ID == "" || m.ChatID != w.ChatID || m.Content != w.Content || m.Hints != w.Hints || m.SenderID != w.SenderID ||
					m.SenderName != w.SenderName || m.Timestamp.IsZero() {
					t.Errorf("%s:\n%+v, want\n%+v", step.what, m, w)
				}
			default:
				if step.want != nil {
					t.Errorf("%s: no message", step.what)
				}
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		check(t, server)
	})
}

// An invitation is accepted. What was written since then is for the bot, and what was written before isn't.
func TestInvitation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		received, stop := run(t, c)
		server.Fail(fake.Fault{Route: "join", Status: 429, RetryAfter: 3 * time.Second})
		server.Fail(fake.Fault{Route: "join", After: true})
		ann := server.Invite("@ann:matrix.test", "Ann")
		server.Say(ann, "are you there?")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if !server.IsJoined(ann.Room) || len(received) != 1 {
			t.Fatalf("joined %v, %d messages", server.IsJoined(ann.Room), len(received))
		}
		if m := <-received; m.Content != "are you there?" || m.Hints.Group {
			t.Errorf("%+v", m)
		}
		server.Fail(fake.Fault{Route: "join", Status: 403, Code: codeForbidden})
		other := server.Invite("@ann:matrix.test", "Ann")
		time.Sleep(time.Minute)
		if server.IsJoined(other.Room) {
			t.Error("joined in spite of the refusal")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		check(t, server)
	})
}

// An invitation that could not be accepted before the bot was stopped is accepted by the next process, also if messages of other rooms
// arrived meanwhile.
func TestInvitationBeforeRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		received, stop := run(t, c)
		server.Fail(fake.Fault{Route: "join", Release: make(chan struct{})}) // a server that doesn't answer
		bob := server.Invite("@bob:matrix.test", "Bob")
		synctest.Wait()
		server.Say(ann, "hello")
		synctest.Wait()
		if err := stop(); err != nil || len(received) != 1 || server.IsJoined(bob.Room) {
			t.Fatalf("%v, %d messages", err, len(received))
		}
		_, stop = run(t, botOf(server))
		if !server.IsJoined(bob.Room) {
			t.Error("the invitation was forgotten")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		check(t, server)
	})
}

// After a restart a bot continues where it was, also if more was written meanwhile than a sync contains.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		received, stop := run(t, c)
		server.Say(ann, "first")
		synctest.Wait()
		if err := stop(); err != nil || len(received) != 1 {
			t.Fatalf("%v, %d messages", err, len(received))
		}
		const number = 230
		for i := range number {
			server.Say(ann, fmt.Sprint(i))
		}
		received = make(inbox, number+1)
		c = botOf(server)
		s := &syncer{bot: c, identity: c.account.Load(), inbox: received}
		if err := s.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.sync(t.Context()); err != nil || len(received) != number {
			t.Fatalf("%v, %d messages", err, len(received))
		}
		for i := range number {
			if m := <-received; m.Content != fmt.Sprint(i) {
				t.Fatalf("%d: %q", i, m.Content)
			}
		}
		check(t, server)
	})
}

// Outages of the homeserver pass. A refused access token ends Run, so that the channel is shown as not working.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		server.Fail(fake.Fault{Route: "whoami", Before: true})
		server.Fail(fake.Fault{Route: "profile", Status: 502})
		server.Fail(fake.Fault{Route: "account", Status: 500})
		received, stop := run(t, c)
		time.Sleep(time.Minute)
		server.Fail(fake.Fault{Route: "sync", Status: 504})
		server.Fail(fake.Fault{Route: "sync", Before: true})
		server.Fail(fake.Fault{Route: "members", Status: 500})
		server.Say(ann, "hello")
		time.Sleep(time.Minute)
		if m := <-received; m.Content != "hello" {
			t.Errorf("%+v", m)
		}
		server.Fail(fake.Fault{Route: "sync", Status: 400}) // the position is unknown
		server.Say(ann, "lost")
		time.Sleep(time.Minute)
		server.Say(ann, "and again")
		synctest.Wait()
		if m := <-received; m.Content != "and again" {
			t.Errorf("%+v", m)
		}
		server.Revoke()
		synctest.Wait()
		if err := stop(); code(err) != codeUnknownToken || strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
	})
}

// An encrypted room hears once that the bot can't read it, also after a restart.
func TestEncryption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		for range 2 {
			received, stop := run(t, c)
			for range 2 {
				server.Write(ann, "m.room.encrypted", map[string]any{"algorithm": "m.megolm.v1.aes-sha2"})
				time.Sleep(time.Minute)
			}
			if m := server.Visible(ann.Room); len(m) != 1 || m[0].Text != textEncrypted || len(received) > 0 {
				t.Errorf("%+v", m)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			c = botOf(server)
		}
		check(t, server)
	})
}

// The position is stored when messages have arrived, and otherwise rarely.
func TestPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		_, stop := run(t, c)
		saves := func() (n int, last string) {
			for _, r := range server.Requests() {
				if r.Route == "account" && r.Content != nil {
					n++
					raw, _ := json.Marshal(r.Content["since"])
					last = string(raw)
				}
			}
			return n, last
		}
		before, _ := saves()
		time.Sleep(30 * time.Minute)
		if n, _ := saves(); n-before > 3 {
			t.Errorf("stored %d times in half an hour without a message", n-before)
		}
		before, old := saves()
		server.Say(ann, "hello")
		synctest.Wait()
		if n, last := saves(); n != before+1 || last == old {
			t.Errorf("stored %d times, %s", n-before, last)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Members who come, go and change their names are known.
func TestMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		received, stop := run(t, c)
		bob := fake.Writer{Room: ann.Room, ID: "@bob:matrix.test"}
		for _, step := range []struct {
			do    func()
			name  string
			group bool
		}{
			{func() {}, "Ann", false},
			{func() { server.Enter(bob) }, "Ann", true},
			{func() { server.Enter(fake.Writer{Room: ann.Room, ID: ann.ID, Name: "Anna"}) }, "Anna", true},
			{func() { server.SetState(ann, "m.room.member", bob.ID, map[string]any{"membership": "leave"}) }, "Anna", false},
		} {
			step.do()
			server.Say(ann, "hello")
			synctest.Wait()
			if m := <-received; m.SenderName != step.name || m.Hints.Group != step.group {
				t.Errorf("%+v, want %+v", m, step)
			}
		}
		loads := 0
		for _, r := range server.Requests() {
			if r.Route == "members" {
				loads++
			}
		}
		if err := stop(); err != nil || loads != 1 {
			t.Errorf("%v, members loaded %d times", err, loads)
		}
	})
}

// Members who change while the members of a room are loaded are not missed.
func TestMembersChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		for _, change := range []func(){
			func() { c.rooms.update(ann.Room, "@bob:matrix.test", memberContent{Membership: "join"}) },
			func() { c.rooms.forget(ann.Room) },
		} {
			release := make(chan struct{})
			server.Fail(fake.Fault{Route: "members", Release: release})
			done := make(chan error)
			go func() {
				_, err := c.rooms.of(t.Context(), ann.Room)
				done <- err
			}()
			synctest.Wait()
			change()
			close(release)
			if err := <-done; err != nil || c.rooms.byID[ann.Room] != nil {
				t.Errorf("%v, remembered %v", err, c.rooms.byID)
			}
		}
		check(t, server)
	})
}

// A room that forbids redactions or typing still gets the answer.
func TestForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		ch := c.newChat(place{room: ann.Room})
		id, err := ch.send(t.Context(), "k", content{Kind: kindText, Body: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		for route, do := range map[string]func() error{
			"typing": func() error { return ch.ShowTyping(t.Context()) },
			"redact": func() error { return ch.Delete(t.Context(), id) },
		} {
			server.Fail(fake.Fault{Route: route, Status: 403, Code: codeForbidden})
			if err := do(); code(err) != codeForbidden || errors.Is(err, channel.ErrUnreachable) {
				t.Errorf("%s: %v", route, err)
			}
		}
		server.Fail(fake.Fault{Route: "send", Status: 403, Code: codeForbidden})
		if _, err := ch.send(t.Context(), "l", content{Kind: kindText, Body: "hello"}); !errors.Is(err, channel.ErrUnreachable) {
			t.Errorf("a message: %v", err)
		}
		check(t, server)
	})
}

// A bot that is stopped before the homeserver has answered ends.
func TestRunStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		for range 100 {
			server.Fail(fake.Fault{Route: "whoami", Before: true})
		}
		_, stop := run(t, c)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
