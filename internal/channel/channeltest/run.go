package channeltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
)

// Run tests a platform. LEAT_FULL=1 makes the storm longer, and LEAT_SEED chooses its faults.
func Run(t *testing.T, p Platform) {
	for _, chat := range p.Chats {
		t.Run(strings.ReplaceAll(chat, "/", "-"), func(t *testing.T) {
			// Each test has a new server and channel, and a bubble of virtual time, so a penalty of minutes takes no time.
			test := func(name string, f func(*testing.T, *bench)) {
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := p.New()
						b := &bench{platform: p, server: s, channel: s.Open(), chat: chat}
						b.replyTo = s.Say(chat)
						f(t, b)
						end(t, s)
					})
				})
			}
			test("long answer", longAnswer)
			test("tools", tools)
			test("question", askAndAnswer)
			test("failure", failure)
			test("stop", cancelledTurn)
			test("retracted", retracted)
			test("removed turn", removedTurn)
			test("penalty", penalties)
			test("outage", outage)
			// Thirty requests cover the whole of such a turn on every platform: the card, edits of the text, and the parts of the
			// answer.
			for n := range 30 {
				test(fmt.Sprint("killed at request ", n), func(t *testing.T, b *bench) { killed(t, b, n) })
			}
		})
	}
	t.Run("storm", func(t *testing.T) { storm(t, p) })
}

// bench is a server with one chat. The state is that of the delivery, which survives channels that are closed and opened again.
type bench struct {
	platform Platform
	server   Server
	channel  channel.StreamChannel
	chat     string
	replyTo  string
	state    State
}

// begin starts a turn that answers a message of a person, and its delivery. The channel gets the result of the delivery.
func (b *bench) begin(t *testing.T) (*Story, <-chan error) {
	s := NewStory(t, "turn")
	result := s.Deliver(t.Context(), b.channel, b.chat, b.replyTo, &b.state)
	s.Begin()
	return s, result
}

// finish waits for the end of a delivery, and checks what the chat shows.
func (b *bench) finish(t *testing.T, result <-chan error, want string) {
	t.Helper()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if got := b.text(); got != want {
		t.Errorf("the chat shows %q, want %q", got, want)
	}
}

// text returns the visible text of the chat, with single spaces. Platforms break lines differently, and the number of messages for a text
// depends on their limits. So tests compare words.
func (b *bench) text() string {
	return strings.Join(strings.Fields(strings.Join(b.server.Visible(b.chat), " ")), " ")
}

// sees checks that the chat shows texts of a running turn, or nothing on a quiet platform.
func (b *bench) sees(t *testing.T, when string, want ...string) {
	t.Helper()
	text := b.text()
	if b.platform.Quiet {
		if text != "" {
			t.Errorf("%s: %q on a quiet platform", when, text)
		}
		return
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s: %q without %q", when, text, w)
		}
	}
}

// finishEmpty waits for the end of a delivery that leaves nothing.
func (b *bench) finishEmpty(t *testing.T, result <-chan error) {
	t.Helper()
	want := b.platform.Tombstone
	if b.platform.Quiet {
		want = "" // nothing was shown that would have to disappear
	}
	b.finish(t, result, want)
}

// longAnswer streams an answer that is too long for a message: it arrives whole and in order. If a part were lost, doubled or in the
// wrong place, the numbers of the sentences would show it.
func longAnswer(t *testing.T, b *bench) {
	s, result := b.begin(t)
	s.OpenText()
	var want strings.Builder
	for i := range 800 {
		sentence := fmt.Sprintf("Sentence %d of the answer. ", i)
		want.WriteString(sentence)
		s.Write(sentence)
		time.Sleep(50 * time.Millisecond)
	}
	s.End(event.Completed)
	b.finish(t, result, strings.TrimSpace(want.String()))
}

// tools shows a card while tools run, unless the platform is quiet. At the end only the texts of all iterations remain. Text that was
// written before a tool call has to be a part of the answer, although the live view shows the newest iteration only.
func tools(t *testing.T, b *bench) {
	s, result := b.begin(t)
	s.OpenText()
	s.Write("I look at the files first.")
	s.Send(event.Event{Type: event.TurnUpdate, Body: &event.Body{Step: 2}})
	s.Tool("bash", `{"command":"ls <dir> & more"}`)
	time.Sleep(10 * time.Second)
	b.sees(t, "while a tool runs", "ls <dir> & more")
	s.ToolEnd("a.txt\nb.txt\n", event.PartFailed)
	time.Sleep(12 * time.Second)
	b.sees(t, "after a failed tool", "❌", "a.txt")
	s.OpenText()
	s.Write("There are two.")
	time.Sleep(10 * time.Second)
	s.End(event.Completed)
	b.finish(t, result, "I look at the files first. There are two.")
}

// askAndAnswer asks a question, which stays in the chat. It is a part of the conversation: without it, a reader of the history would
// not understand what was denied.
func askAndAnswer(t *testing.T, b *bench) {
	s, result := b.begin(t)
	s.Ask("r1", "Remove x?")
	time.Sleep(10 * time.Second)
	if text := b.text(); !strings.Contains(text, "Remove x?") {
		t.Errorf("the question: %q", text)
	}
	s.Answer("r1", event.Deny)
	s.OpenText()
	s.Write("Then not.")
	s.End(event.Completed)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if text := b.text(); strings.Count(text, "Remove x?") != 1 || !strings.HasSuffix(text, "Then not.") {
		t.Errorf("at the end: %q", text)
	}
}

