package wecom

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	fake "github.com/leat-dev/leat/chattest/wecom"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
	"github.com/leat-dev/leat/internal/channel/live"
)

func to(chat, content, replyTo string) channel.OutboundMessage {
	return channel.OutboundMessage{Channel: "wc", ChatID: chat, Content: content, ReplyTo: replyTo}
}

// shown returns the types and texts of the bot's messages.
func shown(b *bench, chat string) string {
	var list []string
	for _, m := range b.server.Visible(chat) {
		text := m.Type + ": " + m.Text
		if m.IsOpen {
			text += " (open)"
		}
		list = append(list, text)
	}
	return strings.Join(list, "|")
}

// An answer to a message is a finished stream. What doesn't fit into it follows, and other messages are not streams.
func TestSend(t *testing.T) {
	test(t, fake.Options{}, func(t *testing.T, b *bench) {
		id := b.server.Say(ann, "hello")
		b.inbox.take()
		if err := b.Send(t.Context(), to("ann", "**Hello**", id)); err != nil {
			t.Fatal(err)
		}
		if err := b.Send(t.Context(), to("ann", strings.Repeat("词", 10000), "")); err != nil {
			t.Fatal(err)
		}
		got := b.server.Visible("ann")
		if len(got) != 3 || got[0].Type != "stream" || got[0].IsOpen || got[0].Text != "**Hello**" || got[1].Text+got[2].Text != strings.Repeat("词", 10000) {
			t.Errorf("%d messages, %+v", len(got), got[0])
		}
		if err := b.Send(t.Context(), to("bob", "hi", "")); !errors.Is(err, channel.ErrUnreachable) {
			t.Errorf("an unknown chat: %v", err)
		}
	})
}

