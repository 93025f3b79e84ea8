package eliza

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/push"
)

// The reader keeps up, so no step may be skipped. The suite alone would allow that.
func TestEachCallbackIsShown(t *testing.T) {
	for _, c := range agenttest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if got := playEmitter(t, c.Script); !slices.Equal(got.Views, c.Views) {
				t.Errorf("saw %q, want %q", got.Views, c.Views)
			}
		})
	}
}

func TestCallbacksOfTheEmitter(t *testing.T) { agenttest.Callbacks(t, playEmitter) }

func playEmitter(t *testing.T, script agenttest.Script) (got agenttest.Playback) {
	begin := func() {}
	player := script.Agent(func(_ context.Context, n int) error {
		if n == 0 {
			begin()
		}
		synctest.Wait() // every reader has the text before the next one
		return nil
	})
	bubble(t, player, func(h *harness) {
		c := h.create()
		slow := &wire{held: make(chan struct{})}
		begin = func() { h.open(slow, "GET", at(c, "/messages/stream"), "") }
		live := h.stream("POST", at(c, "/messages/stream"), `{"text":"play a song"}`)
		got = h.read(c, live, slow)
	})
	return got
}

func TestCallbacksOfPushedElizaActions(t *testing.T) {
	agenttest.Callbacks(t, func(t *testing.T, script agenttest.Script) (got agenttest.Playback) {
		bubble(t, echo, func(h *harness) {
			c := h.create()
			ctx := h.t.Context()
			p, ack, err := h.pushes.Push(ctx, gateway.Principal{Admin: true}, c, push.Options{Dialect: "eliza-actions"})
			if err != nil {
				h.t.Fatal(err)
			}
			synctest.Wait()
			live := h.stream("GET", at(c, "/messages/stream"), "")
			slow := h.open(&wire{held: make(chan struct{})}, "GET", at(c, "/messages/stream"), "")
			for _, line := range script.Actions(h.t) {
				synctest.Wait()
				// In two halves, because the result must not depend on how the bytes are split.
				for _, half := range [][]byte{line[:len(line)/2], line[len(line)/2:]} {
					if err := p.Write(ctx, half); err != nil {
						h.t.Fatalf("turn %s: %v", ack.Turn, err)
					}
				}
			}
			if err := p.Close(true); err != nil {
				h.t.Fatal(err)
			}
			got = h.read(c, live, slow)
		})
		return got
	})
}

// read waits for the end of the turn and reads it in every possible way.
func (h *harness) read(conversation string, live, slow *wire) agenttest.Playback {
	h.t.Helper()
	c := live.wait()
	if c.done == nil {
		h.t.Fatalf("the stream ended without done: %s", live.body)
	}
	turn := c.done.Turn
	played := agenttest.Playback{Views: c.views, Snapshots: []agenttest.Snapshot{
		{Name: "the stream", Visible: c.final(), History: c.done.ActionCallbackHistory},
	}}
	list := func(name string) {
		h.t.Helper()
		text, history := h.visible(conversation, turn)
		played.Snapshots = append(played.Snapshots, agenttest.Snapshot{Name: name + ": fold", Visible: text, History: history})
		for _, m := range h.messages(conversation) {
			if m.Turn == turn {
				if m.ID != c.done.MessageID {
					h.t.Errorf("%s: message %s, but messageId %s in done", name, m.ID, c.done.MessageID)
				}
				played.Snapshots = append(played.Snapshots, agenttest.Snapshot{Name: name + ": list", Visible: text, History: m.ActionCallbackHistory, Reload: &m.Text})
				return
			}
		}
		h.t.Errorf("%s: no message of the turn", name)
	}
	list("at the end")
	close(slow.held)
	if s := slow.wait(); s.done == nil {
		h.t.Errorf("the slow stream ended without done: %s", slow.body)
	} else {
		played.Snapshots = append(played.Snapshots, agenttest.Snapshot{Name: "a slow reader", Visible: s.final(), History: s.done.ActionCallbackHistory})
		if s.text != s.final() {
			h.t.Errorf("a slow reader's tokens come to %q, its done to %q", s.text, s.final())
		}
	}
	synctest.Wait()
	s, err := h.journal.Conversation(h.t.Context(), conversation)
	if err != nil || s.Compacted != s.Head {
		h.t.Fatalf("not finished: %+v, %v", s, err)
	}
	list("compacted")
	h.stop()
	h.start()
	list("after a restart")
	for _, id := range c.ids {
		again := h.stream("GET", at(conversation, "/messages/stream"), "", "Last-Event-ID", id).wait()
		if again.done == nil {
			h.t.Fatalf("attached at %s: no done", id)
		}
		played.Snapshots = append(played.Snapshots, agenttest.Snapshot{Name: "attached at " + id, Visible: again.final(), History: again.done.ActionCallbackHistory})
	}
	return played
}

// The history of a message stays bounded, live and after a reload, however many callbacks the turn makes.
func TestManyCallbacks(t *testing.T) {
	const callbacks = 5000
	many := agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		for i := range callbacks {
			if err := out.Status(fmt.Sprintf("step %d %s", i, strings.Repeat("x", 100)), dialect.Replace); err != nil {
				return err
			}
		}
		return nil
	})
	bubble(t, many, func(h *harness) {
		c := h.create()
		s := h.stream("POST", at(c, "/messages/stream"), `{"text":"go"}`).wait()
		last := fmt.Sprintf("step %d %s", callbacks-1, strings.Repeat("x", 100))
		for _, when := range []string{"at the end", "after a restart"} {
			m := h.messages(c)[1]
			for name, trail := range map[string][]string{"list": m.ActionCallbackHistory, "done": s.done.ActionCallbackHistory} {
				if n := len(strings.Join(trail, "\n")); n > 32<<10 || len(trail) != 200 || trail[len(trail)-1] != last {
					t.Errorf("%s, %s: %d entries, %d bytes", when, name, len(trail), n)
				}
			}
			if len(m.Text) > 40<<10 || !strings.HasSuffix(m.Text, last) {
				t.Errorf("%s: a text of %d bytes", when, len(m.Text))
			}
			h.stop()
			h.start()
		}
	})
}
