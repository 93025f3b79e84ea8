package feishu

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/feishu"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
	"github.com/leat-dev/leat/internal/channel/live"
)

func to(chat, content string) channel.OutboundMessage {
	return channel.OutboundMessage{Channel: "fs", ChatID: chat, Content: content, Key: content}
}

// A long answer is split into cards. One that is sent again appears once.
func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server, _ := newBot(t, options())
		id := server.Say(team, "hello")
		m := to("oc_2", "**bold**\n\n"+strings.Repeat("\"Quoted\" \\words\\ <of> a long answer. ", 1000))
		m.ReplyTo = id
		server.Fail(fake.Fault{Route: fake.RouteSend, After: true})
		for range 2 {
			if err := c.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		got := server.Visible("oc_2")
		if len(got) < 3 || got[0].Type != "interactive" || !strings.HasPrefix(got[0].Text, "**bold**") || got[0].ReplyTo != id || got[1].ReplyTo != "" {
			t.Errorf("%d messages, %+v", len(got), got[0])
		}
		for _, r := range server.Requests() {
			if r.Status == 400 {
				t.Errorf("%+v", r.Route)
			}
		}
		check(t, server)
	})
}

// Messages for a thread are in the thread.
func TestThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server, _ := newBot(t, options())
		root := server.Say(team, "start")
		if err := c.Send(t.Context(), to("oc_2/"+root, "in the thread")); err != nil {
			t.Fatal(err)
		}
		m := to("oc_2", "an answer to a message that was withdrawn")
		m.ReplyTo = server.Say(team, "oops")
		server.Remove(m.ReplyTo)
		if err := c.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if got := server.Visible("oc_2"); len(got) != 2 || got[0].Thread == "" || got[1].Thread != "" || got[1].ReplyTo != "" {
			t.Errorf("%+v", got)
		}
		check(t, server)
	})
}

// Refusals that pass are waited out, those that don't are returned. A card that is refused is sent as text.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server, _ := newBot(t, options())
		server.Say(ann, "hello")
		for _, f := range []fake.Fault{
			{Status: 429, Code: codeRate, RetryAfter: 30 * time.Second}, {Status: 400, Code: codeChatRate}, {Status: 500, Code: 1}, {Before: true}, {Status: 400, Code: 230099},
		} {
			f.Route = fake.RouteSend
			server.Fail(f)
		}
		begin := time.Now()
		if err := c.Send(t.Context(), to("oc_1", "hi")); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begin); d < 30*time.Second || d > time.Minute {
			t.Errorf("it took %v", d)
		}
		if got := server.Visible("oc_1"); len(got) != 1 || got[0].Type != "text" {
			t.Errorf("%+v", got)
		}
		server.Fail(fake.Fault{Route: fake.RouteSend, Status: 400, Code: 230017})
		if err := c.Send(t.Context(), to("oc_1", "a")); refusal(err).Code != 230017 || errors.Is(err, channel.ErrUnreachable) {
			t.Error(err)
		}
		server.Expel("oc_1")
		if err := c.Send(t.Context(), to("oc_1", "b")); !errors.Is(err, channel.ErrUnreachable) {
			t.Error(err)
		}
		check(t, server)
	})
}

// Access tokens are cached, renewed before their end, and replaced when the platform refuses them.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.TokenLife = 10 * time.Minute
		c, server, _ := newBot(t, o)
		server.Say(ann, "hello")
		for i := range 20 {
			if i == 10 {
				server.RevokeTokens()
			}
			if err := c.Send(t.Context(), to("oc_1", strings.Repeat("x", i+1))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		fetched := 0
		for _, r := range server.Requests() {
			if r.Route == fake.RouteToken {
				fetched++
			}
		}
		if got := len(server.Visible("oc_1")); got != 20 || fetched < 3 || fetched > 4 {
			t.Errorf("%d messages with %d tokens", got, fetched)
		}
		c.client.token.secret, c.client.token.token = "wrong", ""
		if err := c.Run(t.Context(), nil); !isRefused(err) || strings.Contains(err.Error(), "wrong") {
			t.Errorf("a wrong secret: %v", err)
		}
	})
}

