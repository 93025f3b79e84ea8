package channel_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// A person links a chat of another app by a code: it continues the same conversation, and the agent knows that it is the same person.
func TestLink(t *testing.T) {
	conversations := make(chan string, 10)
	who := agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		conversations <- in.Conversation
		return echo(ctx, in, out)
	})
	one, two := newSink("one"), newSink("two")
	h := open(t, newJournal(t), who, one, two)
	first, second := receive(t, one.inbox, "start of a channel"), receive(t, two.inbox, "start of a channel")
	h.say(first, channel.InboundMessage{ChatID: "a", Content: "hello"})
	receive(t, one.sent, "answer")
	h.say(first, channel.InboundMessage{ChatID: "a", Content: "/link"})
	command := regexp.MustCompile(`/link \w{8}`).FindString(receive(t, one.sent, "code").Content)
	if command == "" {
		t.Fatal("no code")
	}
	stranger := channel.InboundMessage{ChatID: "b", SenderID: "ann.two", SenderName: "Ann", Content: strings.ToLower(command)}
	group := stranger
	group.Hints.Group, group.Hints.Addressed = true, true
	h.say(second, group)
	if m := receive(t, two.sent, "refusal"); !strings.Contains(m.Content, "in private") {
		t.Errorf("in a group: %q", m.Content)
	}
	h.say(second, stranger)
	if m := receive(t, two.sent, "reply"); !strings.HasPrefix(m.Content, "✅") {
		t.Errorf("%q", m.Content)
	}
	again := stranger
	again.ChatID, again.SenderID = "c", "eve"
	h.say(second, again)
	if m := receive(t, two.sent, "refusal"); !strings.Contains(m.Content, "unknown or has expired") {
		t.Errorf("a code that was used: %q", m.Content)
	}
	// The answer to a message in the second chat appears in both; in the first one also the message.
	h.say(second, channel.InboundMessage{ChatID: "b", SenderID: "ann.two", SenderName: "Ann", Content: "and here?"})
	if m := receive(t, two.sent, "answer"); m.Content != "you said and here?" || m.ChatID != "b" {
		t.Errorf("%+v", m)
	}
	if m := receive(t, one.sent, "message"); !strings.Contains(m.Content, "and here?") || m.ChatID != "a" {
		t.Errorf("%+v", m)
	}
	if m := receive(t, one.sent, "answer"); m.Content != "you said and here?" {
		t.Errorf("%+v", m)
	}
	a, b := <-conversations, <-conversations
	if a != b {
		t.Fatalf("conversations %s and %s", a, b)
	}
	err := h.gw.ViewTranscript(t.Context(), gateway.Principal{Admin: true}, a, func(log *transcript.Transcript) bool {
		for _, m := range log.Messages {
			if m.Author != nil && m.Author.ID != "ann" {
				t.Errorf("the author of %q is %q", m.Visible(), m.Author.ID)
			}
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
}