// failure ends a turn with an error: what was written stays, and the error is shown. A reader must be able to distinguish it from a
// complete answer.
func failure(t *testing.T, b *bench) {
	s, result := b.begin(t)
	s.Tool("bash", `{"command":"ls"}`)
	s.OpenText()
	s.Write("Half an answer, which is long enough to be shown.")
	time.Sleep(10 * time.Second)
	s.Fail("The model is overloaded.")
	b.finish(t, result, "Half an answer, which is long enough to be shown. ⚠️ The model is overloaded.")
}

// cancelledTurn ends a turn that a person stopped. It wrote nothing, so the chat shows nothing: a card that stays would look like
// work in progress.
func cancelledTurn(t *testing.T, b *bench) {
	s, result := b.begin(t)
	s.Tool("bash", `{"command":"ls"}`)
	time.Sleep(10 * time.Second)
	b.sees(t, "while a tool runs", "bash")
	s.End(event.Cancelled)
	b.finishEmpty(t, result)
}

// retracted replaces a long text by a short one. The long one fills several messages on most platforms. All of them but the first
// have to disappear.
func retracted(t *testing.T, b *bench) {
	s, result := b.begin(t)
	s.OpenText()
	for range 100 {
		s.Write(strings.Repeat("Words of a first try. ", 10))
		time.Sleep(time.Second)
	}
	s.Send(event.Event{Type: event.PartReplace, Message: messageID, Part: s.part(), Field: event.Text, Text: "The second try."})
	time.Sleep(10 * time.Second)
	s.End(event.Completed)
	b.finish(t, result, "The second try.")
}

// removedTurn removes the turn, as a regeneration does: nothing of it remains. The text was visible as it grew, and would otherwise
// be a second answer next to that of the new turn.
func removedTurn(t *testing.T, b *bench) {
	s, result := b.begin(t)
	s.Tool("bash", `{"command":"ls"}`)
	s.OpenText()
	s.Write("An answer that is long enough to be shown while it grows.")
	time.Sleep(10 * time.Second)
	b.sees(t, "while the text grows") // a draft isn't visible
	s.Reset()
	b.finishEmpty(t, result)
}

// penalties makes the server refuse everything for a while, once while the turn runs and once at its end: no request is made meanwhile,
// and the answer comes after. A channel that gives up during a long penalty would lose the answer, and one that tries in between would
// lengthen it.
func penalties(t *testing.T, b *bench) {
	const wait = 149 * time.Second
	requests, isPunished := 0, false // used by the server only
	var isOver atomic.Bool
	b.server.SetChaos(func() Fault {
		over := isOver.Load()
		if requests++; requests == 3 && !over || over && !isPunished {
			isPunished = over
			return Fault{Penalized, wait}
		}
		return Fault{}
	})
	s, result := b.begin(t)
	s.OpenText()
	for range 20 {
		s.Write("More and more. ")
		time.Sleep(time.Second)
	}
	isOver.Store(true)
	s.End(event.Completed)
	began := time.Now()
	b.finish(t, result, strings.TrimSpace(strings.Repeat("More and more. ", 20)))
	// Platforms that don't say how long a penalty lasts are tried again with growing waits.
	if took := time.Since(began); took < wait || took > 2*wait+2*time.Minute {
		t.Errorf("the answer came %v after the end", took)
	}
}

// outage makes the server refuse everything for four minutes, beginning with the end of the turn. The answer comes when that is over. A
// channel that gives up would lose it.
func outage(t *testing.T, b *bench) {
	s, result := b.begin(t)
	s.OpenText()
	s.Write("An answer that is long enough to be shown while it grows.")
	time.Sleep(10 * time.Second)
	end := time.Now().Add(4 * time.Minute)
	b.server.SetChaos(func() Fault {
		if time.Now().Before(end) {
			return Fault{Kind: Broken}
		}
		return Fault{}
	})
	s.End(event.Completed)
	b.finish(t, result, "An answer that is long enough to be shown while it grows.")
}

// killed ends a delivery during its nth request. The next one continues: the answer appears once, and nothing else remains. Every
// other request takes effect although the process ends before its answer. A channel that stores its intentions too late fails here.
func killed(t *testing.T, b *bench, n int) {
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	requests := 0
	b.server.SetChaos(func() Fault {
		if requests++; requests == n+1 {
			kill()
			if n%2 == 0 {
				return Fault{Kind: LostAfter}
			}
		}
		return Fault{}
	})
	play := func(s *Story) {
		s.Begin()
		s.Tool("bash", `{"command":"ls"}`)
		s.ToolEnd("x", event.PartDone)
		s.OpenText()
		for range 20 {
			s.Write("A sentence of the answer. ")
			time.Sleep(time.Second)
		}
		s.Write(strings.Repeat("A long end. ", 800))
		s.End(event.Completed)
	}
	s := NewStory(t, "turn")
	result := s.Deliver(ctx, b.channel, b.chat, b.replyTo, &b.state)
	play(s)
	if <-result == nil {
		return // it has ended before
	}
	b.channel = b.server.Open()
	s = NewStory(t, "turn")
	result = s.Deliver(t.Context(), b.channel, b.chat, b.replyTo, &b.state)
	play(s)
	err := <-result
	if err != nil && (b.platform.Idempotent || !errors.Is(err, channel.ErrUnknownOutcome)) {
		t.Fatal(err)
	}
	text := b.text()
	if got := strings.Count(text, "long end."); got != 800 && err == nil || got > 800 || strings.Contains(text, "Working…") || strings.Contains(text, "▍") {
		t.Errorf("%d sentences, %v, %q", got, err, text[:min(300, len(text))])
	}
}