// Run waits for its context once the platform knows the app.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server, _ := newBot(t, options())
		c.openID.Store(nil)
		server.Fail(fake.Fault{Route: fake.RouteBot, Before: true})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, nil) }()
		time.Sleep(time.Minute)
		if c.openID.Load() == nil {
			t.Error("the bot doesn't know itself")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A growing answer is a card in streaming mode, which ends with the answer, also if the platform has ended it before.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fake.New(options())
		c := openBot(server)
		id := server.Say(ann, "hello")
		s, state := channeltest.NewStory(t, "turn"), channeltest.State{}
		done := s.Deliver(t.Context(), c, "oc_1", id, &state)
		s.Begin()
		s.OpenText()
		s.Write("An answer that is long enough to be shown.")
		time.Sleep(5 * time.Second)
		got := server.Visible("oc_1")
		if len(got) != 1 || !got[0].IsStreaming {
			t.Fatalf("%+v", got)
		}
		server.CloseStream(got[0].ID)
		s.Write(" It goes on.")
		time.Sleep(5 * time.Second)
		if m := server.Visible("oc_1")[0]; !m.IsStreaming || !strings.HasSuffix(m.Text, "goes on.") {
			t.Errorf("%+v", m)
		}
		s.Ask("r1", "Remove x?")
		time.Sleep(5 * time.Second)
		if got := server.Visible("oc_1"); len(got) != 2 || len(got[1].Buttons) != 2 {
			t.Errorf("%+v", got)
		}
		s.Answer("r1", event.Approve)
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := server.Visible("oc_1"); len(got) != 2 || got[0].IsStreaming || len(got[1].Buttons) != 0 {
			t.Errorf("%+v", got)
		}
		check(t, server)
	})
}

// An answer that the platform can't show as a card is sent as plain text, and the card that grew is deleted.
func TestGrowthRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fake.New(options())
		c := openBot(server)
		id := server.Say(ann, "hello")
		s, state := channeltest.NewStory(t, "turn"), channeltest.State{}
		done := s.Deliver(t.Context(), c, "oc_1", id, &state)
		s.Begin()
		s.OpenText()
		s.Write("An answer that is long enough to be shown.")
		time.Sleep(5 * time.Second)
		server.Fail(fake.Fault{Route: fake.RouteContent, Status: 400, Code: 300301})
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := server.Visible("oc_1"); len(got) != 1 || got[0].Type != "text" || !strings.HasPrefix(got[0].Text, "An answer") {
			t.Errorf("%+v", got)
		}
		check(t, server)
	})
}

// A card that has got higher numbers by another clock is finished all the same.
func TestSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fake.New(options())
		c := openBot(server)
		id := server.Say(ann, "hello")
		s, state := channeltest.NewStory(t, "turn"), channeltest.State{}
		done := s.Deliver(t.Context(), c, "oc_1", id, &state)
		s.Begin()
		s.OpenText()
		s.Write("An answer that is long enough to be shown.")
		time.Sleep(5 * time.Second)
		server.Fail(fake.Fault{Route: fake.RouteContent, Status: 400, Code: codeSequence})
		server.Fail(fake.Fault{Route: fake.RouteSettings, Status: 400, Code: codeSequence})
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := server.Visible("oc_1"); len(got) != 1 || got[0].IsStreaming {
			t.Errorf("%+v", got)
		}
		check(t, server)
	})
}

// A limit is for all chats of the app, also if something on the way to the platform imposes it.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server, _ := newBot(t, options())
		server.Say(ann, "hello")
		server.Say(team, "hello")
		server.Fail(fake.Fault{Route: fake.RouteSend, Status: 429, Code: codeRate, RetryAfter: 30 * time.Second})
		began, results := time.Now(), make(chan error)
		for _, chat := range []string{"oc_1", "oc_2"} {
			go func() { results <- c.Send(t.Context(), to(chat, "hi")) }()
		}
		time.Sleep(time.Second)
		if err := c.identify(t.Context()); !errors.As(err, new(*live.Penalty)) {
			t.Errorf("a request for no chat during the penalty: %v", err)
		}
		for range 2 {
			if err := <-results; err != nil || time.Since(began) < 30*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		}
		check(t, server)
	})
	answer := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"X-Ogw-Ratelimit-Reset": {"7"}}, Body: io.NopCloser(strings.NewReader("slow down"))}
	err := explain(new(client).decode(t.Context(), answer, nil))
	if p, ok := errors.AsType[*live.Penalty](err); !ok || p.Wait != 7*time.Second || !p.IsGlobal {
		t.Errorf("a limit of a proxy: %v", err)
	}
}

