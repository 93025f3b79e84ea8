package slack

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/slack"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

// Forty chats are edited at once, which is far more than the tier of edits allows. The answer of each nevertheless appears soon after the
// end of its turn, because the updates of the others leave it a part of the tier.
func TestAnswersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(fake.Options{Tiers: true, NoStreams: true})
		c := newBot(b.Server)
		var stories []*channeltest.Story
		var results []<-chan error
		for i := range 40 {
			chat := fmt.Sprint("D1", i)
			s := channeltest.NewStory(t, fmt.Sprint("turn", i))
			b.Server.Say(fake.Direct(chat, "U7", "Ann"), "hello")
			results = append(results, s.Deliver(t.Context(), c, chat, "", &channeltest.State{}))
			s.Begin()
			s.OpenText()
			stories = append(stories, s)
		}
		write := func(list []*channeltest.Story) {
			for _, s := range list {
				s.Write("Words that grow to a long text. ")
			}
			time.Sleep(time.Second)
		}
		for range 60 {
			write(stories)
		}
		for i := range 5 {
			ended := time.Now()
			stories[0].End(event.Completed)
			stories = stories[1:]
			for done := false; !done; {
				select {
				case err := <-results[i]:
					if err != nil {
						t.Fatal(err)
					}
					done = true
				default:
					write(stories)
				}
			}
			if took := time.Since(ended); took > 10*time.Second {
				t.Errorf("answer %d came after %v", i, took)
			}
			for range 10 {
				write(stories)
			}
		}
		for i, s := range stories {
			s.End(event.Cancelled)
			if err := <-results[i+5]; err != nil {
				t.Error(err)
			}
		}
		check(t, b.Server)
	})
}

// A server that ends each connection at once is not asked for another without a wait.
func TestShortConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(fake.Options{})
		run(t, newBot(server))
		for range 600 {
			server.Disconnect("warning")
			time.Sleep(time.Second)
		}
		if n := methods(server)[methodOpen]; n < 10 || n > 60 {
			t.Errorf("%d connections in 10 minutes", n)
		}
	})
}

// Without Socket Mode the bot ends with an error, so that the operator sees why nothing arrives.
func TestNoSocketMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(fake.Options{})
		done := make(chan error, 1)
		c := newBot(server)
		go func() { done <- c.Run(t.Context(), make(inbox, 1)) }()
		synctest.Wait()
		server.Disconnect("link_disabled")
		if err := <-done; err == nil || !strings.Contains(err.Error(), "Socket Mode is switched off") {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// An id that isn't that of a chat is reported as a chat that can't be reached.
func TestNoChat(t *testing.T) {
	c := newBot(newServer(fake.Options{}))
	if err := c.Send(t.Context(), channel.OutboundMessage{ChatID: "C1/x", Content: "a"}); !errors.Is(err, channel.ErrUnreachable) {
		t.Error(err)
	}
}

// A delivery that is interrupted while it sends a file doesn't take an earlier file with the same name for it.
func TestFileOfAnEarlierTurn(t *testing.T) {
	each(t, fake.Options{}, func(t *testing.T, b *bench, c *bot, chat string) {
		var state channeltest.State
		for i := range 2 {
			s := channeltest.NewStory(t, fmt.Sprint("turn", i))
			s.Files = map[string][]byte{"f": []byte("content")}
			if i == 1 {
				b.Fail(fake.Fault{Method: methodComplete, Before: true})
			}
			result := s.Deliver(t.Context(), c, chat, b.Say(chat), &state)
			s.Begin()
			s.OpenText()
			s.Write("Here it is, the file of this hour.")
			s.Show(event.Media{URL: "f", Name: "report.csv"})
			s.End(event.Completed)
			if err := <-result; err != nil {
				t.Fatal(err)
			}
			state = channeltest.State{}
		}
		files := 0
		for _, m := range b.messages(chat) {
			files += len(m.Files)
		}
		if files != 2 {
			t.Errorf("%d files", files)
		}
	})
}
