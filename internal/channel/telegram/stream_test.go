package telegram

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/telegram"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
)

// In a private chat the growing text is a draft, which the final message replaces.
func TestDraft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{Gap: time.Second})
		server.Say(ann, "hello")
		s, saved := newStory(), &store{}
		done := deliver(t.Context(), c, place{chat: 7}, saved, s.ch)
		s.begin(t)
		time.Sleep(time.Second)
		if r := server.Requests(); len(r) == 0 || r[0].Method != "sendChatAction" {
			t.Errorf("before the first text: %+v", r)
		}
		s.openText(t)
		s.write(t, "Hello, **wor")
		time.Sleep(time.Second)
		if text, id, ok := server.Draft(7, 0); !ok || text != "Hello, wor"+cursor || id == 0 {
			t.Errorf("draft %q, %v", text, ok)
		}
		time.Sleep(time.Minute) // a long tool call: the draft must not expire
		if _, _, ok := server.Draft(7, 0); !ok {
			t.Error("the draft has expired")
		}
		s.write(t, "ld**!")
		s.end(t, event.Completed)
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
		s, saved := newStory(), &store{}
		done := deliver(t.Context(), c, place{chat: -100}, saved, s.ch)
		s.begin(t)
		s.openText(t)
		for range 100 {
			s.write(t, "A word and another one. ")
			time.Sleep(200 * time.Millisecond)
		}
		render := server.Visible(-100)
		if len(render) != 1 || !render[0].Silent || render[0].ReplyTo != 1 || len(render[0].Versions) < 5 {
			t.Errorf("%+v", render)
		}
		s.end(t, event.Completed)
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
		s, saved := newStory(), &store{}
		done := deliver(t.Context(), c, place{chat: 7}, saved, s.ch)
		s.begin(t)
		s.openText(t)
		s.write(t, "I look at the files first.")
		s.send(t, event.Event{Type: event.TurnUpdate, Body: &event.Body{Step: 2}})
		s.tool(t, "bash", `{"command":"ls -la <dir>"}`)
		time.Sleep(2 * time.Second)
		card := server.Visible(7)
		if len(card) != 1 || !strings.Contains(card[0].Text, "⏳ bash(ls -la <dir>)") || !strings.Contains(card[0].Text, "🔄 Iteration 2") || !card[0].Silent {
			t.Errorf("%+v", card)
		}
		s.toolEnd(t, "a.txt\nb.txt\n", event.PartDone)
		time.Sleep(12 * time.Second)
		card = server.Visible(7)
		if len(card) != 1 || !strings.Contains(card[0].Text, "✅ bash") || !strings.Contains(card[0].Text, "a.txt\nb.txt") || !strings.Contains(card[0].Text, "⏱ 1") {
			t.Errorf("%+v", card)
		}
		s.openText(t)
		s.write(t, "There are two.")
		time.Sleep(time.Second)
		if text, _, _ := server.Draft(7, 0); text != "There are two."+cursor {
			t.Errorf("the draft of the second iteration: %q", text)
		}
		s.end(t, event.Completed)
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

// A chat or a server without drafts gets edits.
func TestNoDrafts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{NoDrafts: true, Gap: time.Second})
		server.Say(ann, "hello")
		s := newStory()
		done := deliver(t.Context(), c, place{chat: 7}, &store{}, s.ch)
		s.begin(t)
		s.openText(t)
		s.write(t, "A text that is long enough to be shown.")
		time.Sleep(3 * time.Second)
		if m := server.Visible(7); len(m) != 1 || !strings.HasSuffix(m[0].Text, cursor) {
			t.Errorf("%+v", m)
		}
		s.end(t, event.Completed)
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
		server.Fail(fake.Fault{Method: "sendMessageDraft", Skip: 1, Status: 429, RetryAfter: 149 * time.Second})
		s := newStory()
		done := deliver(t.Context(), c, place{chat: 7}, &store{}, s.ch)
		s.begin(t)
		s.openText(t)
		for range 10 {
			s.write(t, "More and more. ")
			time.Sleep(time.Second)
		}
		s.end(t, event.Completed)
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

