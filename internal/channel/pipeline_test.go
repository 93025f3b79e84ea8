package channel_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
)

func TestStreamedAnswer(t *testing.T) {
	ch := newStreamSink("tg")
	h := open(t, newJournal(t), agentFunc(echo), ch)
	inbox := receive(t, ch.inbox, "start of the channel")
	for _, text := range []string{"hello", "again"} {
		h.say(inbox, channel.InboundMessage{Content: text})
		d := receive(t, ch.streams, "stream")
		if got := d.final(t); got != "you said "+text || d.chat != "c1" || d.metadata.ReplyTo == "" {
			t.Errorf("final %q in %s, reply to %q", got, d.chat, d.metadata.ReplyTo)
		}
		d.result <- nil
	}
}

// A channel that doesn't stream gets each answer as one message.
func TestCollapsedAnswer(t *testing.T) {
	ch := newSink("plain")
	h := open(t, newJournal(t), agentFunc(echo), ch)
	h.say(receive(t, ch.inbox, "start of the channel"), channel.InboundMessage{Content: "hello"})
	if m := receive(t, ch.sent, "message"); m.Content != "you said hello" || m.ReplyTo != "m1" || m.Key == "" {
		t.Errorf("%+v", m)
	}
}

// An error never becomes silence, and a part of an answer is not presented as the whole.
func TestFailedTurn(t *testing.T) {
	ch := newSink("plain")
	fails := func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		return errors.Join(out.Text("The answer is"), errors.New("broken"))
	}
	h := open(t, newJournal(t), agentFunc(fails), ch)
	h.say(receive(t, ch.inbox, "start of the channel"), channel.InboundMessage{Content: "hello"})
	if m := receive(t, ch.sent, "message"); !strings.HasPrefix(m.Content, "The answer is\n\n⚠️ ") {
		t.Errorf("%q", m.Content)
	}
}

// The notice of a turn that failed within code is not a part of the code.
func TestFailedInCode(t *testing.T) {
	ch := newSink("plain")
	fails := func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		return errors.Join(out.Text("```go\nfunc main"), errors.New("broken"))
	}
	h := open(t, newJournal(t), agentFunc(fails), ch)
	h.say(receive(t, ch.inbox, "start of the channel"), channel.InboundMessage{Content: "hello"})
	if m := receive(t, ch.sent, "message"); !strings.HasPrefix(m.Content, "```go\nfunc main\n```\n\n⚠️ ") {
		t.Errorf("%q", m.Content)
	}
}

// A message that the platform delivers twice is handled once.
func TestRepeatedMessage(t *testing.T) {
	ch := newSink("plain")
	h := open(t, newJournal(t), agentFunc(echo), ch)
	inbox := receive(t, ch.inbox, "start of the channel")
	for _, id := range []string{"x", "x", "y"} {
		h.say(inbox, channel.InboundMessage{ID: id, Content: id})
	}
	for _, want := range []string{"you said x", "you said y"} {
		if m := receive(t, ch.sent, "message"); m.Content != want {
			t.Errorf("got %q, want %q", m.Content, want)
		}
	}
}

// A failed delivery is reported and not repeated; the next turn is delivered.
func TestFailedDelivery(t *testing.T) {
	ch := newStreamSink("tg")
	h := open(t, newJournal(t), agentFunc(echo), ch)
	inbox := receive(t, ch.inbox, "start of the channel")
	h.say(inbox, channel.InboundMessage{Content: "one"})
	d := receive(t, ch.streams, "stream")
	d.result <- channel.ErrUnreachable
	h.say(inbox, channel.InboundMessage{Content: "two"})
	d = receive(t, ch.streams, "stream")
	if got := d.final(t); got != "you said two" {
		t.Errorf("%q", got)
	}
	d.result <- nil
	if f := receive(t, h.failures, "report of the failure"); f.Channel != "tg" || f.Chat != "c1" || f.Turn == "" || f.Conversation == "" || f.Subject != "c1" {
		t.Errorf("%+v", f)
	}
	// The next delivery began after the failure of the first was recorded.
	if s := h.pipeline.States(); s[0].Failures != 1 || !errors.Is(s[0].LastFailure, channel.ErrUnreachable) {
		t.Errorf("%+v", s)
	}
	if got := h.pipeline.Signals(); len(got) != 1 || got[0] != channel.SignalDeliveryFailed {
		t.Errorf("signals %q", got)
	}
	// A platform can report later that it could not deliver what it has accepted.
	late := errors.New("outside of the window")
	inbox.(channel.FailureInbox).Fail(t.Context(), "c1", late)
	if f := receive(t, h.failures, "report of the failure"); f.Channel != "tg" || f.Chat != "c1" || f.Conversation == "" || !errors.Is(f.Err, late) {
		t.Errorf("%+v", f)
	}
	inbox.(channel.FailureInbox).Fail(t.Context(), "unknown", late)
	if s := h.pipeline.States(); s[0].Failures != 3 {
		t.Errorf("%+v", s)
	}
}

