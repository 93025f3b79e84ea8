package channel_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
)

// A conversation that is attached to chats of two channels: the same answer grows in both, also the one that was running before.
// The messages of each place are shown in the others.
func TestAttach(t *testing.T) {
	one, two := newStreamSink("one"), newStreamSink("two")
	release := make(chan struct{})
	waits := func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		if in.Message.Text != "first" {
			return echo(ctx, in, out)
		}
		if err := out.Text("The answer "); err != nil {
			return err
		}
		<-release
		return out.Text("ends.")
	}
	h := open(t, newJournal(t), agentFunc(waits), one, two)
	inboxOne := receive(t, one.inbox, "start of one")
	receive(t, two.inbox, "start of two")
	p := gateway.Principal{Tenant: "acme", Subject: "carol"}
	s, _, err := h.gw.Create(t.Context(), p, gateway.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	send := func(id, text string) {
		t.Helper()
		if _, err := h.gw.Do(t.Context(), p, s.ID, gateway.Command{Type: gateway.CommandSend, Key: id, Message: &gateway.CommandMessage{
			Role: event.User, Text: text, Source: "native", Author: &event.Author{ID: "carol", Name: "Carol"},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	send("1", "first")
	for _, name := range []string{"one", "two"} {
		if err := h.pipeline.Attach(t.Context(), name, "c1", s.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.pipeline.Attach(t.Context(), "one", "c1", s.ID); !errors.Is(err, channel.ErrAttached) {
		t.Errorf("attached twice: %v", err)
	}
	if err := h.pipeline.Attach(t.Context(), "one", "c1", "unknown"); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("an unknown conversation: %v", err)
	}
	if err := h.pipeline.Attach(t.Context(), "three", "c1", s.ID); !errors.Is(err, channel.ErrUnknownChannel) {
		t.Errorf("an unknown channel: %v", err)
	}
	close(release)
	for _, ch := range []*streamSink{one, two} {
		d := receive(t, ch.streams, "stream")
		if got := d.final(t); got != "The answer ends." || d.chat != "c1" {
			t.Errorf("%q in %s", got, d.chat)
		}
		d.result <- nil
	}
	send("2", "second")
	h.say(inboxOne, channel.InboundMessage{Content: "third"})
	for ch, want := range map[*streamSink][]string{one: {"second"}, two: {"second", "third"}} {
		for _, text := range []string{"you said second", "you said third"} {
			d := receive(t, ch.streams, "stream")
			if got := d.final(t); got != text {
				t.Errorf("%q, want %q", got, text)
			}
			d.result <- nil
		}
		var got []string
		for range want {
			m := receive(t, ch.sent, "message of another place")
			if !strings.HasPrefix(m.Content, "💬 **") {
				t.Errorf("%q", m.Content)
			}
			got = append(got, m.Content[strings.LastIndex(m.Content, "\n")+1:])
		}
		if strings.Join(got, " ") != strings.Join(want, " ") || len(ch.sent) > 0 {
			t.Errorf("%s was shown %q, want %q, and %d more", ch.name, got, want, len(ch.sent))
		}
	}
	if err := h.pipeline.Detach(t.Context(), "two", "c1", s.ID); err != nil {
		t.Fatal(err)
	}
	if err := h.pipeline.Detach(t.Context(), "two", "c1", s.ID); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("detached twice: %v", err)
	}
	send("3", "fourth")
	d := receive(t, one.streams, "stream")
	if got := d.final(t); got != "you said fourth" {
		t.Errorf("%q", got)
	}
	d.result <- nil
	if len(two.streams)+len(two.sent) != 0 {
		t.Error("a detached chat got something")
	}
}
