package feishu

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/feishu"
	"github.com/leat-dev/leat/internal/channel"
)

// Messages, mentions, threads, rich texts and files become messages of the pipeline.
func TestInbound(t *testing.T) {
	c, server, received := newBot(t, options())
	root := server.Say(team, "@bot start")
	received.take()
	for _, step := range []struct {
		what string
		do   func() string
		want channel.InboundMessage
	}{
		{"private", func() string { return server.Say(ann, "hello") }, channel.InboundMessage{ChatID: "oc_1", Content: "hello"}},
		{"command", func() string { return server.Say(ann, "/agent b") }, channel.InboundMessage{
			ChatID: "oc_1", Content: "/agent b", Hints: channel.RoutingHints{ForceSync: true, Command: "agent", Args: "b"},
		}},
		{"group", func() string { return server.Say(team, "hello @bob") }, channel.InboundMessage{
			ChatID: "oc_2", Content: "hello @bob", Hints: channel.RoutingHints{Group: true},
		}},
		{"mention", func() string { return server.Say(team, "@bot ask @bob") }, channel.InboundMessage{
			ChatID: "oc_2", Content: "ask @bob", Hints: channel.RoutingHints{Group: true, Addressed: true},
		}},
		{"thread", func() string { return server.Reply(team, root, "@bot /stop", true) }, channel.InboundMessage{
			ChatID: "oc_2/" + root, Content: "/stop", Hints: channel.RoutingHints{Group: true, Addressed: true, ForceSync: true, Command: "stop"},
		}},
		{"post", func() string {
			return server.Post(ann, "Title", []map[string]any{{"tag": "text", "text": "See "}, {"tag": "a", "text": "this", "href": "https://example.com"}},
				[]map[string]any{{"tag": "code_block", "language": "GO", "text": "a()\n"}})
		}, channel.InboundMessage{ChatID: "oc_1", Content: "Title\nSee [this](https://example.com)\n```go\na()\n```"}},
	} {
		id := step.do()
		got := received.take()
		if len(got) != 1 || got[0].ID != id || got[0].ChatID != step.want.ChatID || got[0].Content != step.want.Content || got[0].Hints != step.want.Hints ||
			got[0].SenderID != "ou_ann" || got[0].Timestamp.Unix() <= 0 {
			t.Errorf("%s:\n%+v, want\n%+v", step.what, got, step.want)
		}
	}
	for _, f := range []fake.File{{Name: "a.pdf", Content: []byte("%PDF")}, {IsImage: true, Content: []byte("jpeg")}} {
		server.SendFile(ann, f)
		got := received.take()
		if len(got) != 1 || len(got[0].Media) != 1 || f.Name != "" && got[0].Media[0].Name != f.Name {
			t.Fatalf("%+v", got)
		}
		r, err := c.FetchMedia(t.Context(), got[0].Media[0])
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r); string(b) != string(f.Content) || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.FetchMedia(t.Context(), channel.Media{Ref: root + "/file/file_0"}); refusal(err).Code != 234003 {
		t.Error(err)
	}
	check(t, server)
}

// An event that can't be stored is not confirmed, and arrives again. One that was confirmed and comes again is the same message.
func TestRedelivery(t *testing.T) {
	_, server, received := newBot(t, options())
	received.isBroken = true
	id := server.Say(ann, "hello")
	if d := server.Deliveries(); d[0].Status != http.StatusServiceUnavailable {
		t.Errorf("HTTP %d", d[0].Status)
	}
	received.isBroken = false
	server.Redeliver()
	server.Repeat()
	if got := received.take(); len(got) != 1 || got[0].ID != id {
		t.Errorf("%+v", got)
	}
}

// In groups the name of a person is known, and a reply to the bot is for the bot.
func TestGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server, received := newBot(t, options())
		bob := fake.Group(team.Chat, "ou_bob")
		question := server.Say(team, "@bot hello")
		m := to(team.Chat, "the answer")
		m.ReplyTo = question
		if err := c.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		answer := server.Visible(team.Chat)[0].ID
		received.take()
		for _, step := range []struct {
			what, parent string
			isAddressed  bool
		}{{"to the bot", answer, true}, {"to a person", question, false}, {"to a message that isn't shown", "om_0", false}} {
			server.Reply(bob, step.parent, "why?", false)
			time.Sleep(namesGap) // bob is new in the first round
			if got := received.take(); len(got) != 1 || got[0].Hints.Addressed != step.isAddressed || got[0].SenderName != "bob" && step.parent != answer {
				t.Errorf("%s: %+v", step.what, got)
			}
		}
		server.Fail(fake.Fault{Route: fake.RouteMessage, Before: true})
		server.Reply(bob, answer, "again", false)
		if got := received.take(); len(got) != 0 {
			t.Errorf("a reply to a message that could not be looked up: %+v", got)
		}
		server.Redeliver()
		if got := received.take(); len(got) != 1 || !got[0].Hints.Addressed {
			t.Errorf("%+v", got)
		}
		server.Fail(fake.Fault{Route: fake.RouteMembers, Status: 400, Code: 99991672}) // no permission
		server.Say(fake.Group(team.Chat, "ou_cleo"), "@bot hi")
		if got := received.take(); len(got) != 1 || got[0].SenderName != "" {
			t.Errorf("%+v", got)
		}
		loads := 0
		for _, r := range server.Requests() {
			if r.Route == fake.RouteMembers {
				loads++
			}
		}
		if loads > 6 {
			t.Errorf("%d requests for names", loads)
		}
		check(t, server)
	})
}

// A mention that arrives before the bot knows itself is not confirmed, so it arrives again. Without that it would be lost.
func TestEarlyMention(t *testing.T) {
	c, server, received := newBot(t, options())
	c.openID.Store(nil)
	server.Say(team, "@bot hello")
	if got := received.take(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if err := c.identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Redeliver()
	if got := received.take(); len(got) != 1 || !got[0].Hints.Addressed {
		t.Errorf("%+v", got)
	}
}

// Requests that the platform has not signed have no effect.
func TestUnsigned(t *testing.T) {
	c, server, received := newBot(t, options())
	server.Say(ann, "hello")
	received.take()
	event := server.Deliveries()[0].Event
	for name, change := range map[string]func(*http.Request){
		"no signature":    func(r *http.Request) { r.Header.Del("X-Lark-Signature") },
		"other nonce":     func(r *http.Request) { r.Header.Set("X-Lark-Request-Nonce", "2") },
		"other timestamp": func(r *http.Request) { r.Header.Set("X-Lark-Request-Timestamp", "2") },
		"plain":           func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(string(event))) },
		"short":           func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{"encrypt": "AAAA"}`)) },
		"no JSON":         func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("x")) },
		"too long":        func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(strings.Repeat(" ", maxWebhook+1))) },
		"method":          func(r *http.Request) { r.Method = http.MethodGet },
	} {
		r, err := server.Sign("http://leat.test/hook", event)
		if err != nil {
			t.Fatal(err)
		}
		change(r)
		w := httptest.NewRecorder()
		c.ServeWebhook(w, r, received)
		if w.Code < 400 {
			t.Errorf("%s: HTTP %d", name, w.Code)
		}
	}
	other := options()
	other.EncryptKey = "other"
	r, err := fake.New(other).Sign("http://leat.test/hook", event)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if c.ServeWebhook(w, r, received); w.Code != http.StatusUnauthorized {
		t.Errorf("another key: HTTP %d", w.Code)
	}
	if got := received.take(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
