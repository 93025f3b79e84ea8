package slack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/slack"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
	"github.com/leat-dev/leat/internal/channel/live"
)

// threads are chats that have streams.
var threads = []string{"D8/" + began, "C1/" + began}

// each runs a test in each of the threads.
func each(t *testing.T, o fake.Options, test func(t *testing.T, b *bench, c *bot, chat string)) {
	for _, chat := range threads {
		t.Run(chat[:2], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(o)
				test(t, b, b.Open().(*bot), chat)
				check(t, b.Server)
			})
		})
	}
}

// begin starts a delivery.
func begin(t *testing.T, b *bench, c *bot, chat string) (*channeltest.Story, <-chan error) {
	s := channeltest.NewStory(t, "turn")
	done := s.Deliver(t.Context(), c, chat, b.Say(chat), &channeltest.State{})
	s.Begin()
	return s, done
}

// finish waits for the end of a delivery and returns the messages of the bot.
func finish(t *testing.T, b *bench, chat string, done <-chan error) []fake.Message {
	t.Helper()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return b.messages(chat)
}

// methods returns how often each method was called.
func methods(server *fake.Server) map[string]int {
	n := map[string]int{}
	for _, r := range server.Requests() {
		n[r.Method]++
	}
	return n
}

// In a thread the growing text is a stream, which only grows, and which becomes the answer without an edit.
func TestStream(t *testing.T) {
	each(t, fake.Options{Gap: time.Second, Tiers: true}, func(t *testing.T, b *bench, c *bot, chat string) {
		at, _ := parsePlace(chat)
		s, done := begin(t, b, c, chat)
		time.Sleep(time.Second)
		if got := b.Status(at.channel, at.thread); got != "is thinking…" {
			t.Errorf("status %q", got)
		}
		s.OpenText()
		const text = "Some **bold words** and `code`:\n\n```go\nfmt.Println(1)\nfmt.Println(2)\n```\n\n" +
			"- one\n- two, <b> & @here\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end. "
		for from := 0; from < len(text); from += 7 {
			s.Write(text[from:min(from+7, len(text))])
			time.Sleep(300 * time.Millisecond)
		}
		m := b.messages(chat)
		if len(m) != 1 || !m[0].Streaming || len(m[0].Versions) < 6 || b.Status(at.channel, at.thread) != "" {
			t.Errorf("%+v", m)
		}
		s.End(event.Completed)
		m = finish(t, b, chat, done)
		rendered, _ := markup.Parse(text).Next(0, markup.SlackMarkdown, maxText)
		if len(m) != 1 || m[0].Streaming || m[0].Text != rendered.Text || m[0].Metadata.Payload["key"] != "turn/0" {
			t.Errorf("%q, want %q", m[0].Text, rendered.Text)
		}
		for i, v := range m[0].Versions[1:] {
			if !strings.HasPrefix(v, m[0].Versions[i]) {
				t.Errorf("%q after %q", v, m[0].Versions[i])
			}
		}
		if n := methods(b.Server); n["chat.update"] != 0 || n["chat.postMessage"] != 0 || n["chat.startStream"] != 1 || n["chat.stopStream"] != 1 {
			t.Errorf("%v", n)
		}
	})
}

// A stream ends after five minutes. Its message is edited from then on.
func TestStreamExpires(t *testing.T) {
	each(t, fake.Options{Gap: time.Second}, func(t *testing.T, b *bench, c *bot, chat string) {
		s, done := begin(t, b, c, chat)
		s.OpenText()
		for i := range 200 {
			s.Write(fmt.Sprintf("Sentence %d. ", i))
			time.Sleep(2 * time.Second)
		}
		if m := b.messages(chat); len(m) != 1 || !strings.Contains(m[0].Text, "Sentence 195.") || !strings.HasSuffix(m[0].Text, cursor) {
			t.Errorf("%+v", m)
		}
		s.End(event.Completed)
		if m := finish(t, b, chat, done); len(m) != 1 || !strings.HasSuffix(m[0].Text, "Sentence 199.") {
			t.Errorf("%+v", m)
		}
	})
}

