package channel_test

import (
	"context"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
)

// A channel is replaced while a turn is delivered: the turn keeps the channel with which it began, the next one gets the new channel.
// The old one has stopped receiving before the new one begins.
func TestReplace(t *testing.T) {
	release := make(chan struct{})
	slow := agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		if in.Message.Text == "slow" {
			<-release
		}
		return echo(ctx, in, out)
	})
	first, second := newStreamSink("tg"), newStreamSink("tg")
	h := open(t, newJournal(t), slow, first)
	inbox := receive(t, first.inbox, "start of the channel")
	h.say(inbox, channel.InboundMessage{Content: "slow"})
	running := receive(t, first.streams, "stream")
	if err := h.pipeline.Replace(t.Context(), second, channel.Options{Allow: []string{"ann", "ben"}}); err != nil {
		t.Fatal(err)
	}
	inbox = receive(t, second.inbox, "start of the new channel")
	close(release)
	if got := running.final(t); got != "you said slow" {
		t.Errorf("%q", got)
	}
	running.result <- nil
	h.say(inbox, channel.InboundMessage{Content: "next", SenderID: "ben"})
	d := receive(t, second.streams, "stream of the new channel")
	if got := d.final(t); got != "you said next" {
		t.Errorf("%q", got)
	}
	d.result <- nil
}

// A delivery that the channel can't finish because it was replaced is made again with the new one, which gets its state.
func TestReplaceStopped(t *testing.T) {
	first, second := newStreamSink("tg"), newStreamSink("tg")
	h := open(t, newJournal(t), agentFunc(echo), first)
	h.say(receive(t, first.inbox, "start of the channel"), channel.InboundMessage{Content: "hello"})
	running := receive(t, first.streams, "stream")
	if err := running.metadata.Save(t.Context(), "half"); err != nil {
		t.Fatal(err)
	}
	if err := h.pipeline.Replace(t.Context(), second, channel.Options{}); err != nil {
		t.Fatal(err)
	}
	running.result <- channel.ErrStopped
	d := receive(t, second.streams, "stream of the new channel")
	if got := d.final(t); got != "you said hello" || state(t, d.metadata.State) != "half" {
		t.Errorf("%q with the state %s", got, d.metadata.State)
	}
	d.result <- nil
}

// A removed channel delivers nothing more. When it is added again, it delivers what is left.
func TestRemove(t *testing.T) {
	release := make(chan struct{})
	slow := agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		<-release
		return echo(ctx, in, out)
	})
	first, second := newStreamSink("tg"), newStreamSink("tg")
	h := open(t, newJournal(t), slow, first)
	inbox := receive(t, first.inbox, "start of the channel")
	h.say(inbox, channel.InboundMessage{Content: "one"})
	running := receive(t, first.streams, "stream")
	h.say(inbox, channel.InboundMessage{Content: "two"})
	h.pipeline.Remove("tg")
	if err := h.pipeline.Send(t.Context(), channel.OutboundMessage{Channel: "tg"}); err == nil || len(h.pipeline.States()) != 0 {
		t.Errorf("the channel is still there: %v", err)
	}
	close(release)
	if got := running.final(t); got != "you said one" {
		t.Errorf("%q", got)
	}
	running.result <- nil
	if err := h.pipeline.Replace(t.Context(), second, channel.Options{Allow: []string{"ann"}}); err != nil {
		t.Fatal(err)
	}
	d := receive(t, second.streams, "stream of the new channel")
	if got := d.final(t); got != "you said two" {
		t.Errorf("%q", got)
	}
	d.result <- nil
}

// A channel can be added to a pipeline that has none.
func TestAddLater(t *testing.T) {
	h := open(t, newJournal(t), agentFunc(echo))
	ch := newSink("plain")
	if err := h.pipeline.Replace(t.Context(), ch, channel.Options{Allow: []string{"ann"}}); err != nil {
		t.Fatal(err)
	}
	h.say(receive(t, ch.inbox, "start of the channel"), channel.InboundMessage{Content: "hello"})
	if m := receive(t, ch.sent, "message"); m.Content != "you said hello" {
		t.Errorf("%q", m.Content)
	}
	h.close()
	if err := h.pipeline.Replace(t.Context(), ch, channel.Options{}); err == nil {
		t.Error("a channel was added after the shutdown")
	}
}
