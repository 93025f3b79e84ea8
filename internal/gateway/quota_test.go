package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// carol is a user of another tenant.
var carol = gateway.Principal{Tenant: "t2", Subject: "carol", Scopes: []string{gateway.ScopeAgent}}

func say(text string) gateway.Command {
	return gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: text}}
}

func keyed(key, text string) gateway.Command {
	c := say(text)
	c.Key = key
	return c
}

func (h *testGateway) as(p gateway.Principal, conv string, c gateway.Command) gateway.Ack {
	h.t.Helper()
	ack, err := h.Do(h.t.Context(), p, conv, c)
	if err != nil {
		h.t.Fatalf("%s %s: %v", p.Subject, c.Type, err)
	}
	return ack
}

// limited checks that an error is the refusal of a quota, with a time to wait.
func (h *testGateway) limited(p gateway.Principal, conv string, c gateway.Command, reason string) time.Duration {
	h.t.Helper()
	_, err := h.Do(h.t.Context(), p, conv, c)
	return wantLimited(h.t, err, reason)
}

func wantLimited(t *testing.T, err error, reason string) time.Duration {
	t.Helper()
	var r *gateway.Rejection
	if !errors.As(err, &r) || r.Reason != reason || r.RetryAfter <= 0 {
		t.Fatalf("got %v, want a rejection for %s with a time to wait", err, reason)
	}
	return r.RetryAfter
}

func limits(user, tenant quota.Limits) func(*gateway.Config) {
	return func(c *gateway.Config) { c.User, c.Tenant = user, tenant }
}

// waiting is an agent whose turns run until they are stopped.
var waiting = agentFunc(func(ctx context.Context, _ agent.Input, _ *agent.Emitter) error {
	<-ctx.Done()
	return ctx.Err()
})

// Of many simultaneous sends in many conversations, exactly as many turns begin as the quota allows.
func TestTurnsAreBoundExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(waiting), limits(quota.Limits{Turns: 5}, quota.Limits{Turns: 8}))
		defer h.close()
		var convs []string
		for range 20 {
			convs = append(convs, h.create(alice))
		}
		var tasks sync.WaitGroup
		var granted atomic.Int64
		for i := range 100 {
			tasks.Go(func() {
				_, err := h.Do(context.Background(), alice, convs[i%len(convs)], say("go"))
				if err == nil {
					granted.Add(1)
					return
				}
				wantLimited(t, err, gateway.ReasonQuota)
			})
		}
		tasks.Wait()
		if n := granted.Load(); n != 5 {
			t.Errorf("%d turns began, want 5", n)
		}
		open := 0
		for _, c := range convs {
			s, err := h.Conversation(t.Context(), alice, gateway.ActionRead, c)
			if err != nil {
				t.Fatal(err)
			}
			open += len(s.Open)
			if n := len(h.view(c).Messages); n != len(s.Open) {
				t.Errorf("%d messages in the log for %d turns: what was refused left something", n, len(s.Open))
			}
		}
		if open != 5 {
			t.Errorf("%d turns are open, want 5", open)
		}
		// An admin has no quota and isn't counted.
		for range 10 {
			h.send(convs[0], "more")
		}
		// The other users of the tenant get the rest.
		b := h.create(bob)
		for range 3 {
			h.as(bob, b, say("go"))
		}
		h.limited(bob, b, say("go"), gateway.ReasonQuota)
		h.as(carol, h.create(carol), say("go"))
	})
}

// A turn stops counting for the quota, however it ends.
func TestEndedTurnsAreGivenBack(t *testing.T) {
	for name, end := range map[string]func(h *testGateway, c, turn string){
		"stopped": func(h *testGateway, c, turn string) {
			h.as(alice, c, gateway.Command{Type: gateway.CommandStop, Turn: turn})
		},
		"conversation is deleted": func(h *testGateway, c, _ string) { h.as(alice, c, gateway.Command{Type: gateway.CommandDelete}) },
		"agent is silent":         func(*testGateway, string, string) { time.Sleep(gateway.DefaultSilence + time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestGateway(t, nil, one(waiting), limits(quota.Limits{Turns: 2}, quota.Limits{}))
				defer h.close()
				c, other := h.create(alice), h.create(alice)
				running := h.as(alice, c, say("one")).Turn
				queued := h.as(alice, c, say("two")).Turn
				h.limited(alice, other, say("three"), gateway.ReasonQuota)
				end(h, c, queued)
				if name == "agent is silent" {
					h.ended(c, running)
				}
				h.as(alice, other, say("three"))
			})
		})
	}
	t.Run("completed and failed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newTestGateway(t, nil, gateway.Agents{
				"a":    {Agent: agentFunc(func(context.Context, agent.Input, *agent.Emitter) error { return nil })},
				"fail": {Agent: agentFunc(func(context.Context, agent.Input, *agent.Emitter) error { panic("no") })},
				"said": {Agent: agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
					return out.End(event.Failed, "", nil)
				})},
			}, limits(quota.Limits{Turns: 1}, quota.Limits{}))
			defer h.close()
			c := h.create(alice)
			for _, name := range []string{"a", "fail", "said", "a"} {
				cmd := say("go")
				cmd.Agent = name
				h.ended(c, h.as(alice, c, cmd).Turn)
				synctest.Wait()
			}
		})
	})
}