// A long answer is split; each part is within the limit.
func TestLongAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{Gap: time.Second})
		server.Say(ann, "hello")
		s := newStory()
		done := deliver(t.Context(), c, place{chat: 7}, &store{}, s.ch)
		s.begin(t)
		s.openText(t)
		s.write(t, "```go\n"+strings.Repeat("fmt.Println(\"a line of code\")\n", 500)+"```\n\nEnd.")
		s.end(t, event.Completed)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		m := server.Visible(7)
		lines := 0
		for _, part := range m {
			lines += strings.Count(part.Text, "fmt.Println")
		}
		if len(m) < 4 || lines != 500 || !strings.HasSuffix(m[len(m)-1].Text, "End.") {
			t.Errorf("%d messages, %d lines", len(m), lines)
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
			s := newStory()
			done := deliver(t.Context(), c, place{chat: 7}, &store{}, s.ch)
			s.begin(t)
			s.openText(t)
			s.write(t, "Short.")
			s.end(t, event.Completed)
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
		s := newStory()
		done := deliver(t.Context(), c, place{chat: -100}, &store{}, s.ch)
		s.begin(t)
		s.tool(t, "bash", `{"command":"ls"}`)
		time.Sleep(10 * time.Second)
		s.toolEnd(t, "", event.PartDone)
		s.openText(t)
		s.write(t, "Done.")
		time.Sleep(10 * time.Second)
		s.end(t, event.Completed)
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
		s := newStory()
		done := deliver(t.Context(), c, place{chat: 7}, &store{}, s.ch)
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			s.begin(t)
		}()
		if err := <-done; !errors.Is(err, channel.ErrUnreachable) {
			t.Error(err)
		}
		select {
		case <-s.ch: // the delivery ended before it took the first event
			<-begun
		case <-begun:
		}
		check(t, server)
	})
}

// An interrupted delivery continues with what it saved, at any request: the final answer appears once, and nothing else remains.
func TestInterrupted(t *testing.T) {
	for n := range 30 {
		synctest.Test(t, func(t *testing.T) {
			c, server := newBot(fake.Options{})
			server.Say(group, "@leat_bot hello")
			saved := &store{}
			play := func(s *story) {
				s.begin(t)
				s.tool(t, "bash", `{"command":"ls"}`)
				s.toolEnd(t, "x", event.PartDone)
				s.openText(t)
				for range 20 {
					s.write(t, "A sentence of the answer. ")
					time.Sleep(time.Second)
				}
				s.write(t, strings.Repeat("A long end. ", 800))
				s.end(t, event.Completed)
			}
			// The first delivery is killed during its nth request.
			ctx, kill := context.WithCancel(t.Context())
			go func() {
				for len(server.Requests()) < n {
					changed := server.Changed()
					if len(server.Requests()) >= n {
						break
					}
					select {
					case <-changed:
					case <-ctx.Done():
						return
					}
				}
				kill()
			}()
			s := newStory()
			done := deliver(ctx, c, place{chat: -100}, saved, s.ch)
			told := make(chan struct{})
			go func() {
				defer close(told)
				play(s)
			}()
			first := <-done
			kill()
			go func(events <-chan channel.StreamEvent) {
				for range events {
				}
			}(s.ch)
			<-told
			if first == nil {
				return // all requests were done
			}
			s = newStory()
			c2, _ := newBot(fake.Options{})
			c2.client = c.client
			done = deliver(t.Context(), c2, place{chat: -100}, saved, s.ch)
			go play(s)
			err := <-done
			if err != nil && !errors.Is(err, channel.ErrUnknownOutcome) {
				t.Fatal(err)
			}
			texts := ""
			for _, m := range server.Visible(-100) {
				texts += m.Text + "|"
			}
			if got := strings.Count(texts, "end."); got != 800 && err == nil || got > 800 || strings.Contains(texts, "Working") || strings.Contains(texts, cursor) {
				t.Errorf("killed at request %d: %d sentences, %v, %q", n, got, err, texts[:min(300, len(texts))])
			}
			check(t, server)
		})
	}
}

// A question has a button for each choice. When it is answered, the buttons are removed and the text stays.
func TestQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{Gap: time.Second})
		server.Say(ann, "hello")
		s := newStory()
		done := deliver(t.Context(), c, place{chat: 7}, &store{}, s.ch)
		s.begin(t)
		s.send(t, event.Event{Type: event.TurnWait, Body: &event.Body{Request: &event.Request{ID: "r1", Kind: event.RequestApproval, Tool: "bash", Prompt: "Run `rm -r x`?"}}})
		time.Sleep(10 * time.Second)
		m := server.Visible(7)
		if len(m) != 1 || m[0].Text != "❓ bash\n\nRun rm -r x?" || m[0].Silent || len(m[0].Buttons) != 2 || m[0].Buttons[0].Text != "approve" {
			t.Fatalf("%+v", m)
		}
		server.Press(ann, m[0].ID, "deny")
		s.send(t, event.Event{Type: event.TurnResume, Body: &event.Body{Answer: &event.Answer{ID: "r1", Decision: event.Deny}}})
		s.openText(t)
		s.write(t, "Then not.")
		s.end(t, event.Completed)
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