// A delivery that a restart interrupts begins again with the state that the channel saved. What was delivered is not delivered
// again.
func TestRestart(t *testing.T) {
	j, ch := newJournal(t), newStreamSink("tg")
	h := open(t, j, agentFunc(echo), ch)
	inbox := receive(t, ch.inbox, "start of the channel")
	h.say(inbox, channel.InboundMessage{Content: "one"})
	d := receive(t, ch.streams, "stream")
	if got := d.final(t); got != "you said one" {
		t.Errorf("%q", got)
	}
	d.result <- nil
	h.say(inbox, channel.InboundMessage{Content: "two"})
	d = receive(t, ch.streams, "stream")
	if err := d.metadata.Save(t.Context(), "message 7"); err != nil {
		t.Fatal(err)
	}
	h.close()
	<-d.ctx.Done()

	ch = newStreamSink("tg")
	open(t, j, agentFunc(echo), ch)
	again := receive(t, ch.streams, "stream")
	if got := again.final(t); got != "you said two" || again.metadata.Turn != d.metadata.Turn || state(t, again.metadata.State) != "message 7" {
		t.Errorf("%q of %s, state %s", got, again.metadata.Turn, again.metadata.State)
	}
	again.result <- nil
}

// A message that was stored but not handled is handled by the next process.
func TestInboxSurvives(t *testing.T) {
	j, ch := newJournal(t), newStreamSink("tg")
	release := make(chan struct{})
	slow := func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		select {
		case <-release:
			return out.Text("late")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	h := open(t, j, agentFunc(slow), ch)
	inbox := receive(t, ch.inbox, "start of the channel")
	h.close() // the bus is closed: messages are stored only
	h.say(inbox, channel.InboundMessage{Content: "hello"})
	close(release)
	ch = newStreamSink("tg")
	open(t, j, agentFunc(echo), ch)
	d := receive(t, ch.streams, "stream")
	if got := d.final(t); got != "you said hello" {
		t.Errorf("%q", got)
	}
	d.result <- nil
}

// A chat whose answer is slow doesn't delay another chat.
func TestSlowChat(t *testing.T) {
	ch := newStreamSink("tg")
	h := open(t, newJournal(t), agentFunc(echo), ch)
	inbox := receive(t, ch.inbox, "start of the channel")
	h.say(inbox, channel.InboundMessage{ChatID: "slow", Content: "one"})
	slow := receive(t, ch.streams, "stream")
	h.say(inbox, channel.InboundMessage{ChatID: "fast", Content: "two"})
	fast := receive(t, ch.streams, "stream")
	if fast.chat != "fast" || fast.final(t) != "you said two" {
		t.Error(fast.chat)
	}
	fast.result <- nil
	slow.result <- nil
}

// Slash commands get one reply, and no turn of an agent.
func TestCommands(t *testing.T) {
	ch := newStreamSink("tg")
	running := make(chan struct{})
	waits := func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		if in.Message.Text != "wait" {
			return echo(ctx, in, out)
		}
		close(running)
		<-ctx.Done()
		return ctx.Err()
	}
	h := open(t, newJournal(t), agentFunc(waits), ch)
	inbox := receive(t, ch.inbox, "start of the channel")
	reply := func(want string) {
		t.Helper()
		if m := receive(t, ch.sent, "reply"); !strings.Contains(m.Content, want) {
			t.Errorf("reply %q, want %q", m.Content, want)
		}
	}
	h.say(inbox, channel.InboundMessage{Content: "/help"})
	reply("/compact")
	h.say(inbox, channel.InboundMessage{Content: "/stop@bot"})
	reply("Nothing is running.")
	h.say(inbox, channel.InboundMessage{Content: "wait"})
	d := receive(t, ch.streams, "stream")
	<-running
	h.say(inbox, channel.InboundMessage{Content: "/stop"})
	reply("Stopped")
	if got := d.final(t); got != "" {
		t.Errorf("%q", got)
	}
	d.result <- nil
	old := d.metadata.Conversation
	h.say(inbox, channel.InboundMessage{Content: "/new"})
	reply("✅ Started a fresh session.")
	h.say(inbox, channel.InboundMessage{Content: "hello"})
	d = receive(t, ch.streams, "stream")
	if got := d.final(t); got != "you said hello" || d.metadata.Conversation == old {
		t.Errorf("%q in %s", got, d.metadata.Conversation)
	}
	d.result <- nil
	h.say(inbox, channel.InboundMessage{Content: "/agent b"})
	reply("with b")
	h.say(inbox, channel.InboundMessage{Content: "hello"})
	d = receive(t, ch.streams, "stream")
	if d.metadata.Agent != "b" {
		t.Errorf("agent %s", d.metadata.Agent)
	}
	d.result <- nil
	h.say(inbox, channel.InboundMessage{Content: "/agent nobody"})
	reply("nobody")
	h.say(inbox, channel.InboundMessage{Content: "/compact"})
	reply("can't compact")
}

