package dendrite

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	leatevent "github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
	"github.com/leat-dev/leat/internal/channel/matrix"
)

// inbox collects what the bot receives.
type inbox chan channel.InboundMessage

func (b inbox) Receive(_ context.Context, m channel.InboundMessage) error {
	b <- m
	return nil
}

// run runs a bot until stop is called.
func run(t *testing.T, server, token string) (bot channel.StreamChannel, received inbox, stop func()) {
	t.Helper()
	o := matrix.Options{Name: "mx", Server: server, Token: token, Streaming: true, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	bot = matrix.New(o).(channel.StreamChannel)
	received = make(inbox, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- bot.Run(ctx, received) }()
	return bot, received, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func (b inbox) next(t *testing.T) channel.InboundMessage {
	t.Helper()
	select {
	case m := <-b:
		return m
	case <-time.After(time.Minute):
		t.Fatal("no message in a minute")
		return channel.InboundMessage{}
	}
}

// A person talks to the bot on a real homeserver.
func TestChannel(t *testing.T) {
	server := start(t)
	account, token := register(t, server, "leat")
	ann := newPerson(t, server, "ann")
	bot, received, stop := run(t, server, token)
	room := ann.invite(t, account)

	t.Run("a message is answered", func(t *testing.T) {
		ann.say(t, room, "hello")
		m := received.next(t)
		if m.Content != "hello" || m.SenderID != ann.UserID.String() || m.SenderName != "ann" ||
			m.ChatID != room.String() || m.Hints.Group || time.Since(m.Timestamp) > time.Hour {
			t.Errorf("%+v", m)
		}
		for range 2 { // the second time takes no effect
			if err := bot.Send(t.Context(), channel.OutboundMessage{ChatID: m.ChatID, Content: "Hello, **Ann**!", ReplyTo: m.ID, Key: "answer"}); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the answer arrives", func() bool { return len(ann.seen(room, account)) > 0 })
		time.Sleep(time.Second)
		if list := ann.seen(room, account); len(list) != 1 || list[0].text != "Hello, **Ann**!" || list[0].html != "<p>Hello, <strong>Ann</strong>!</p>" {
			t.Errorf("%+v", list)
		}
	})

	t.Run("an answer grows, and its status card disappears", func(t *testing.T) { stream(t, ann, bot, account, received) })

	t.Run("a room without live messages", func(t *testing.T) {
		quiet := ann.invite(t, account)
		kind := event.Type{Type: "org.matrix.msc4357.live_messaging", Class: event.StateEventType}
		if _, err := ann.SendStateEvent(t.Context(), quiet, kind, "", map[string]any{"enabled": false}); err != nil {
			t.Fatal(err)
		}
		s := channeltest.NewStory(t, "quiet")
		done := s.Deliver(t.Context(), bot, quiet.String(), "", &channeltest.State{})
		s.Begin()
		s.OpenText()
		s.Write("A text that is long enough to be shown at once.")
		time.Sleep(5 * time.Second)
		if list := ann.seen(quiet, account); len(list) != 0 {
			t.Errorf("%+v", list)
		}
		s.End(leatevent.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		eventually(t, "the answer arrives", func() bool { return len(ann.seen(quiet, account)) == 1 })
		if m := ann.seen(quiet, account)[0]; m.isLive || len(m.edits) > 0 {
			t.Errorf("%+v", m)
		}
	})

	t.Run("the largest messages fit, also as edits", func(t *testing.T) {
		large := ann.invite(t, account)
		s := channeltest.NewStory(t, "large")
		done := s.Deliver(t.Context(), bot, large.String(), "", &channeltest.State{})
		s.Begin()
		s.OpenText()
		const line = "A **word**, <tags> & \"quotes\", 日本語 and 👍🏽.\n\n"
		s.Write(strings.Repeat(line, 600))
		time.Sleep(8 * time.Second)
		s.End(leatevent.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		lines := func() (n int) {
			for _, m := range ann.seen(large, account) {
				n += strings.Count(m.text, "word")
			}
			return n
		}
		eventually(t, "all parts arrive", func() bool { return lines() == 600 })
		if list := ann.seen(large, account); len(list) < 2 || list[0].html == "" {
			t.Errorf("%d messages", len(list))
		}
	})

	t.Run("files", func(t *testing.T) { files(t, ann, bot, account, received, room) })

	t.Run("a thread", func(t *testing.T) {
		root := ann.say(t, room, "the root")
		received.next(t)
		content := &event.MessageEventContent{MsgType: event.MsgText, Body: "aside", RelatesTo: (&event.RelatesTo{}).SetThread(root, root)}
		if _, err := ann.SendMessageEvent(t.Context(), room, event.EventMessage, content); err != nil {
			t.Fatal(err)
		}
		m := received.next(t)
		if m.ChatID != room.String()+"/"+root.String() {
			t.Errorf("%+v", m)
		}
		if err := bot.Send(t.Context(), channel.OutboundMessage{ChatID: m.ChatID, Content: "In the thread.", ReplyTo: m.ID, Key: "thread"}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the answer is in the thread", func() bool {
			list := ann.seen(room, account)
			last := list[len(list)-1]
			return last.text == "In the thread." && last.thread == root
		})
	})

	t.Run("a restart continues where the bot was", func(t *testing.T) {
		stop()
		for _, text := range []string{"one", "two", "three"} {
			ann.say(t, room, text)
		}
		_, received, stop := run(t, server, token)
		defer stop()
		for _, want := range []string{"one", "two", "three"} {
			if m := received.next(t); m.Content != want {
				t.Errorf("%q, want %q", m.Content, want)
			}
		}
	})

	t.Run("a refused token ends the bot", func(t *testing.T) {
		wrong := matrix.New(matrix.Options{Name: "mx", Server: server, Token: "wrong", Log: slog.New(slog.DiscardHandler)})
		if err := wrong.Run(t.Context(), make(inbox)); err == nil || !strings.Contains(err.Error(), "M_UNKNOWN_TOKEN") {
			t.Error(err)
		}
	})
}

// stream delivers a turn with a tool call, and checks what a person sees and can read afterwards.
func stream(t *testing.T, ann *person, bot channel.StreamChannel, account string, received inbox) {
	room := ann.invite(t, account)
	ann.say(t, room, "What is in the folder?")
	m := received.next(t)
	s := channeltest.NewStory(t, "stream")
	done := s.Deliver(t.Context(), bot, m.ChatID, m.ID, &channeltest.State{})
	s.Begin()
	s.Tool("bash", `{"command":"ls secret-folder"}`)
	time.Sleep(3 * time.Second)
	s.ToolEnd("a.txt", leatevent.PartDone)
	s.OpenText()
	for range 20 {
		s.Write("A sentence of the answer. ")
		time.Sleep(500 * time.Millisecond)
	}
	list := ann.seen(room, account)
	if len(list) != 2 {
		t.Fatalf("%d messages", len(list))
	}
	card, text := list[0], list[1]
	if card.kind != event.MsgNotice || !strings.Contains(card.text, "✅ `bash` `ls secret-folder`") || len(card.edits) == 0 {
		t.Errorf("the card: %+v", card)
	}
	if !text.isLive || len(text.edits) < 2 || !strings.HasPrefix(text.text, "A sentence of the answer.") {
		t.Errorf("the growing text: %+v", text)
	}
	s.End(leatevent.Completed)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(strings.Repeat("A sentence of the answer. ", 20))
	eventually(t, "the answer is complete, and the card is gone", func() bool {
		list := ann.seen(room, account)
		return len(list) == 2 && list[0].removed && list[1].text == want && !list[1].isLive
	})
	if id := ann.seen(room, account)[1].id; id != text.id {
		t.Errorf("the answer is another message than the growing text: %s", id)
	}
	history, err := ann.Messages(t.Context(), room, "", "", mautrix.DirectionBackward, nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range history.Chunk {
		if strings.Contains(string(e.Content.VeryRaw), "secret-folder") {
			t.Errorf("a part of the card can be read: %s", e.Content.VeryRaw)
		}
	}
}

// files sends a file in both directions.
func files(t *testing.T, ann *person, bot channel.StreamChannel, account string, received inbox, room id.RoomID) {
	stored, err := ann.UploadBytesWithName(t.Context(), []byte("a,b\n"), "text/csv", "table.csv")
	if err != nil {
		t.Fatal(err)
	}
	_, err = ann.SendMessageEvent(t.Context(), room, event.EventMessage, &event.MessageEventContent{
		MsgType: event.MsgFile, Body: "table.csv", URL: stored.ContentURI.CUString(), Info: &event.FileInfo{MimeType: "text/csv", Size: 4},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := received.next(t)
	if len(m.Media) != 1 || m.Media[0].Name != "table.csv" || m.Media[0].Type != "text/csv" || m.Content != "" {
		t.Fatalf("%+v", m)
	}
	r, err := bot.(channel.MediaChannel).FetchMedia(t.Context(), m.Media[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); err != nil || string(b) != "a,b\n" {
		t.Errorf("%q, %v", b, err)
	}
	s := channeltest.NewStory(t, "files")
	s.Files = map[string][]byte{"/files/1": []byte("picture"), "/files/2": make([]byte, 11<<20)}
	done := s.Deliver(t.Context(), bot, m.ChatID, m.ID, &channeltest.State{})
	s.Begin()
	s.OpenText()
	s.Write("Here it is.")
	s.Show(leatevent.Media{URL: "/files/1", MIME: "image/png", Name: "dot.png"})
	s.Show(leatevent.Media{URL: "/files/2", Name: "large.bin"}) // beyond the limit of this homeserver
	s.End(leatevent.Completed)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var list []*message
	eventually(t, "text, picture and name arrive", func() bool {
		list = ann.seen(room, account)
		return len(list) > 2 && strings.Contains(list[len(list)-1].text, "large.bin")
	})
	picture := list[len(list)-2]
	address, err := picture.file.Parse()
	if err != nil || picture.kind != event.MsgImage {
		t.Fatalf("%+v, %v", picture, err)
	}
	if b, err := ann.DownloadBytes(t.Context(), address); err != nil || string(b) != "picture" {
		t.Errorf("%q, %v", b, err)
	}
}