// Tool calls are the tasks of a stream; it is deleted at the end.
func TestTasks(t *testing.T) {
	each(t, fake.Options{Gap: time.Second}, func(t *testing.T, b *bench, c *bot, chat string) {
		s, done := begin(t, b, c, chat)
		s.Tool("bash", `{"command":"ls"}`)
		time.Sleep(3 * time.Second)
		if m := b.messages(chat); len(m) != 1 || !m[0].Streaming || m[0].Tasks[0] != (fake.Task{ID: "task-0", Title: "bash: ls", Status: "in_progress"}) {
			t.Errorf("%+v", m)
		}
		s.ToolEnd("a.txt", event.PartDone)
		time.Sleep(20 * time.Second)
		if m := b.messages(chat); len(m) != 1 || m[0].Tasks[0].Status != "complete" || m[0].Tasks[0].Output != "a.txt" {
			t.Errorf("%+v", m)
		}
		if n := methods(b.Server); n["chat.appendStream"] != 1 {
			t.Errorf("%v", n)
		}
		time.Sleep(5 * time.Minute)
		s.Tool("read", `{"path":"a.txt"}`)
		time.Sleep(3 * time.Second)
		if m := b.messages(chat); len(m) != 1 || m[0].Streaming || !strings.Contains(m[0].Text, "`read` `a.txt`") || !strings.Contains(m[0].Text, "⏱ 5m") {
			t.Errorf("after the end of the stream: %+v", m)
		}
		s.OpenText()
		s.Write("One file.")
		s.End(event.Completed)
		if m := finish(t, b, chat, done); len(m) != 1 || m[0].Text != "One file." {
			t.Errorf("%+v", m)
		}
	})
}

// A request without an answer is made again only after a look whether it took effect.
func TestLostRequests(t *testing.T) {
	for _, method := range []string{"chat.startStream", "chat.appendStream", "chat.stopStream"} {
		for _, landed := range []bool{true, false} {
			each(t, fake.Options{Gap: time.Second}, func(t *testing.T, b *bench, c *bot, chat string) {
				b.Fail(fake.Fault{Method: method, After: landed, Before: !landed})
				s, done := begin(t, b, c, chat)
				s.OpenText()
				for range 10 {
					s.Write("A sentence of the answer. ")
					time.Sleep(time.Second)
				}
				s.End(event.Completed)
				if m := finish(t, b, chat, done); len(m) != 1 || m[0].Text != strings.TrimSpace(strings.Repeat("A sentence of the answer. ", 10)) {
					t.Errorf("%s, %v: %+v", method, landed, m)
				}
			})
		}
	}
}

// The same holds for messages; without the scope to look, the outcome is unknown.
func TestLostMessage(t *testing.T) {
	for _, landed := range []bool{true, false} {
		for _, noHistory := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				server := newServer(fake.Options{Gap: time.Second, NoHistory: noHistory})
				server.Say(ann, "hello")
				server.Fail(fake.Fault{Method: "chat.postMessage", After: landed, Before: !landed})
				err := newBot(server).Send(t.Context(), channel.OutboundMessage{ChatID: "D7", Content: "Hi **Ann**", Key: "k"})
				if noHistory != errors.Is(err, channel.ErrUnknownOutcome) || !noHistory && err != nil {
					t.Errorf("landed %v, no history %v: %v", landed, noHistory, err)
				}
				m := server.Visible("D7")
				if want := 1; len(m) != want && (!noHistory || landed) {
					t.Errorf("landed %v, no history %v: %+v", landed, noHistory, m)
				}
				for _, m := range m {
					if m.Text != "Hi **Ann**" || m.Unfurls || m.Metadata.Payload["key"] != "k/0" {
						t.Errorf("%+v", m)
					}
				}
				check(t, server)
			})
		}
	}
}