// A person who is not on the list gets a code, and may talk when an operator has admitted the code.
func TestPairing(t *testing.T) {
	ch := newSink("tg")
	h := open(t, newJournal(t), agentFunc(echo), ch)
	inbox := receive(t, ch.inbox, "start of the channel")
	bob := channel.InboundMessage{SenderID: "bob", SenderName: "Bob", Content: "hello"}
	h.say(inbox, bob)
	m := receive(t, ch.sent, "code")
	requests, err := h.pipeline.Pairings(t.Context())
	if err != nil || len(requests) != 1 || requests[0].Sender != "bob" || !strings.Contains(m.Content, requests[0].Code) {
		t.Fatalf("%+v, %v; reply %q", requests, err, m.Content)
	}
	if _, err := h.pipeline.Allow(t.Context(), "AAAAAAAA"); !errors.Is(err, channel.ErrCode) {
		t.Errorf("a wrong code: %v", err)
	}
	if p, err := h.pipeline.Allow(t.Context(), strings.ToLower(requests[0].Code)); err != nil || p.Name != "Bob" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := h.pipeline.Allow(t.Context(), requests[0].Code); !errors.Is(err, channel.ErrCode) {
		t.Errorf("a used code: %v", err)
	}
	h.say(inbox, bob)
	if m := receive(t, ch.sent, "answer"); m.Content != "you said hello" {
		t.Errorf("%q", m.Content)
	}
}

// In a group the agent answers only what is addressed to it, and learns who wrote it.
func TestGroup(t *testing.T) {
	ch := newSink("tg")
	h := open(t, newJournal(t), agentFunc(echo), ch)
	inbox := receive(t, ch.inbox, "start of the channel")
	group := channel.RoutingHints{Group: true}
	h.say(inbox, channel.InboundMessage{Content: "not for you", Hints: group})
	group.Addressed = true
	h.say(inbox, channel.InboundMessage{Content: "for you", Hints: group})
	if m := receive(t, ch.sent, "answer"); m.Content != "you said Ann: for you" {
		t.Errorf("%q", m.Content)
	}
}

// The questions of a turn are answered with a button, with the name of a choice, or with a text.
func TestQuestions(t *testing.T) {
	ch := newSink("plain")
	asks := func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		for _, r := range []event.Request{
			{ID: "1", Kind: event.RequestApproval, Tool: "bash", Prompt: "Run it?"}, {ID: "2", Kind: event.RequestApproval, Options: []string{"once", "always"}}, {ID: "3", Kind: event.RequestInput, Prompt: "Which?"},
		} {
			a, err := out.Ask(ctx, r)
			if err != nil {
				return err
			}
			if err := out.Text(r.ID + string(a.Decision) + a.Text + " "); err != nil {
				return err
			}
		}
		return nil
	}
	h := open(t, newJournal(t), agentFunc(asks), ch)
	inbox := receive(t, ch.inbox, "start of the channel")
	h.say(inbox, channel.InboundMessage{Content: "go"})
	first := receive(t, ch.sent, "question")
	if first.Content != "❓ **bash**\n\nRun it?\n\nAnswer with one of: approve, deny." {
		t.Errorf("%q", first.Content)
	}
	h.say(inbox, channel.InboundMessage{Content: channel.AnswerCommand(first.Key, 1)})
	if m := receive(t, ch.sent, "question"); !strings.Contains(m.Content, "once, always") {
		t.Errorf("%q", m.Content)
	}
	h.say(inbox, channel.InboundMessage{Content: channel.AnswerCommand(first.Key, 1)})
	if m := receive(t, ch.sent, "reply"); m.Content != "This question was answered already." {
		t.Errorf("%q", m.Content)
	}
	h.say(inbox, channel.InboundMessage{Content: "Always"})
	if m := receive(t, ch.sent, "question"); m.Content != "❓ Which?" {
		t.Errorf("%q", m.Content)
	}
	h.say(inbox, channel.InboundMessage{Content: "the blue one"})
	if m := receive(t, ch.sent, "answer"); strings.TrimSpace(m.Content) != "1deny 2always 3the blue one" {
		t.Errorf("%q", m.Content)
	}
}

// compactor is an agent that can shorten its context.
type compactor struct{ agentFunc }

func (compactor) CompactCommand() string { return "/compact now" }

// /compact goes to an agent that can do it, with the agent's own words, and its reply is the answer. While a turn runs it has to wait.
func TestCompact(t *testing.T) {
	ch := newSink("plain")
	release := make(chan struct{})
	a := compactor{func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		if in.Message.Text == "slow" {
			<-release
		}
		return echo(ctx, in, out)
	}}
	h := open(t, newJournal(t), a, ch)
	inbox := receive(t, ch.inbox, "start of the channel")
	say := func(text, want string) {
		t.Helper()
		h.say(inbox, channel.InboundMessage{Content: text})
		if m := receive(t, ch.sent, "message"); m.Content != want {
			t.Errorf("%s: %q", text, m.Content)
		}
	}
	say("/compact", "There is nothing to compact yet.")
	say("hello", "you said hello")
	say("/compact", "you said /compact now")
	h.say(inbox, channel.InboundMessage{Content: "slow"})
	say("/compact", "Please wait for the answer, or /stop it first.")
	close(release)
	if m := receive(t, ch.sent, "message"); m.Content != "you said slow" {
		t.Errorf("%q", m.Content)
	}
}
