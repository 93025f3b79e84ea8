package telegram

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/telegram"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

// In a private chat the growing text is a draft, which the final message replaces.
func TestDraft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{Gap: time.Second})
		server.Say(ann, "hello")
		s, saved := channeltest.NewStory(t, turnID), &channeltest.State{}
		done := deliver(t.Context(), c, place{chat: 7}, saved, s)
		s.Begin()
		time.Sleep(time.Second)
		if r := server.Requests(); len(r) == 0 || r[0].Method != "sendChatAction" {
			t.Errorf("before the first text: %+v", r)
		}
		s.OpenText()
		s.Write("Hello, **wor")
		time.Sleep(time.Second)
		if text, id, ok := server.Draft(7, 0); !ok || text != "Hello, wor" || id == 0 {
			t.Errorf("draft %q, %v", text, ok)
		}
		time.Sleep(time.Minute) // a long tool call: the draft must not expire
		if _, _, ok := server.Draft(7, 0); !ok {
			t.Error("the draft has expired")
		}
		s.Write("ld**!")
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		m := server.Visible(7)
		if len(m) != 1 || m[0].Text != "Hello, world!" || len(m[0].Entities) != 1 || m[0].Silent {
			t.Errorf("%+v", m)
		}
		if _, _, ok := server.Draft(7, 0); ok {
			t.Error("the draft was left behind")
		}
		check(t, server)
	})
}

// In a group the growing text is a message that is edited, and that is deleted when the answer is complete.
func TestEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{Gap: time.Second, GroupGap: 3 * time.Second})
		server.Say(group, "@leat_bot hello")
		s, saved := channeltest.NewStory(t, turnID), &channeltest.State{}
		done := deliver(t.Context(), c, place{chat: -100}, saved, s)
		s.Begin()
		s.OpenText()
		for range 100 {
			s.Write("A word and another one. ")
			time.Sleep(200 * time.Millisecond)
		}
		render := server.Visible(-100)
		if len(render) != 1 || !render[0].Silent || render[0].ReplyTo != 1 || len(render[0].Versions) < 5 {
			t.Errorf("%+v", render)
		}
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		final := server.Visible(-100)
		if len(final) != 1 || final[0].ID == render[0].ID || final[0].Text != strings.TrimSpace(strings.Repeat("A word and another one. ", 100)) || final[0].ReplyTo != 1 {
			t.Errorf("%+v", final)
		}
		check(t, server)
	})
}

// The status card shows the tools while they run, and disappears at the end.
func TestCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{Gap: time.Second})
		server.Say(ann, "hello")
		s, saved := channeltest.NewStory(t, turnID), &channeltest.State{}
		done := deliver(t.Context(), c, place{chat: 7}, saved, s)
		s.Begin()
		s.OpenText()
		s.Write("I look at the files first.")
		s.Send(event.Event{Type: event.TurnUpdate, Body: &event.Body{Step: 2}})
		s.Tool("bash", `{"command":"ls -la <dir>"}`)
		time.Sleep(2 * time.Second)
		card := server.Visible(7)
		if len(card) != 1 || !strings.Contains(card[0].Text, "⏳ bash(ls -la <dir>)") || !strings.Contains(card[0].Text, "🔄 Iteration 2") || !card[0].Silent {
			t.Errorf("%+v", card)
		}
		s.ToolEnd("a.txt\nb.txt\n", event.PartDone)
		time.Sleep(12 * time.Second)
		card = server.Visible(7)
		if len(card) != 1 || !strings.Contains(card[0].Text, "✅ bash") || !strings.Contains(card[0].Text, "a.txt\nb.txt") || !strings.Contains(card[0].Text, "⏱ 1") {
			t.Errorf("%+v", card)
		}
		s.OpenText()
		s.Write("There are two.")
		time.Sleep(time.Second)
		if text, _, _ := server.Draft(7, 0); text != "There are two." {
			t.Errorf("the draft of the second iteration: %q", text)
		}
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		m := server.Visible(7)
		if len(m) != 1 || m[0].Text != "I look at the files first.\n\nThere are two." {
			t.Errorf("%+v", m)
		}
		check(t, server)
	})
}

// A rich draft shows a table, and far more text than a message. A server that doesn't know rich drafts gets plain ones, and is not asked
// again; a text that exceeds their limits makes the drafts of its turn plain.
func TestRichDrafts(t *testing.T) {
	table := "| a | b |\n|---|---|\n| 1 | **2** |\n\n"
	long := strings.Repeat("A long line of the answer.\n\n", 400)
	for name, test := range map[string]struct {
		options fake.Options
		text    string
		rich    int // requests with a rich draft, at most
		isRich  bool
	}{
		"rich":        {fake.Options{}, table + long, 100, true},
		"unknown":     {fake.Options{NoRichDrafts: true}, table + long, 1, false},
		"many blocks": {fake.Options{}, table + strings.Repeat("- item\n", 600), 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, server := newBot(test.options)
				server.Say(ann, "hello")
				turn := func(id string) {
					s := channeltest.NewStory(t, id)
					done := deliver(t.Context(), c, place{chat: 7}, &channeltest.State{}, s)
					s.Begin()
					s.OpenText()
					s.Write(test.text)
					time.Sleep(2 * time.Second)
					if text, _, ok := server.Draft(7, 0); !ok || test.isRich != strings.HasPrefix(text, "ab\n12\nA long line") || test.isRich == strings.HasSuffix(text, cursor) {
						t.Errorf("draft %.40q, %v", text, ok)
					}
					s.End(event.Completed)
					if err := <-done; err != nil {
						t.Fatal(err)
					}
				}
				turn("t1")
				turn("t2")
				rich := 0
				for _, r := range server.Requests() {
					if r.Method == "sendRichMessageDraft" {
						rich++
					}
				}
				if rich == 0 || rich > test.rich {
					t.Errorf("%d rich drafts", rich)
				}
				check(t, server)
			})
		})
	}
}

