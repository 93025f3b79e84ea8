package discord

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/discord"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

// A process that ends during a request and is started again when the platform has forgotten its nonces: the answer and its file appear
// once, and nothing else remains. The conformance suite tests the same with a restart at once.
func TestRestartAfterTheLifeOfNonces(t *testing.T) {
	for n := range 34 {
		t.Run(fmt.Sprint("killed at request ", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, kill := context.WithCancel(t.Context())
				requests := 0
				server := fake.New(fake.Options{Token: "test", Chaos: func(route, _ string) *fake.Fault {
					if requests++; requests == n+1 {
						kill()
						return &fake.Fault{After: true}
					}
					return nil
				}})
				replyTo := server.Say(bob, "hello")
				play := func(s *channeltest.Story) {
					s.Files = map[string][]byte{"a": []byte("content")}
					s.Begin()
					s.Tool("bash", `{"command":"ls"}`)
					s.ToolEnd("x", event.PartDone)
					s.OpenText()
					for range 10 {
						s.Write("A sentence of the answer. ")
						time.Sleep(time.Second)
					}
					s.Write(strings.Repeat("A long end. ", 500))
					time.Sleep(10 * time.Second)
					s.Show(event.Media{URL: "a", Name: "a.txt"})
					s.End(event.Completed)
				}
				var state channeltest.State
				s := channeltest.NewStory(t, "turn")
				result := s.Deliver(ctx, openBot(server), "50", replyTo, &state)
				play(s)
				if err := <-result; err == nil {
					t.Logf("ended after %d requests", requests)
				} else {
					time.Sleep(10 * time.Minute)
					s = channeltest.NewStory(t, "turn")
					result = s.Deliver(t.Context(), openBot(server), "50", replyTo, &state)
					play(s)
					if err := <-result; err != nil {
						t.Fatal(err)
					}
				}
				kill()
				var text strings.Builder
				files := 0
				for _, m := range server.Visible("50") {
					text.WriteString(m.Text + " ")
					files += len(m.Files)
				}
				if got := strings.Count(text.String(), "long end."); got != 500 || files != 1 || strings.ContainsAny(text.String(), "▍…") {
					t.Errorf("%d sentences, %d files, %.300q", got, files, text.String())
				}
				check(t, server)
			})
		})
	}
}

// Of two files with one name the second one is not taken for the first, if the outcome of its request is unknown for long.
func TestFilesWithOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		replyTo := server.Say(ann, "hello")
		server.Fail(fake.Fault{Route: fake.CreateMessage, Skip: 2, Before: true})
		server.Fail(fake.Fault{Route: fake.CreateMessage, Skip: 2, Status: 429, RetryAfter: 10 * time.Minute})
		s := channeltest.NewStory(t, "turn")
		s.Files = map[string][]byte{"a": []byte("first"), "b": []byte("second")}
		result := s.Deliver(t.Context(), c, "97", replyTo, &channeltest.State{})
		s.Begin()
		s.OpenText()
		s.Write("Here they are.")
		s.Show(event.Media{URL: "a", Name: "plot.png"})
		s.Show(event.Media{URL: "b", Name: "plot.png"})
		s.End(event.Completed)
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		if list := server.Visible("97"); len(list) != 3 || string(list[2].Files[0].Content) != "second" {
			t.Errorf("%+v", list)
		}
	})
}

// A bot that is restarted many times registers its commands once, and again when they are others.
func TestCommandsAreRegisteredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server := newBot(fake.Options{})
		puts := func() (n int) {
			for _, r := range server.Requests() {
				if r.Route == fake.PutCommands {
					n++
				}
			}
			return n
		}
		for range 10 {
			_, stop := start(t, openBot(server))
			time.Sleep(5 * time.Second)
			stop()
		}
		if n := puts(); n != 1 || len(server.Commands()) != len(commands()) {
			t.Errorf("%d registrations of %d commands", n, len(server.Commands()))
		}
		c := openBot(server)
		list := commands()
		list[0].Description = "another one"
		if err := c.client.call(t.Context(), at("PUT", "/applications/%s/commands", "1002"), list, nil); err != nil {
			t.Fatal(err)
		}
		_, stop := start(t, c)
		time.Sleep(time.Minute)
		stop()
		if n := puts(); n != 3 || server.Commands()[0].Description == "another one" {
			t.Errorf("%d registrations, %+v", n, server.Commands()[0])
		}
		check(t, server)
	})
}

// brokenInbox stores nothing.
type brokenInbox struct{ tries int }

func (b *brokenInbox) Receive(context.Context, channel.InboundMessage) error {
	b.tries++
	return errors.New("disk full")
}

// A message that can't be stored is reported to the operator, and received again with growing waits.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		var log bytes.Buffer
		c.log = slog.New(slog.NewTextHandler(&log, nil))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		inbox := &brokenInbox{}
		go func() { done <- c.Run(ctx, inbox) }()
		synctest.Wait()
		server.Say(ann, "hello")
		time.Sleep(10 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := inbox.tries; n < 5 || n > 40 {
			t.Errorf("%d tries in 10 minutes", n)
		}
		if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "disk full") {
			t.Errorf("log %s", log.String())
		}
	})
}
