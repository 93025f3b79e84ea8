package matrix

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/matrix"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

// Without streaming the room gets the answer when it is complete, and the files of the agent.
func TestStreamingIsOptional(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		c.isLive = false
		ann := server.Direct("@ann:matrix.test", "Ann")
		s := channeltest.NewStory(t, turnID)
		s.Files = map[string][]byte{"/files/1": []byte("a,b")}
		done := deliver(t.Context(), c, ann.Room, "", s)
		s.Begin()
		s.Tool("bash", `{"command":"ls"}`)
		s.OpenText()
		s.Write("A text that is long enough to be shown at once.")
		s.Show(event.Media{URL: "/files/1", MIME: "text/csv", Name: "table.csv"})
		time.Sleep(time.Minute)
		if m := server.Visible(ann.Room); len(m) != 0 {
			t.Errorf("before the end: %+v", m)
		}
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if m := server.Messages(ann.Room); len(m) != 2 || m[0].IsLive || len(m[0].Versions) != 1 || !strings.Contains(m[1].Text, "table.csv") {
			t.Errorf("%+v", m)
		}
		check(t, server, ann.Room)
	})
}

// The growing text is one event that is edited in place. It is marked as live until the last edit.
func TestEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Group(fake.Writer{ID: "@ann:matrix.test"}, fake.Writer{ID: "@bob:matrix.test"})[0]
		said := server.Say(ann, "hello")
		s := channeltest.NewStory(t, turnID)
		done := deliver(t.Context(), c, ann.Room, said, s)
		s.Begin()
		time.Sleep(time.Second)
		if !server.IsTyping(ann.Room) {
			t.Error("before the first text the bot doesn't type")
		}
		time.Sleep(time.Minute)
		if !server.IsTyping(ann.Room) {
			t.Error("after a minute the bot doesn't type")
		}
		s.OpenText()
		for range 100 {
			s.Write("A **word** and @ann:matrix.test. ")
			time.Sleep(200 * time.Millisecond)
		}
		growing := server.Visible(ann.Room)
		if len(growing) != 1 || !growing[0].IsLive || growing[0].ReplyTo != said || len(growing[0].Versions) < 8 || len(growing[0].Versions) > 12 {
			t.Errorf("%+v", growing)
		}
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		final := server.Visible(ann.Room)
		want := strings.TrimSpace(strings.Repeat("A **word** and @ann:matrix.test. ", 100))
		if len(final) != 1 || final[0].ID != growing[0].ID || final[0].IsLive || final[0].Text != want ||
			!strings.Contains(final[0].HTML, "<strong>word</strong>") {
			t.Errorf("%+v", final)
		}
		check(t, server, ann.Room)
	})
}

// A turn in a thread is answered there.
func TestThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		root := server.Say(ann, "root")
		s := channeltest.NewStory(t, turnID)
		done := deliver(t.Context(), c, place{ann.Room, root}.id(), root, s)
		s.Begin()
		s.OpenText()
		s.Write("An answer in the thread, long enough to be shown at once.")
		time.Sleep(10 * time.Second)
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if m := server.Visible(ann.Room); len(m) != 1 || m[0].Thread != root || len(m[0].Versions) != 2 {
			t.Errorf("%+v", m)
		}
		check(t, server, ann.Room)
	})
}

// The status card is a notice. At the end it is redacted together with its edits.
func TestCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		server.Fail(fake.Fault{Route: "redact", Skip: 1, After: true})
		server.Fail(fake.Fault{Route: "redact", Status: 429, RetryAfter: 20 * time.Second})
		s := channeltest.NewStory(t, turnID)
		done := deliver(t.Context(), c, ann.Room, "", s)
		s.Begin()
		s.OpenText()
		s.Write("I look at the files first.")
		s.Tool("bash", `{"command":"ls -la <dir>"}`)
		time.Sleep(5 * time.Second)
		card := server.Visible(ann.Room)
		i := slices.IndexFunc(card, func(m fake.Message) bool { return m.Kind == kindNotice })
		if i < 0 || !strings.Contains(card[i].Text, "⏳ `bash` `ls -la <dir>`") || !strings.Contains(card[i].HTML, "<code>bash</code>") {
			t.Fatalf("%+v", card)
		}
		s.ToolEnd(strings.Repeat("ä", 5000), event.PartDone)
		time.Sleep(2 * time.Minute)
		card = server.Visible(ann.Room)
		if !strings.Contains(card[i].Text, "✅") || !strings.Contains(card[i].Text, "ää") || len(card[i].Edits) < 3 || len(card[i].Edits) > 8 {
			t.Errorf("%d edits: %q", len(card[i].Edits), card[i].Text)
		}
		s.OpenText()
		s.Write("There are two.")
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if m := server.Visible(ann.Room); len(m) != 1 || m[0].Text != "I look at the files first.\n\nThere are two." || m[0].IsLive {
			t.Errorf("%+v", m)
		}
		check(t, server, ann.Room)
	})
}