// A chat or a server without drafts gets edits.
func TestNoDrafts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{NoDrafts: true, Gap: time.Second})
		server.Say(ann, "hello")
		s := channeltest.NewStory(t, turnID)
		done := deliver(t.Context(), c, place{chat: 7}, &channeltest.State{}, s)
		s.Begin()
		s.OpenText()
		s.Write("A text that is long enough to be shown.")
		time.Sleep(3 * time.Second)
		if m := server.Visible(7); len(m) != 1 || !strings.HasSuffix(m[0].Text, cursor) {
			t.Errorf("%+v", m)
		}
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if m := server.Visible(7); len(m) != 1 || strings.HasSuffix(m[0].Text, cursor) {
			t.Errorf("%+v", m)
		}
		check(t, server)
	})
}

// A penalty stops everything for exactly as long as the server says; then the final answer goes out.
func TestPenalty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		server.Say(ann, "hello")
		server.Fail(fake.Fault{Method: "sendRichMessageDraft", Skip: 1, Status: 429, RetryAfter: 149 * time.Second})
		s := channeltest.NewStory(t, turnID)
		done := deliver(t.Context(), c, place{chat: 7}, &channeltest.State{}, s)
		s.Begin()
		s.OpenText()
		for range 10 {
			s.Write("More and more. ")
			time.Sleep(time.Second)
		}
		if chats, until := c.Penalties(); chats != 1 || time.Until(until) < 130*time.Second {
			t.Errorf("%d chats wait until %v", chats, until)
		}
		s.End(event.Completed)
		began := time.Now()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 130*time.Second || took > 150*time.Second {
			t.Errorf("the final answer came %v after the end", took)
		}
		if m := server.Visible(7); len(m) != 1 {
			t.Errorf("%+v", m)
		}
		check(t, server)
	})
}

// A message whose sending got no answer is not sent again, and reported.
func TestUnknownOutcome(t *testing.T) {
	for _, landed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, server := newBot(fake.Options{})
			server.Say(ann, "hello")
			server.Fail(fake.Fault{Method: "sendMessage", After: landed, Before: !landed})
			s := channeltest.NewStory(t, turnID)
			done := deliver(t.Context(), c, place{chat: 7}, &channeltest.State{}, s)
			s.Begin()
			s.OpenText()
			s.Write("Short.")
			s.End(event.Completed)
			if err := <-done; !errors.Is(err, channel.ErrUnknownOutcome) {
				t.Errorf("landed %v: %v", landed, err)
			}
			if n := len(server.Visible(7)); n > 1 {
				t.Errorf("landed %v: %d messages", landed, n)
			}
			check(t, server)
		})
	}
}

// A status message whose creation got no answer is found and deleted at the end.
func TestLostCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{Gap: time.Second, GroupGap: time.Second})
		server.Say(group, "@leat_bot hello")
		server.Fail(fake.Fault{Method: "sendMessage", After: true})
		s := channeltest.NewStory(t, turnID)
		done := deliver(t.Context(), c, place{chat: -100}, &channeltest.State{}, s)
		s.Begin()
		s.Tool("bash", `{"command":"ls"}`)
		time.Sleep(10 * time.Second)
		s.ToolEnd("", event.PartDone)
		s.OpenText()
		s.Write("Done.")
		time.Sleep(10 * time.Second)
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if m := server.Visible(-100); len(m) != 1 || m[0].Text != "Done." {
			t.Errorf("%+v", m)
		}
		check(t, server)
	})
}

// A person who has blocked the bot can't be reached: the delivery ends at once.
func TestBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		server.Say(ann, "hello")
		server.Block(7, true)
		s := channeltest.NewStory(t, turnID)
		done := deliver(t.Context(), c, place{chat: 7}, &channeltest.State{}, s)
		s.Begin()
		s.End(event.Completed)
		if err := <-done; !errors.Is(err, channel.ErrUnreachable) {
			t.Error(err)
		}
		check(t, server)
	})
}

// A question has a button for each choice. When it is answered, the buttons are removed and the text stays.
func TestQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{Gap: time.Second})
		server.Say(ann, "hello")
		s := channeltest.NewStory(t, turnID)
		done := deliver(t.Context(), c, place{chat: 7}, &channeltest.State{}, s)
		s.Begin()
		s.Send(event.Event{Type: event.TurnWait, Body: &event.Body{Request: &event.Request{ID: "r1", Kind: event.RequestApproval, Tool: "bash", Prompt: "Run `rm -r x`?"}}})
		time.Sleep(10 * time.Second)
		m := server.Visible(7)
		if len(m) != 1 || m[0].Text != "❓ bash\n\nRun rm -r x?" || m[0].Silent || len(m[0].Buttons) != 2 || m[0].Buttons[0].Text != "approve" {
			t.Fatalf("%+v", m)
		}
		server.Press(ann, m[0].ID, "deny")
		s.Send(event.Event{Type: event.TurnResume, Body: &event.Body{Answer: &event.Answer{ID: "r1", Decision: event.Deny}}})
		s.OpenText()
		s.Write("Then not.")
		s.End(event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		m = server.Visible(7)
		if len(m) != 2 || len(m[0].Buttons) != 0 || m[1].Text != "Then not." {
			t.Errorf("%+v", m)
		}
		check(t, server)
	})
}
