package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/feed"
)

func echo(_ context.Context, in agent.Input, out *agent.Emitter) error {
	return out.Text("re: " + in.Message.Text)
}

func TestTheSameKeyTwiceIsOneCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(echo)), nil)
		defer h.close()
		c := h.create(alice)
		send := gateway.Command{Type: gateway.CommandSend, Key: "k", Message: &gateway.CommandMessage{Text: "hi"}}
		first := h.do(c, send)
		h.ended(c, first.Turn)
		again := h.do(c, send)
		if !again.Repeated || again.Turn != first.Turn || again.Seq != first.Seq || again.Message != first.Message {
			t.Errorf("first %+v, again %+v", first, again)
		}
		send.Message.Text = "other"
		h.refused(c, send, gateway.ReasonConflict)
		wantTexts(t, h.view(c), "user: hi", "assistant: re: hi")

		a, created, err := h.Create(t.Context(), alice, gateway.CreateOptions{Key: "k", Title: "T"})
		if err != nil || !created {
			t.Fatal(created, err)
		}
		b, created, err := h.Create(t.Context(), alice, gateway.CreateOptions{Key: "k", Title: "T"})
		if err != nil || created || a.ID != b.ID {
			t.Errorf("%v %v %s %s", created, err, a.ID, b.ID)
		}
		if other, created, err := h.Create(t.Context(), bob, gateway.CreateOptions{Key: "k", Title: "T"}); err != nil || !created || other.ID == a.ID {
			t.Errorf("bob got %s, %v, %v", other.ID, created, err)
		}
	})
}

// A client that numbers its messages restarts at 1. Ids of messages that are no longer in memory are refused too.
func TestTheIDOfAnOldMessageIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(echo)), nil)
		defer h.close()
		c := h.create(alice)
		note := func(i int) gateway.Command {
			return gateway.Command{Type: gateway.CommandInject, Key: fmt.Sprint("k", i), Message: &gateway.CommandMessage{ID: fmt.Sprint("m", i), Text: "a note"}}
		}
		for i := range 200 {
			h.do(c, note(i))
		}
		again := note(0)
		if ack := h.do(c, again); !ack.Repeated {
			t.Errorf("the first one again: %+v", ack)
		}
		again.Key = "another"
		h.refused(c, again, gateway.ReasonConflict)
		h.refused(c, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{ID: "m1", Text: "hi"}}, gateway.ReasonConflict)
		h.ended(c, h.do(c, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{ID: "m200", Text: "hi"}}).Turn)
		if n := len(h.view(c).Messages); n != 202 {
			t.Errorf("%d messages, want 202", n)
		}
	})
}

func TestForeignConversationsDoNotExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(echo)), nil)
		defer h.close()
		c := h.create(alice)
		turn := h.send(c, "hi").Turn
		h.ended(c, turn)
		for _, p := range []gateway.Principal{bob, {}, {Tenant: "t2", Subject: "alice"}} {
			want := gateway.ErrNotFound
			if p.Subject == "" {
				want = gateway.ErrForbidden
			}
			if _, err := h.Do(t.Context(), p, c, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "x"}}); !errors.Is(err, want) {
				t.Errorf("%+v sends: %v", p, err)
			}
			if _, err := h.Feed(t.Context(), p, c); !errors.Is(err, want) {
				t.Errorf("%+v reads: %v", p, err)
			}
			if _, _, err := h.Turn(t.Context(), p, gateway.ActionRead, turn); !errors.Is(err, want) {
				t.Errorf("%+v looks at the turn: %v", p, err)
			}
		}
		if _, err := h.Do(t.Context(), bob, c, gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "x"}}); !errors.Is(err, gateway.ErrNotFound) {
			t.Error(err)
		}
		own := h.create(bob)
		if _, err := h.Do(t.Context(), bob, own, gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "x"}}); !errors.Is(err, gateway.ErrForbidden) {
			t.Errorf("bob speaks as the agent: %v", err)
		}
		list, err := h.List(t.Context(), bob, nil, 0)
		if err != nil || len(list) != 1 || list[0].ID != own {
			t.Errorf("bob sees %v, %v", list, err)
		}
	})
}

func TestBadCommandsAreRefusedWithAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(echo)), func(c *gateway.Config) { c.MaxMessage = 100 })
		defer h.close()
		c := h.create(admin)
		msg := func(m gateway.CommandMessage) *gateway.CommandMessage { return &m }
		for reason, cs := range map[string][]gateway.Command{
			gateway.ReasonInvalid: {
				{Type: "dance"},
				{Type: gateway.CommandSend},
				{Type: gateway.CommandSend, Message: msg(gateway.CommandMessage{})},
				{Type: gateway.CommandSend, Key: strings.Repeat("k", 300), Message: msg(gateway.CommandMessage{Text: "x"})},
				{Type: gateway.CommandSend, Message: msg(gateway.CommandMessage{ID: "a\x00b", Text: "x"})},
				{Type: gateway.CommandSend, Message: msg(gateway.CommandMessage{Text: "x", Role: "robot"})},
				{Type: gateway.CommandSend, Message: msg(gateway.CommandMessage{Parts: []event.Part{{Kind: "x"}}})},
				{Type: gateway.CommandStop},
				{Type: gateway.CommandAnswer},
				{Type: gateway.CommandUpdate},
			},
			gateway.ReasonTooLarge: {
				{Type: gateway.CommandSend, Message: msg(gateway.CommandMessage{Text: strings.Repeat("x", 101)})},
				{Type: gateway.CommandUpdate, Metadata: map[string]json.RawMessage{"k": json.RawMessage(`"` + strings.Repeat("x", 70_000) + `"`)}},
			},
			gateway.ReasonUnknownAgent: {{Type: gateway.CommandSend, Agent: "nobody", Message: msg(gateway.CommandMessage{Text: "x"})}},
			gateway.ReasonUnknown:      {{Type: gateway.CommandTruncate, After: "nothing"}, {Type: gateway.CommandAnswer, Turn: "t", Request: "r"}},
		} {
			for _, cmd := range cs {
				h.refused(c, cmd, reason)
			}
		}
		if _, err := h.Do(t.Context(), admin, "none", gateway.Command{Type: gateway.CommandStop, Turn: "t"}); !errors.Is(err, gateway.ErrNotFound) {
			t.Error(err)
		}
		for _, id := range []string{"$signals", "a/b", "..", strings.Repeat("x", 200), "a\nb"} {
			var r *gateway.Rejection
			if _, _, err := h.Create(t.Context(), admin, gateway.CreateOptions{ID: id}); !errors.As(err, &r) {
				t.Errorf("create %q: %v", id, err)
			}
		}
		if head := h.view(c).Seq; head != 0 {
			t.Errorf("refused commands wrote up to %d", head)
		}
	})
}

func TestTruncateDropsWhatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
			if in.Message.Text == "wait" {
				<-hold
			}
			return echo(ctx, in, out)
		})), nil)
		defer h.close()
		c := h.create(admin)
		h.ended(c, h.send(c, "one").Turn)
		last := h.view(c).Messages[1].ID
		turn := h.send(c, "wait").Turn
		synctest.Wait()
		h.refused(c, gateway.Command{Type: gateway.CommandTruncate, After: last}, gateway.ReasonUnfinished)
		close(hold)
		h.ended(c, turn)
		synctest.Wait()
		f, err := h.Feed(t.Context(), admin, c)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Release()
		before := f.Cursor()
		if n := h.do(c, gateway.Command{Type: gateway.CommandTruncate, After: last}).Deleted; n != 2 {
			t.Errorf("%d messages dropped", n)
		}
		wantTexts(t, h.view(c), "user: one", "assistant: re: one")
		b, err := f.Poll(t.Context(), before, 0)
		if err != nil || b == nil || !b.Reset {
			t.Errorf("a reader from before gets %+v, %v", b, err)
		}
		h.ended(c, h.send(c, "two").Turn)
		synctest.Wait()
		wantTexts(t, h.view(c), "user: one", "assistant: re: one", "user: two", "assistant: re: two")
	})
}

func TestDeleteLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
			_ = out.Text("secret")
			<-ctx.Done()
			return ctx.Err()
		})), nil)
		defer h.close()
		c := h.create(alice)
		turn := h.send(c, "go").Turn
		f, err := h.Feed(t.Context(), alice, c)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Release()
		synctest.Wait()
		h.do(c, gateway.Command{Type: gateway.CommandDelete})
		cursor := feed.Cursor("")
		for {
			b, err := f.Next(t.Context(), cursor, 0)
			if errors.Is(err, feed.ErrDeleted) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			cursor = b.Cursor
		}
		if _, err := h.Feed(t.Context(), alice, c); !errors.Is(err, gateway.ErrNotFound) {
			t.Error(err)
		}
		if _, _, err := h.Turn(t.Context(), alice, gateway.ActionRead, turn); !errors.Is(err, gateway.ErrNotFound) {
			t.Error(err)
		}
		if _, _, err := h.Create(t.Context(), alice, gateway.CreateOptions{ID: c}); !errors.Is(err, gateway.ErrExists) {
			t.Errorf("the id is used again: %v", err)
		}
	})
}