// A person stops the stream: the turn is stopped, and the message gets the rest of what was written.
func TestStoppedByPerson(t *testing.T) {
	each(t, fake.Options{Gap: time.Second}, func(t *testing.T, b *bench, c *bot, chat string) {
		var received channel.Inbox = make(inbox, 5)
		c.inbox.Store(&received)
		s, done := begin(t, b, c, chat)
		s.OpenText()
		s.Write("A sentence of the answer, which is long enough. ")
		time.Sleep(3 * time.Second)
		m := b.messages(chat)[0]
		b.Stop(m.Channel, m.TS)
		s.Write("Another sentence. ")
		time.Sleep(time.Second)
		s.Write("One more. ")
		time.Sleep(time.Second)
		stop := <-received.(inbox)
		if stop.Hints.Command != "stop" || stop.SenderID != "U7" || stop.ChatID != chat {
			t.Errorf("%+v", stop)
		}
		s.End(event.Cancelled)
		if m := finish(t, b, chat, done); len(m) != 1 || !strings.Contains(m[0].Text, "One more.") || !strings.Contains(m[0].Text, "Stopped") {
			t.Errorf("%+v", m)
		}
	})
}

// A question has a button for each choice. When it is answered, the buttons are removed and the text stays.
func TestQuestion(t *testing.T) {
	each(t, fake.Options{Gap: time.Second}, func(t *testing.T, b *bench, c *bot, chat string) {
		received := run(t, c)
		for len(received) > 0 {
			<-received
		}
		s, done := begin(t, b, c, chat)
		next(t, received)
		s.Ask("r1", "Run `rm -r x`?")
		time.Sleep(5 * time.Second)
		m := b.messages(chat)
		if len(m) != 1 || len(m[0].Buttons) != 2 || m[0].Buttons[0].Text != "approve" || !strings.HasSuffix(m[0].Text, "Run `rm -r x`?") {
			t.Fatalf("%+v", m)
		}
		at, _ := parsePlace(chat)
		b.Press(fake.Writer{Channel: at.channel, User: "U7", Name: "Ann"}, m[0].TS, "deny")
		press := next(t, received)
		if press.ChatID != chat || press.Hints.Command != "answer" || !strings.HasSuffix(press.Hints.Args, " 1") || press.SenderName != "Ann" ||
			!press.Hints.ForceSync {
			t.Errorf("%+v", press)
		}
		s.Answer("r1", event.Deny)
		s.OpenText()
		s.Write("Then not.")
		s.End(event.Completed)
		if m = finish(t, b, chat, done); len(m) != 2 || len(m[0].Buttons) != 0 || m[1].Text != "Then not." {
			t.Errorf("%+v", m)
		}
	})
}

// A message of the stream that a person deletes is replaced by another.
func TestDeletedStream(t *testing.T) {
	each(t, fake.Options{Gap: time.Second}, func(t *testing.T, b *bench, c *bot, chat string) {
		s, done := begin(t, b, c, chat)
		s.OpenText()
		for i := range 20 {
			s.Write("A sentence of the answer. ")
			time.Sleep(time.Second)
			if i == 5 || i == 19 {
				b.Remove(chat, 0)
			}
		}
		s.End(event.Completed)
		if m := finish(t, b, chat, done); len(m) != 1 || strings.Count(m[0].Text, "sentence") != 20 {
			t.Errorf("%+v", m)
		}
	})
}

// Files follow the text. None is sent twice, also if a request gets no answer.
func TestFiles(t *testing.T) {
	for _, method := range []string{"", "files.getUploadURLExternal", "upload", "files.completeUploadExternal"} {
		for _, landed := range []bool{true, false} {
			each(t, fake.Options{Gap: time.Second}, func(t *testing.T, b *bench, c *bot, chat string) {
				b.Fail(fake.Fault{Method: method, After: landed, Before: !landed})
				s, done := begin(t, b, c, chat)
				s.Files = map[string][]byte{"/files/1": []byte("a,b\n")}
				s.OpenText()
				s.Write("Here it is.")
				s.Show(event.Media{URL: "/files/1", MIME: "text/csv", Name: "table.csv"})
				s.Show(event.Media{URL: "https://example.com/x.pdf", MIME: "application/pdf", Name: "x.pdf"})
				s.End(event.Completed)
				m := finish(t, b, chat, done)
				if len(m) != 3 || len(m[1].Files) != 1 || string(m[1].Files[0].Content) != "a,b\n" || m[1].Files[0].Name != "table.csv" ||
					!strings.HasSuffix(m[2].Text, "x.pdf") {
					t.Errorf("%s, %v: %+v", method, landed, m)
				}
			})
		}
	}
}

