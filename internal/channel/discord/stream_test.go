package discord

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/discord"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

// A growing text is one message that is edited and becomes the answer, with few requests.
func TestEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		first := server.Say(bob, "hello")
		s := channeltest.NewStory(t, "turn")
		done := s.Deliver(t.Context(), c, "50", first, &channeltest.State{})
		s.Begin()
		time.Sleep(time.Second)
		if !server.IsTyping("50") {
			t.Error("before the text: not typing")
		}
		s.OpenText()
		s.Write("Hello, **wor")
		time.Sleep(3 * time.Second)
		shown := server.Visible("50")
		if len(shown) != 1 || shown[0].Text != "Hello, **wor**"+cursor || shown[0].ReplyTo != first || !shown[0].NoPreviews {
			t.Fatalf("%+v", shown)
		}
		s.Write("ld**! @everyone ")
		for range 50 {
			s.Write("A word. ")
			time.Sleep(200 * time.Millisecond)
		}
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		final := server.Visible("50")
		if len(final) != 1 || final[0].ID != shown[0].ID || !strings.HasPrefix(final[0].Text, "Hello, **world**!") {
			t.Fatalf("%+v", final)
		}
		if final[0].Mentions || final[0].NoPreviews {
			t.Errorf("%+v", final[0])
		}
		if n := len(final[0].Versions); n < 5 || n > 11 {
			t.Errorf("%d versions in 10 s", n)
		}
		check(t, server)
	})
}

// Tool calls are shown on a silent card of components, which is within the limit of its text and disappears at the end.
func TestCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		server.Say(bob, "hello")
		s := channeltest.NewStory(t, "turn")
		done := s.Deliver(t.Context(), c, "50", "", &channeltest.State{})
		s.Begin()
		for i := range 20 {
			s.Tool("bash", fmt.Sprintf(`{"command":"make step%d"}`, i))
			time.Sleep(3 * time.Second)
			s.ToolEnd(strings.Repeat("*output* of @everyone `and` 👍 ```more```\n", 100), event.PartDone)
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		shown := server.Visible("50")
		if len(shown) != 1 || !shown[0].Silent || shown[0].Mentions {
			t.Fatalf("%+v", shown)
		}
		if text := shown[0].Text; !strings.Contains(text, "make step19") || !strings.Contains(text, "-# ⏱ 1m") {
			t.Errorf("%q", text)
		}
		if container := shown[0].Components; len(container) != 1 || container[0].Type != typeContainer {
			t.Errorf("%+v", container)
		}
		s.OpenText()
		s.Write("Done.")
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if final := server.Visible("50"); len(final) != 1 || final[0].Text != "Done." {
			t.Errorf("%+v", final)
		}
		check(t, server)
	})
}

// A question has a button for each choice. A pressed button is confirmed and is the command of its choice; then the buttons disappear.
func TestQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		b, stop := start(t, c)
		defer stop()
		server.Say(bob, "hello")
		b.next(t)
		s := channeltest.NewStory(t, "turn")
		done := s.Deliver(t.Context(), c, "50", "", &channeltest.State{})
		s.Begin()
		s.Ask("r1", "Remove `x`?")
		time.Sleep(5 * time.Second)
		shown := server.Visible("50")
		if len(shown) != 1 || len(shown[0].Buttons()) != 2 || shown[0].Silent || !strings.Contains(shown[0].Text, "Remove `x`?") {
			t.Fatalf("%+v", shown)
		}
		server.Press(bob, shown[0].ID, "deny")
		m := b.next(t)
		if m.Hints.Command != "answer" || !m.Hints.ForceSync || !m.Hints.Addressed || m.SenderID != "8" || m.ChatID != "50" {
			t.Errorf("%+v", m)
		}
		s.Answer("r1", event.Deny)
		s.OpenText()
		s.Write("Then not.")
		time.Sleep(5 * time.Second)
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if final := server.Visible("50"); len(final) != 2 || len(final[0].Buttons()) != 0 || final[1].Text != "Then not." {
			t.Errorf("%+v", final)
		}
		check(t, server)
	})
}

// A message that is too old to be edited again is replaced by another.
func TestOldMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		server.Say(bob, "hello")
		s := channeltest.NewStory(t, "turn")
		done := s.Deliver(t.Context(), c, "50", "", &channeltest.State{})
		s.Begin()
		s.OpenText()
		var want strings.Builder
		for i := range 50 {
			text := fmt.Sprintf("Sentence %d. ", i)
			want.WriteString(text)
			s.Write(text)
			time.Sleep(3 * time.Minute)
		}
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if final := server.Visible("50"); len(final) != 1 || final[0].Text != strings.TrimSpace(want.String()) {
			t.Errorf("%+v", final)
		}
		check(t, server)
	})
}

// The files of a turn follow its text: each is sent once, also if the answer to its request is lost. What can't be sent is a link.
func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		server.Say(ann, "hello")
		server.Fail(fake.Fault{Route: fake.CreateMessage, Skip: 1, After: true})
		server.Fail(fake.Fault{Route: fake.CreateMessage, Skip: 1, Status: http.StatusTooManyRequests, RetryAfter: 10 * time.Minute})
		s := channeltest.NewStory(t, "turn")
		s.Files = map[string][]byte{"/files/1": []byte("a,b\n"), "/files/2": make([]byte, maxUpload+1)}
		done := s.Deliver(t.Context(), c, "97", "", &channeltest.State{})
		s.Begin()
		s.OpenText()
		s.Write("Here they are.")
		for _, m := range []event.Media{
			{URL: "/files/1", MIME: "text/csv", Name: "täble \"1\".csv"},
			{URL: "/files/2", Name: "big.bin"},
			{URL: "https://example.com/x.pdf", Name: "x.pdf"},
		} {
			s.Show(m)
		}
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range server.Visible("97") {
			line := m.Text
			for _, f := range m.Files {
				line += f.Name + " " + f.Type + " " + string(f.Content)
			}
			got = append(got, line)
		}
		const want = "Here they are.|täble \"1\".csv text/csv a,b\n|📎 big.bin|📎 x.pdf\nhttps://example.com/x.pdf"
		if text := strings.Join(got, "|"); text != want {
			t.Errorf("%q, want %q", text, want)
		}
		check(t, server)
	})
}
