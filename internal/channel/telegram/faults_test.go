package telegram

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/telegram"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

// If the formatting of one message is refused, only that one is sent again without it; nothing is repeated.
func TestFormattingRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{Gap: time.Second})
		server.Say(ann, "hello")
		server.Fail(fake.Fault{Method: "sendMessage", Skip: 1, Status: http.StatusBadRequest, Description: "Bad Request: can't parse entities: unsupported"})
		s := channeltest.NewStory(t, turnID)
		done := deliver(t.Context(), c, place{chat: 7}, &channeltest.State{}, s)
		s.Begin()
		s.OpenText()
		s.Write(strings.Repeat("A **bold** word. ", 1000))
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		m := server.Visible(7)
		words := 0
		for i, part := range m {
			words += strings.Count(part.Text, "bold")
			if isPlain := len(part.Entities) == 0; isPlain != (i == 1) {
				t.Errorf("message %d without formatting: %v", i, isPlain)
			}
		}
		if len(m) < 3 || words != 1000 {
			t.Errorf("%d messages with %d words", len(m), words)
		}
		check(t, server)
	})
}

// The drafts of two turns have different ids, so the turns don't overwrite each other's text. A turn keeps its id after a restart.
func TestDraftIDs(t *testing.T) {
	if a, b := draftID("one"), draftID("two"); a == b || a <= 0 || b <= 0 || a != draftID("one") {
		t.Errorf("ids %d and %d", a, b)
	}
}

// If the topic of a chat was deleted, the answer goes to the general one. If a group becomes a supergroup, it goes there.
func TestMovedChat(t *testing.T) {
	for name, move := range map[string]func(*fake.Server){
		"topic": func(s *fake.Server) {
			s.Fail(fake.Fault{Status: 400, Description: "Bad Request: message thread not found"})
		},
		"supergroup": func(s *fake.Server) { s.Migrate(-100, -1001) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, server := newBot(fake.Options{})
				topic := group
				topic.Thread = 5
				server.Say(topic, "@leat_bot hello")
				s := channeltest.NewStory(t, turnID)
				done := deliver(t.Context(), c, place{-100, 5}, &channeltest.State{}, s)
				s.Begin()
				move(server)
				s.Tool("bash", `{"command":"ls"}`)
				time.Sleep(10 * time.Second)
				s.OpenText()
				s.Write("Done.")
				s.End(event.Completed)
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				m := append(server.Visible(-100), server.Visible(-1001)...)
				if len(m) != 1 || m[0].Text != "Done." {
					t.Errorf("%+v", m)
				}
				check(t, server)
			})
		})
	}
}

// In groups the message that is being answered has a reaction until the answer is there. Without the right to react, everything else
// works.
func TestReaction(t *testing.T) {
	for _, isRefused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, server := newBot(fake.Options{GroupGap: 3 * time.Second})
			server.Say(group, "@leat_bot hello")
			if isRefused {
				server.Fail(fake.Fault{Method: "setMessageReaction", Status: 400, Description: "Bad Request: REACTION_INVALID"})
			}
			s := channeltest.NewStory(t, turnID)
			done := deliver(t.Context(), c, place{chat: -100}, &channeltest.State{}, s)
			s.Begin()
			time.Sleep(10 * time.Second)
			if m := server.Messages(-100)[0]; (m.Reaction == "👀") == isRefused {
				t.Errorf("while the agent works: %q", m.Reaction)
			}
			s.OpenText()
			s.Write("Done.")
			s.End(event.Completed)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			m := server.Messages(-100)
			if len(server.Visible(-100)) != 1 || m[0].Reaction != "" {
				t.Errorf("%+v", m)
			}
			check(t, server)
		})
	}
}

// The stop button of a draft, and a draft in a topic of a private chat.
func TestTopicOfPrivateChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		topic := ann
		topic.Thread = 9
		server.Say(topic, "hello")
		s := channeltest.NewStory(t, turnID)
		done := deliver(t.Context(), c, place{7, 9}, &channeltest.State{}, s)
		s.Begin()
		s.OpenText()
		s.Write("A text that is long enough to be shown.")
		time.Sleep(2 * time.Second)
		if _, id, ok := server.Draft(7, 9); !ok || id != draftID(turnID) {
			t.Errorf("draft %d, %v", id, ok)
		}
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if m := server.Visible(7); len(m) != 1 || m[0].Thread != 9 {
			t.Errorf("%+v", m)
		}
		if _, _, ok := server.Draft(7, 9); ok {
			t.Error("the draft was left behind")
		}
		check(t, server)
	})
}

// A message of a channel that can't be delivered says so, and one whose outcome is unknown isn't reported as sent.
func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		server.Say(ann, "hello")
		m := channel.OutboundMessage{ChatID: "7", Content: "**Hi**"}
		if err := c.Send(t.Context(), m); err != nil {
			t.Error(err)
		}
		server.Fail(fake.Fault{Method: "sendMessage", After: true})
		if err := c.Send(t.Context(), m); err != channel.ErrUnknownOutcome {
			t.Errorf("without an answer: %v", err)
		}
		server.Block(7, true)
		if err := c.Send(t.Context(), m); err == nil || !strings.Contains(err.Error(), "blocked") {
			t.Errorf("blocked: %v", err)
		}
		if n := len(server.Visible(7)); n != 2 {
			t.Errorf("%d messages", n)
		}
	})
}