// A penalty stops everything for as long as the homeserver says. Afterwards live updates are slower.
func TestPenalty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		server.Fail(fake.Fault{Route: "send", Skip: 3, Status: 429, RetryAfter: 30 * time.Second})
		s := channeltest.NewStory(t, turnID)
		done := deliver(t.Context(), c, ann.Room, "", s)
		s.Begin()
		s.OpenText()
		for range 100 {
			s.Write("More and more of it. ")
			time.Sleep(time.Second)
		}
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		var last time.Time
		isSlow, count := false, 0
		for _, r := range server.Requests() {
			if r.Route != "send" {
				continue
			}
			count++
			if gap := r.At.Sub(last); isSlow && gap < slowGap && r.Content[`org.matrix.msc4357.live`] != nil {
				t.Errorf("%v after the last one", gap)
			}
			last, isSlow = r.At, isSlow || r.Status == 429
		}
		if m := server.Visible(ann.Room); len(m) != 1 || m[0].IsLive || count < 15 || count > 25 {
			t.Errorf("%d requests, %+v", count, m)
		}
		check(t, server, ann.Room)
	})
}

// With the rate limit of a default Synapse, everything arrives.
func TestSynapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{Rate: 0.2, Burst: 10, IsSynapse: true})
		ann := server.Direct("@ann:matrix.test", "Ann")
		s := channeltest.NewStory(t, turnID)
		done := deliver(t.Context(), c, ann.Room, "", s)
		s.Begin()
		s.Tool("bash", `{"command":"ls"}`)
		time.Sleep(10 * time.Second)
		s.ToolEnd("x", event.PartDone)
		s.OpenText()
		for range 100 {
			s.Write("More and more of it. ")
			time.Sleep(time.Second)
		}
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if m := server.Visible(ann.Room); len(m) != 1 || m[0].IsLive || strings.Count(m[0].Text, "More") != 100 {
			t.Errorf("%+v", m)
		}
		check(t, server, ann.Room)
	})
}

// A long answer is split; each part fits into an event, also as an edit.
func TestLongAnswer(t *testing.T) {
	for name, line := range map[string]string{"code": "fmt.Println(\"<a> & b\")\n", "wide": "fmt.Println(\"日本語のテキスト\")\n"} {
		synctest.Test(t, func(t *testing.T) {
			c, server := newBot(fake.Options{})
			ann := server.Direct("@ann:matrix.test", "Ann")
			s := channeltest.NewStory(t, turnID)
			done := deliver(t.Context(), c, ann.Room, "", s)
			s.Begin()
			s.OpenText()
			s.Write("```go\n")
			for range 10 {
				s.Write(strings.Repeat(line, 200))
				time.Sleep(5 * time.Second)
			}
			s.Write("```\n\nEnd.")
			s.End(event.Completed)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			m := server.Visible(ann.Room)
			lines := 0
			for _, part := range m {
				lines += strings.Count(part.Text, "fmt.Println")
				if part.IsLive || part.HTML == "" {
					t.Errorf("%s: %+v", name, part)
				}
			}
			if len(m) < 3 || lines != 2000 || !strings.HasSuffix(m[len(m)-1].Text, "End.") {
				t.Errorf("%s: %d messages, %d lines", name, len(m), lines)
			}
			for _, r := range server.Requests() {
				if r.Status == 413 {
					t.Errorf("%s: an event was too large", name)
				}
			}
			check(t, server, ann.Room)
		})
	}
}