// A message whose frame was not acknowledged is not sent again, unless it is a stream. Outages are waited out.
func TestUnknown(t *testing.T) {
	test(t, fake.Options{}, func(t *testing.T, b *bench) {
		id := b.server.Say(ann, "hello")
		b.inbox.take()
		for _, f := range []fake.Fault{{Before: true}, {After: true}, {Silent: true}, {Code: codeRate}, {Code: codeBusy}} {
			f.Command = commandRespond
			b.server.Fail(f)
		}
		if err := b.Send(t.Context(), to("ann", "answer", id)); err != nil {
			t.Fatal(err)
		}
		b.server.Fail(fake.Fault{Command: commandSend, After: true})
		if err := b.Send(t.Context(), to("ann", "once", "")); !errors.Is(err, channel.ErrUnknownOutcome) {
			t.Error(err)
		}
		if err := b.Send(t.Context(), to("ann", "after the outage", "")); err != nil {
			t.Error(err)
		}
		if got := shown(b, "ann"); got != "stream: answer|markdown: once|markdown: after the outage" {
			t.Error(got)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		// Nothing waits for a connection that never comes: the pipeline delivers with the channel that replaces this one.
		if err := b.Send(t.Context(), to("ann", "never", "")); !errors.Is(err, channel.ErrStopped) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// A growing answer and the tool calls are shown in one stream. What is behind the limit of a message follows at the end.
func TestStream(t *testing.T) {
	test(t, fake.Options{AckDelay: 100 * time.Millisecond}, func(t *testing.T, b *bench) {
		id := b.server.Say(ann, "hello")
		b.inbox.take()
		s, state := channeltest.NewStory(t, "turn"), channeltest.State{}
		done := s.Deliver(t.Context(), b.bot, "ann", id, &state)
		s.Begin()
		s.Tool("bash", `{"command":"ls"}`)
		time.Sleep(5 * time.Second)
		if got := shown(b, "ann"); !strings.Contains(got, "`bash` `ls`") || !strings.HasSuffix(got, "(open)") {
			t.Error(got)
		}
		s.ToolEnd("a.txt", event.PartDone)
		s.OpenText()
		s.Write("There is one file, which has this name.")
		time.Sleep(5 * time.Second)
		if got := shown(b, "ann"); !strings.Contains(got, "stream: There is one file") || !strings.Contains(got, "a.txt") {
			t.Error(got)
		}
		s.Write(strings.Repeat(" More words.", 3000))
		time.Sleep(5 * time.Second)
		s.Ask("r1", "Remove x?")
		time.Sleep(5 * time.Second)
		s.Answer("r1", event.Deny)
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		got := b.server.Visible("ann")
		if len(got) != 3 || got[0].IsOpen || strings.Contains(got[0].Text, "bash") || !strings.Contains(got[1].Text, "Remove x?") ||
			strings.Count(got[0].Text+got[2].Text, "More") != 3000 {
			t.Errorf("%d messages", len(got))
		}
	})
}

// Without streaming, a person sees the answer with its files when it is complete.
func TestQuiet(t *testing.T) {
	test(t, fake.Options{}, func(t *testing.T, b *bench) {
		b.options.Streaming = false
		id := b.server.Say(ann, "hello")
		b.inbox.take()
		s, state := channeltest.NewStory(t, "turn"), channeltest.State{}
		s.Files = map[string][]byte{"/files/1": []byte("content")}
		done := s.Deliver(t.Context(), b.bot, "ann", id, &state)
		s.Begin()
		s.Tool("bash", `{"command":"ls"}`)
		s.OpenText()
		s.Write("An answer that is long enough to be shown.")
		time.Sleep(time.Minute)
		if got := shown(b, "ann"); got != "" {
			t.Error(got)
		}
		s.Send(event.Event{Type: event.PartStart, Message: "answer", Part: "file", Body: &event.Body{
			Kind: event.KindMedia, Media: &event.Media{URL: "/files/1", MIME: "text/plain", Name: "a.txt"},
		}})
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := shown(b, "ann"); got != "stream: An answer that is long enough to be shown.|file: " {
			t.Error(got)
		}
	})
}

// A stream is finished before the platform ends it. The rest of the answer follows at the end of the turn.
func TestExpiry(t *testing.T) {
	for name, c := range map[string]struct{ first, second, want string }{
		"at a block": {"The first paragraph of the answer.", "\n\nThe second one.", "stream: The first paragraph of the answer.|markdown: The second one."},
		"in a block": {"The first half of", " the answer.", "stream: The first half of|markdown: The first half of the answer."},
		"no text":    {"", "The answer.", "stream: ⏹|markdown: The answer."},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, fake.Options{}, func(t *testing.T, b *bench) {
				id := b.server.Say(ann, "hello")
				b.inbox.take()
				s, state := channeltest.NewStory(t, "turn"), channeltest.State{}
				done := s.Deliver(t.Context(), b.bot, "ann", id, &state)
				s.Begin()
				s.OpenText()
				if c.first != "" {
					s.Write(c.first)
				}
				time.Sleep(time.Minute)
				s.Send(event.Event{Type: event.PartStart, Message: "answer", Part: "tool", Body: &event.Body{Kind: event.KindTool, Name: "bash", State: event.PartRunning}})
				time.Sleep(10 * time.Minute)
				s.Write(c.second)
				time.Sleep(time.Minute)
				s.End(event.Completed)
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if got := shown(b, "ann"); got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
			})
		})
	}
}

// Only the first message of an answer continues the text that its stream shows. A later one that begins with the same words is whole.
func TestRemainder(t *testing.T) {
	test(t, fake.Options{}, func(t *testing.T, b *bench) {
		b.server.Say(ann, "hello")
		ch := b.newChat("ann", "")
		ch.stream = &stream{link: &b.link, isFinished: true, frozen: "Yes."}
		for _, text := range []string{"Yes.\n\nThe first part.", "Yes.\n\nThe second part."} {
			if _, err := ch.Post(t.Context(), live.Post{Kind: live.Answer, Text: markup.Message{Text: text}}); err != nil {
				t.Fatal(err)
			}
		}
		if got := shown(b, "ann"); got != "markdown: The first part.|markdown: Yes.\n\nThe second part." {
			t.Errorf("%q", got)
		}
	})
}

// The first update of a stream is repeated if it gets no acknowledgement. There is one message at the end, and not a second one with the
// whole answer.
func TestLostUpdate(t *testing.T) {
	test(t, fake.Options{}, func(t *testing.T, b *bench) {
		id := b.server.Say(ann, "hello")
		b.inbox.take()
		b.server.Fail(fake.Fault{Command: commandRespond, After: true})
		s, state := channeltest.NewStory(t, "turn"), channeltest.State{}
		done := s.Deliver(t.Context(), b.bot, "ann", id, &state)
		s.Begin()
		s.OpenText()
		s.Write("An answer that is long enough to be shown.")
		time.Sleep(10 * time.Second)
		s.Write(" It grows.")
		s.End(event.Completed)
		if err := <-done; err != nil || shown(b, "ann") != "stream: An answer that is long enough to be shown. It grows." {
			t.Errorf("%v, %s", err, shown(b, "ann"))
		}
	})
}

// A stream belongs to one answer. A second one to the same message, such as that of a regenerated turn, doesn't change it.
func TestAnsweredTwice(t *testing.T) {
	test(t, fake.Options{}, func(t *testing.T, b *bench) {
		id := b.server.Say(ann, "hello")
		b.inbox.take()
		for _, text := range []string{"first", "second"} {
			if err := b.Send(t.Context(), to("ann", text, id)); err != nil {
				t.Fatal(err)
			}
		}
		if got := shown(b, "ann"); got != "stream: first|markdown: second" {
			t.Error(got)
		}
	})
}

// An answer without an acknowledgement is sent again, also after the time in which its stream is updated. If the platform has ended the
// stream meanwhile, the answer was possibly delivered, and no second one is sent.
func TestUnsure(t *testing.T) {
	for name, c := range map[string]struct {
		outage time.Duration
		err    error
	}{"short": {9 * time.Second, nil}, "long": {time.Minute, channel.ErrUnknownOutcome}} {
		t.Run(name, func(t *testing.T) {
			test(t, fake.Options{}, func(t *testing.T, b *bench) {
				b.options.Streaming = false
				id := b.server.Say(ann, "hello")
				b.inbox.take()
				s, state := channeltest.NewStory(t, "turn"), channeltest.State{}
				done := s.Deliver(t.Context(), b.bot, "ann", id, &state)
				s.Begin()
				s.OpenText()
				s.Write("The answer.")
				time.Sleep(streamLife - 5*time.Second)
				b.server.Fail(fake.Fault{Command: commandRespond, Silent: true})
				b.server.Fail(fake.Fault{Command: commandRespond, Limit: c.outage})
				s.End(event.Completed)
				if err := <-done; !errors.Is(err, c.err) || shown(b, "ann") != "stream: The answer." {
					t.Errorf("%v, %s", err, shown(b, "ann"))
				}
			})
		})
	}
}

// Files are uploaded in pieces, and sent as images or files.
func TestSendFile(t *testing.T) {
	test(t, fake.Options{}, func(t *testing.T, b *bench) {
		b.server.Say(ann, "hello")
		ch := b.newChat("ann", "")
		large := bytes.Repeat([]byte("0123456789"), 200_000)
		for _, f := range []live.File{
			{Name: "a.png", Type: "image/png", Content: []byte("picture")},
			{Name: "b.bin", Type: "application/octet-stream", Content: large},
			{Name: "c.txt", Type: "text/plain", Content: []byte("x")},
		} {
			if _, err := ch.SendFile(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		got := b.server.Visible("ann")
		if len(got) != 3 || got[0].Type != "image" || got[1].File.Name != "b.bin" || !bytes.Equal(got[1].File.Content, large) || !strings.Contains(got[2].Text, "c.txt") {
			t.Errorf("%s", shown(b, "ann"))
		}
		b.server.Fail(fake.Fault{Command: commandSend, Code: codeRate})
		known := live.File{Name: "e", Content: large, Key: "e"}
		if _, err := ch.SendFile(t.Context(), known); !errors.As(err, new(*live.Penalty)) {
			t.Error(err)
		}
		before := len(b.server.Requests())
		if _, err := ch.SendFile(t.Context(), known); err != nil || len(b.server.Requests()) != before+1 {
			t.Errorf("%v, %d frames for a file that was uploaded", err, len(b.server.Requests())-before)
		}
		b.server.Fail(fake.Fault{Command: commandFinish, Silent: true})
		if _, err := ch.SendFile(t.Context(), live.File{Name: "d", Content: large}); !errors.Is(err, live.ErrUnsent) {
			t.Error(err)
		}
	})
}