// Without streaming, a person sees questions, and the answer with its files when it is complete.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fake.New(options())
		c := openBot(server)
		c.options.Streaming = false
		id := server.Say(ann, "hello")
		s, state := channeltest.NewStory(t, "turn"), channeltest.State{}
		s.Files = map[string][]byte{"/files/1": []byte("%PDF")}
		done := s.Deliver(t.Context(), c, "oc_1", id, &state)
		s.Begin()
		s.Tool("bash", `{"command":"ls"}`)
		s.OpenText()
		s.Write("An answer that is long enough to be shown.")
		time.Sleep(time.Minute)
		if got := texts(server, "oc_1"); got != "" {
			t.Errorf("%q", got)
		}
		s.Send(event.Event{Type: event.PartStart, Message: "answer", Part: "file", Body: &event.Body{
			Kind: event.KindMedia, Media: &event.Media{URL: "/files/1", MIME: "application/pdf", Name: "a.pdf"},
		}})
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		got := server.Visible("oc_1")
		if len(got) != 2 || got[0].Text != "An answer that is long enough to be shown." || got[0].IsStreaming || got[1].File == nil {
			t.Errorf("%+v", got)
		}
		check(t, server)
	})
}

// A pressed button is the command that it stands for, in the thread of the question.
func TestPress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server, received := newBot(t, options())
		root := server.Say(team, "hello")
		received.take()
		ch := c.newChat(place{"oc_2", root})
		id, err := ch.Post(t.Context(), live.Post{Kind: live.Question, Text: plain("Sure?"), Buttons: []live.Button{{Text: "approve", Command: "/answer abc 0"}}})
		if err != nil {
			t.Fatal(err)
		}
		server.Press(team, id, "approve")
		got := received.take()
		if len(got) != 1 || got[0].ChatID != "oc_2/"+root || got[0].Hints.Command != "answer" || got[0].Hints.Args != "abc 0" || got[0].SenderID != "ou_ann" {
			t.Errorf("%+v", got)
		}
		check(t, server)
	})
}

// Files are sent as images or files, and once.
func TestSendFile(t *testing.T) {
	png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	c, server, _ := newBot(t, fake.Options{AppID: "cli_1", AppSecret: "secret", EncryptKey: "key"})
	server.Say(ann, "hello")
	ch := c.newChat(place{chat: "oc_1"})
	for _, f := range []live.File{
		{Name: "a.png", Type: "image/png", Content: png, Key: "1"},
		{Name: "b.png", Type: "image/png", Content: []byte("no picture"), Key: "2"},
		{Name: "c.pdf", Type: "application/pdf", Content: []byte("%PDF"), Key: "3"},
		{Name: "d.txt", Type: "text/plain", Key: "4"},
		{Name: "c.pdf", Type: "application/pdf", Content: []byte("%PDF"), Key: "3"},
	} {
		if _, err := ch.SendFile(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	var types []string
	for _, m := range server.Visible("oc_1") {
		types = append(types, m.Type)
	}
	if got := strings.Join(types, " "); got != "image file file interactive" {
		t.Errorf("%q: %s", got, texts(server, "oc_1"))
	}
	server.Fail(fake.Fault{Route: fake.RouteSend, Status: 400, Code: codeChatRate})
	known, before := live.File{Name: "f.pdf", Content: []byte("%PDF"), Key: "6"}, len(server.Requests())
	for _, isPenalty := range []bool{true, false} {
		if _, err := ch.SendFile(t.Context(), known); errors.As(err, new(*live.Penalty)) != isPenalty {
			t.Error(err)
		}
	}
	if n := len(server.Requests()) - before; n != 3 {
		t.Errorf("%d requests for one upload and two messages", n)
	}
	server.Fail(fake.Fault{Route: fake.RouteUpload, After: true})
	if _, err := ch.SendFile(t.Context(), live.File{Name: "e.bin", Content: []byte("x")}); !errors.Is(err, live.ErrUnsent) {
		t.Error(err)
	}
	check(t, server)
}