// A request without an answer is repeated with its transaction id: every message appears once, and an edit that arrives late doesn't
// overwrite a newer one.
func TestUnanswered(t *testing.T) {
	for _, landed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, server := newBot(fake.Options{})
			ann := server.Direct("@ann:matrix.test", "Ann")
			for _, skip := range []int{0, 2, 4, 5, 7} {
				server.Fail(fake.Fault{Route: "send", Skip: skip, After: landed, Before: !landed})
			}
			s := channeltest.NewStory(t, turnID)
			done := deliver(t.Context(), c, ann.Room, "", s)
			s.Begin()
			s.OpenText()
			for range 10 {
				s.Write("A sentence of the answer. ")
				time.Sleep(2 * time.Second)
			}
			s.End(event.Completed)
			if err := <-done; err != nil {
				t.Errorf("landed %v: %v", landed, err)
			}
			m := server.Visible(ann.Room)
			if len(m) != 1 || m[0].IsLive || strings.Count(m[0].Text, "sentence") != 10 {
				t.Errorf("landed %v: %+v", landed, m)
			}
			if !slices.IsSortedFunc(m[0].Versions, func(a, b string) int { return len(a) - len(b) }) {
				t.Errorf("landed %v: a text was taken back: %q", landed, m[0].Versions)
			}
			check(t, server, ann.Room)
		})
	}
}

// A message that a person has redacted while it was written doesn't swallow the answer.
func TestRedacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		s := channeltest.NewStory(t, turnID)
		done := deliver(t.Context(), c, ann.Room, "", s)
		s.Begin()
		s.OpenText()
		s.Write("A text that is long enough to be shown at once.")
		time.Sleep(time.Second)
		server.Remove(ann, server.Visible(ann.Room)[0].ID)
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if m := server.Visible(ann.Room); len(m) != 1 || m[0].IsLive || m[0].Text != "A text that is long enough to be shown at once." {
			t.Errorf("%+v", m)
		}
		check(t, server)
	})
}

// A room that the bot was removed from can't be reached: the delivery ends at once.
func TestKicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		server.Kick(ann)
		if err := c.Send(t.Context(), channel.OutboundMessage{ChatID: ann.Room, Content: "hello"}); !errors.Is(err, channel.ErrUnreachable) {
			t.Error(err)
		}
	})
}

// A message with the same key is sent once, also by another process.
func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		m := channel.OutboundMessage{ChatID: ann.Room, Content: strings.Repeat("A paragraph.\n\n", 3000), Key: "k"}
		for range 2 {
			if err := c.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			c = botOf(server)
		}
		first := server.Visible(ann.Room)
		m.Content, m.Key = "other", ""
		for range 2 {
			if err := c.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		if all := server.Visible(ann.Room); len(first) < 2 || len(all) != len(first)+2 {
			t.Errorf("%d, %d", len(first), len(all))
		}
		check(t, server, ann.Room)
	})
}

// A room that wants no live messages gets questions when they are asked, and the answer at the end.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		server.SetState(ann, "org.matrix.msc4357.live_messaging", "", map[string]any{"enabled": false})
		s := channeltest.NewStory(t, turnID)
		done := deliver(t.Context(), c, ann.Room, "", s)
		s.Begin()
		s.Tool("bash", `{"command":"ls"}`)
		s.Ask("r1", "Run `rm -r x`?")
		time.Sleep(10 * time.Second)
		if m := server.Visible(ann.Room); len(m) != 1 || !strings.Contains(m[0].Text, "Run `rm -r x`?") || !strings.Contains(m[0].Text, "approve") {
			t.Fatalf("%+v", m)
		}
		s.Answer("r1", event.Deny)
		s.ToolEnd("x", event.PartDenied)
		s.OpenText()
		s.Write("A text that is long enough to be shown at once.")
		time.Sleep(10 * time.Second)
		if m := server.Visible(ann.Room); len(m) != 1 {
			t.Errorf("%+v", m)
		}
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if m := server.Messages(ann.Room); len(m) != 2 || m[1].IsLive || len(m[1].Versions) != 1 || !strings.HasPrefix(m[1].Text, "A text") {
			t.Errorf("%+v", m)
		}
		check(t, server, ann.Room)
	})
}

// A quiet delivery that is interrupted isn't taken for a complete one. The next one delivers the answer once.
func TestQuietInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		ann := server.Direct("@ann:matrix.test", "Ann")
		server.SetState(ann, "org.matrix.msc4357.live_messaging", "", map[string]any{"enabled": false})
		var state channeltest.State
		ctx, cancel := context.WithCancel(t.Context())
		s := channeltest.NewStory(t, turnID)
		done := s.Deliver(ctx, c, ann.Room, "", &state)
		s.Begin()
		cancel()
		s.End(event.Completed)
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		s = channeltest.NewStory(t, turnID)
		done = s.Deliver(t.Context(), botOf(server), ann.Room, "", &state)
		s.Begin()
		s.OpenText()
		s.Write("The answer.")
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if m := server.Messages(ann.Room); len(m) != 1 || m[0].Text != "The answer." {
			t.Errorf("%+v", m)
		}
	})
}
