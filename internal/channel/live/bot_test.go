package live_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
	"github.com/leat-dev/leat/internal/channel/live"
)

// When the chats of a bot together are at its limit, live updates wait, so that answers don't wait for them.
func TestAnswersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const chats = 200 // at 30 requests a second for all
		s := &server{rules: live.Rules{Format: markup.Plain, MaxText: 100_000, InPlace: true, TypingLife: 5 * time.Second}, chats: map[string][]*message{}}
		ch := s.open(34 * time.Millisecond)
		var running []*channeltest.Story
		var ended []<-chan error
		for i := range chats {
			chat := fmt.Sprint("chat", i)
			story := channeltest.NewStory(t, chat)
			ended = append(ended, story.Deliver(t.Context(), ch, chat, s.Say(chat), &channeltest.State{}))
			story.Begin()
			story.OpenText()
			running = append(running, story)
		}
		var longest time.Duration
		for i, story := range running {
			for _, other := range running[i:] {
				other.Write("Some more words of the answer. ")
			}
			time.Sleep(200 * time.Millisecond)
			began := time.Now()
			story.End(event.Completed)
			if err := <-ended[i]; err != nil {
				t.Fatal(err)
			}
			longest = max(longest, time.Since(began))
		}
		// The gap of the chat itself is a second.
		if longest > 2500*time.Millisecond {
			t.Errorf("an answer came %v after the end of its turn", longest)
		}
		t.Logf("%d requests, at most %v", s.Requests(), longest)
	})
}

// quietBot shows nothing of a running turn.
type quietBot struct{ *bot }

func (b quietBot) SendStream(ctx context.Context, chat string, metadata channel.StreamMetadata, events <-chan channel.StreamEvent) error {
	at, ch := b.place(chat)
	return b.live.Deliver(ctx, at, live.Quiet(ch.(*room)), metadata, events)
}

// In a quiet chat only questions appear before the answer. A delivery that was interrupted continues.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{rules: live.Rules{Format: markup.Plain, MaxText: 500, InPlace: true, TypingLife: 5 * time.Second}, chats: map[string][]*message{}}
		ch := quietBot{s.Open().(*bot)}
		var state channeltest.State
		ctx, kill := context.WithCancel(t.Context())
		play := func(story *channeltest.Story) {
			story.Begin()
			story.Tool("bash", `{"command":"ls"}`)
			time.Sleep(time.Minute)
			story.ToolEnd("x", event.PartDone)
			story.OpenText()
			story.Write("A text that is long enough to be shown at once.")
			time.Sleep(time.Minute)
			story.Ask("r1", "Really?")
			time.Sleep(time.Minute)
		}
		story := channeltest.NewStory(t, "turn")
		done := story.Deliver(ctx, ch, "a", "", &state)
		play(story)
		if shown := s.Visible("a"); len(shown) != 1 || !strings.Contains(shown[0], "Really?") {
			t.Errorf("before the end: %q", shown)
		}
		kill()
		story.End(event.Completed)
		if err := <-done; err == nil {
			t.Error("a delivery that was interrupted counts as complete")
		}
		story = channeltest.NewStory(t, "turn")
		done = story.Deliver(t.Context(), ch, "a", "", &state)
		play(story)
		story.Answer("r1", event.Deny)
		story.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if shown := s.Visible("a"); len(shown) != 2 || shown[1] != "A text that is long enough to be shown at once." {
			t.Errorf("at the end: %q", shown)
		}
	})
}

// undecidedChat refuses every form of a message.
type undecidedChat struct{ *room }

func (undecidedChat) Post(context.Context, live.Post) (string, error) { return "", live.ErrRepeat }

// A chat that always wants another form doesn't keep a delivery busy forever.
func TestFormsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := live.NewBot("bot", live.Rules{Format: markup.Plain, MaxText: 500}, time.Millisecond, slog.New(slog.DiscardHandler))
		err := b.Send(t.Context(), live.Place{ID: "a"}, undecidedChat{}, channel.OutboundMessage{ChatID: "a", Content: "x"})
		if !errors.Is(err, live.ErrRepeat) {
			t.Error(err)
		}
	})
}