// If the limit of new streams is reached, answers are messages that are edited.
func TestNoStreamLeft(t *testing.T) {
	each(t, fake.Options{Gap: time.Second, Tiers: true}, func(t *testing.T, b *bench, c *bot, chat string) {
		for i := range 15 {
			s := channeltest.NewStory(t, fmt.Sprint("turn", i))
			done := s.Deliver(t.Context(), c, chat, b.Say(chat), &channeltest.State{})
			s.Begin()
			s.OpenText()
			s.Write("An answer that is long enough to be shown. ")
			time.Sleep(time.Second)
			s.End(event.Completed)
			if m := finish(t, b, chat, done); len(m) != i+1 {
				t.Fatalf("%+v", m)
			}
		}
		if n := methods(b.Server); n["chat.startStream"] < 10 || n["chat.startStream"] > 13 || n["chat.startStream"]+n["chat.postMessage"] != 15 {
			t.Errorf("%v", n)
		}
		for _, r := range b.Server.Requests() {
			if r.Error != "" {
				t.Errorf("%s: %s", r.Method, r.Error)
			}
		}
	})
}

// A channel without the bot can't be reached.
func TestUnreachable(t *testing.T) {
	each(t, fake.Options{}, func(t *testing.T, b *bench, c *bot, chat string) {
		at, _ := parsePlace(chat)
		b.Kick(at.channel, true)
		if err := c.Send(t.Context(), channel.OutboundMessage{ChatID: chat, Content: "Hello"}); !errors.Is(err, channel.ErrUnreachable) {
			t.Error(err)
		}
	})
}

// The texts of streams that grow in any steps hardly ever have to be completed by an edit.
func TestGrowth(t *testing.T) {
	samples := []string{
		"Some **bold words**, *emphasis*, `code` and ~~none~~. A [link](https://example.com) too, and a snake_case_name * 2.\n\nAnother paragraph.",
		"# Title\n\n1. one\n2. two\n   - nested\n   - items\n\n> a quote\n> of two lines\n\n" +
			"```go\nfunc main() {\n\tprintln(\"x\")\n}\n```\n\nText after code.",
		"| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | **4** |\n\nAfter the table <b> & more @here <!channel>.",
		"Unclosed **bold and `code and ```fence\nx\n\nNext.\n\n~~~\ntilde\n~~~\n",
		strings.Repeat("漢字の文章です。絵文字👩‍👩‍👧‍👦も。", 5),
	}
	random := rand.New(rand.NewPCG(1, 2))
	steps, refused := 0, 0
	for _, text := range samples {
		for range 60 {
			s, doc := stream{}, markup.Parse("")
			isFirst := true
			for to := 0; to < len(text); {
				to = min(len(text), to+1+random.IntN(20))
				doc = doc.Grow(markup.Heal(text[:to]))
				m, _ := doc.Next(0, rules.Format, rules.MaxText)
				if m.Text == "" {
					continue
				}
				if isFirst {
					s.last, s.text, isFirst = m.Text, firstPart(m.Text), false
					continue
				}
				steps++
				rest, ok := s.growth(m.Text)
				if s.text += rest; !ok {
					refused++
				}
			}
			final, _ := markup.Parse(text).Next(0, rules.Format, rules.MaxText)
			if !strings.HasPrefix(final.Text, s.text) {
				refused++
			}
		}
	}
	t.Logf("%d of %d steps refused", refused, steps)
	if refused > steps/500 { // those with markers that are never closed
		t.Errorf("%d of %d steps refused", refused, steps)
	}
}

func TestCard(t *testing.T) {
	status := &live.Status{Iteration: 2, Earlier: 3, Tools: []live.Tool{
		{Icon: "🚫", Name: "bash", Output: strings.Repeat("x", 1000)},
		{Icon: "⏳", Name: "read", Summary: "a", Output: "partial"},
	}}
	chunks := cardChunks(status)
	if len(chunks) != 3 || !strings.Contains(chunks[0].Title, "Iteration 2") || chunks[1].ID != "task-3" || chunks[1].Status != "error" ||
		len([]rune(chunks[1].Output)) != maxOutput ||
		chunks[2] != (chunk{Type: "task_update", ID: "task-4", Title: "read: a", Status: "in_progress"}) {
		t.Errorf("%+v", chunks)
	}
}