// A refused command leaves nothing behind, not even its key.
func TestRefusedIsAsNeverAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(waiting), limits(quota.Limits{Turns: 1, Messages: 3}, quota.Limits{}))
		defer h.close()
		c := h.create(alice)
		first := h.as(alice, c, keyed("1", "one"))
		h.limited(alice, c, keyed("2", "two"), gateway.ReasonQuota)
		if again := h.as(alice, c, keyed("1", "one")); !again.Repeated || again.Turn != first.Turn {
			t.Errorf("a repeat at the limit gets %+v", again)
		}
		if _, err := h.Do(t.Context(), alice, c, keyed("1", "other")); !strings.Contains(fmt.Sprint(err), "another body") {
			t.Errorf("the same key with another body at the limit: %v", err)
		}
		stop := gateway.Command{Type: gateway.CommandStop, Turn: first.Turn, Key: "2"}
		h.as(alice, c, stop) // a stop needs no quota
		second := h.as(alice, c, keyed("2", "two"))
		if second.Repeated {
			t.Error("the refused key was burned")
		}
		h.as(alice, c, gateway.Command{Type: gateway.CommandStop, Turn: second.Turn})
		third := h.as(alice, c, keyed("3", "three"))
		h.as(alice, c, gateway.Command{Type: gateway.CommandStop, Turn: third.Turn})
		// Three messages count. Refused ones don't.
		if wait := h.limited(alice, c, keyed("4", "four"), gateway.ReasonRateLimited); wait != 20*time.Second {
			t.Errorf("wait %v, want 20s", wait)
		}
		h.limited(alice, c, gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "x"}}, gateway.ReasonRateLimited)
		if _, _, err := h.Push(t.Context(), alice, c, push.Options{Dialect: "eliza-actions", Key: "p"}); wantLimited(t, err, gateway.ReasonRateLimited) != 20*time.Second {
			t.Error("a push waits for another time")
		}
		time.Sleep(20 * time.Second)
		if ack := h.as(alice, c, keyed("4", "four")); ack.Repeated {
			t.Error("the refused key was burned")
		}
		wantTexts(t, h.view(c), "user: one", "user: two", "user: three", "user: four")
	})
}

// After a restart or a kill, unfinished turns count as before.
func TestTurnsCountAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := gateway.Agents{"a": {Agent: counter{3600}}, "lost": {Agent: waiting}}
		bound := limits(quota.Limits{Turns: 4}, quota.Limits{})
		h := newTestGateway(t, nil, agents, bound)
		c, d, lost := h.create(alice), h.create(alice), h.create(alice)
		h.as(alice, c, say("one"))
		queued := h.as(alice, c, say("two")).Turn
		h.as(alice, d, say("three"))
		cmd := say("four")
		cmd.Agent = "lost"
		h.as(alice, lost, cmd)
		h.limited(alice, d, say("five"), gateway.ReasonQuota)
		synctest.Wait()
		disk := h.kill()
		h.close()

		h = newTestGateway(t, disk, agents, bound)
		synctest.Wait()
		// The turn that can't be resumed has ended; three are unfinished.
		five := h.as(alice, lost, say("five")).Turn
		h.limited(alice, lost, say("six"), gateway.ReasonQuota)
		h.as(bob, h.create(bob), say("one"))
		h.as(alice, c, gateway.Command{Type: gateway.CommandStop, Turn: queued})
		h.as(alice, lost, say("six"))
		h.limited(alice, lost, say("seven"), gateway.ReasonQuota)
		h.as(alice, lost, gateway.Command{Type: gateway.CommandStop, Turn: five})
		h.close()

		h = newTestGateway(t, disk, agents, bound)
		defer h.close()
		h.as(alice, d, say("eight"))
		h.limited(alice, d, say("nine"), gateway.ReasonQuota)
	})
}

// A failed commit cancels its reservation. If the result is unknown, the reservation stays until the log is read again.
func TestTurnsCountAfterAFailedCommit(t *testing.T) {
	for name, fate := range map[string]error{"failed": journal.ErrFenced, "unknown": journal.ErrUnknown} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestGateway(t, nil, one(waiting), limits(quota.Limits{Turns: 1, Messages: 2}, quota.Limits{}))
				defer h.close()
				c, d := h.create(alice), h.create(alice)
				h.journal.fail(fate)
				if _, err := h.Do(t.Context(), alice, c, say("one")); !errors.Is(err, gateway.ErrUnavailable) {
					t.Fatal(err)
				}
				h.journal.fail(nil)
				if name == "unknown" {
					h.limited(alice, d, say("two"), gateway.ReasonQuota)
					time.Sleep(2 * time.Second) // opens the conversation again
				}
				h.as(alice, d, say("two"))
				h.limited(alice, d, say("three"), gateway.ReasonQuota)
			})
		})
	}
}

func TestBytesAreBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 100 << 10
		j := memory.New()
		quick := one(agentFunc(func(_ context.Context, in agent.Input, out *agent.Emitter) error { return out.Text(in.Message.Text) }))
		h := newTestGateway(t, j, quick, limits(quota.Limits{Bytes: limit}, quota.Limits{}))
		c := h.create(alice)
		text := strings.Repeat("x", 10<<10)
		said := 0
		for {
			ack, err := h.Do(t.Context(), alice, c, keyed(fmt.Sprint(said), text))
			if err != nil {
				wantLimited(t, err, gateway.ReasonQuota)
				break
			}
			h.ended(c, ack.Turn)
			said++
		}
		// Each message was echoed.
		if said < 4 || said > 6 {
			t.Errorf("%d messages of 10 KiB and as many answers in 100 KiB", said)
		}
		h.limited(alice, c, gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: text}}, gateway.ReasonQuota)
		title := strings.Repeat("x", 1000)
		for i := range 100 {
			if _, _, err := h.Create(t.Context(), alice, gateway.CreateOptions{Title: title, Key: fmt.Sprint("k", i)}); err != nil {
				wantLimited(t, err, gateway.ReasonQuota)
				break
			}
			if i == 99 {
				t.Error("a hundred conversations more were made")
			}
		}
		h.as(bob, h.create(bob), say(text))
		h.close()

		// The figure is the same after a restart.
		h = newTestGateway(t, j, quick, limits(quota.Limits{Bytes: limit}, quota.Limits{}))
		defer h.close()
		again := keyed(fmt.Sprint(said), text)
		h.limited(alice, c, again, gateway.ReasonQuota)
		_, err := h.Do(t.Context(), alice, c, keyed("0", text))
		if err != nil {
			t.Errorf("a repeat: %v", err)
		}
		// A truncate frees bytes once the log is compacted, and so does a delete.
		h.as(alice, c, gateway.Command{Type: gateway.CommandTruncate})
		synctest.Wait()
		if ack := h.as(alice, c, again); ack.Repeated {
			t.Error("the refused key was burned")
		}
		h.as(alice, c, gateway.Command{Type: gateway.CommandDelete})
		d := h.create(alice)
		for range said {
			h.ended(d, h.as(alice, d, say(text)).Turn)
		}
	})
}

func TestViewersAreBound(t *testing.T) {
	h := newTestGateway(t, nil, one(waiting), limits(quota.Limits{Viewers: 2}, quota.Limits{Viewers: 3}))
	defer h.close()
	view := func(p gateway.Principal) func() {
		t.Helper()
		leave, err := h.AddViewer(p)
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	leave := view(alice)
	view(alice)
	_, err := h.AddViewer(alice)
	wantLimited(t, err, gateway.ReasonQuota)
	view(bob)
	_, err = h.AddViewer(bob)
	wantLimited(t, err, gateway.ReasonQuota)
	leave()
	leave()
	view(bob)
	view(carol)
	for range 10 {
		view(admin)
	}
}
