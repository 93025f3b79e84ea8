package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// position returns a principal's position, computed from the current summary.
func (h *testGateway) position(p gateway.Principal, conv string) gateway.Position {
	h.t.Helper()
	s, err := h.Conversation(h.t.Context(), p, gateway.ActionRead, conv)
	if err != nil {
		h.t.Fatal(err)
	}
	at, err := h.Position(h.t.Context(), p, &s)
	if err != nil {
		h.t.Fatal(err)
	}
	return at
}

func (h *testGateway) read(p gateway.Principal, conv string, seq int64) gateway.Position {
	h.t.Helper()
	at, err := h.MarkRead(h.t.Context(), p, conv, seq)
	if err != nil {
		h.t.Fatal(err)
	}
	if is := h.position(p, conv); is != at {
		h.t.Errorf("it is %+v, not %+v", is, at)
	}
	return at
}

// Messages, questions and ends are unread for the owner and guests, until they mark them as read.
func TestPositions(t *testing.T) {
	say := agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		if in.Message.Text == "ask" {
			_, err := out.Ask(ctx, event.Request{ID: "r", Kind: event.RequestApproval})
			return err
		}
		return out.Text("hello")
	})
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(say), nil)
		defer h.close()
		conv := h.create(alice)
		want := func(what string, at gateway.Position, read int64, unread bool) {
			t.Helper()
			if at != (gateway.Position{Read: read, Unread: unread}) {
				t.Errorf("%s: %+v", what, at)
			}
		}
		want("new", h.position(alice, conv), 0, false)
		h.do(conv, gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "x", Role: event.User}})
		want("of a person", h.position(alice, conv), 0, false)
		first := h.do(conv, gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "note"}}).Seq
		want("injected", h.position(alice, conv), 0, true)
		want("to the admin", h.position(admin, conv), 0, false)
		want("read a part", h.read(alice, conv, first-1), first-1, true)
		want("read", h.read(alice, conv, 0), first, false)
		want("it does not fall", h.read(alice, conv, 1), first, false)

		h.ended(conv, h.send(conv, "hi").Turn)
		synctest.Wait()
		s, err := h.Conversation(t.Context(), alice, gateway.ActionRead, conv)
		if err != nil {
			t.Fatal(err)
		}
		want("answered", h.position(alice, conv), first, true)
		want("beyond the end", h.read(alice, conv, s.Head+100), s.Head, false)
		turn := h.send(conv, "ask").Turn
		synctest.Wait()
		want("asked", h.position(alice, conv), s.Head, true)
		h.read(alice, conv, 0)
		h.do(conv, gateway.Command{Type: gateway.CommandStop, Turn: turn})
		if h.position(alice, conv).Unread {
			t.Error("what was stopped is unread")
		}

		for who, wrong := range map[*gateway.Principal]error{&bob: gateway.ErrNotFound, {}: gateway.ErrForbidden} {
			if _, err := h.MarkRead(t.Context(), *who, conv, 0); !errors.Is(err, wrong) {
				t.Errorf("%q: %v", who.Subject, err)
			}
		}
		var r *gateway.Rejection
		if _, err := h.MarkRead(t.Context(), alice, conv, -1); !errors.As(err, &r) {
			t.Errorf("below nothing: %v", err)
		}

		// A guest has its own position, which is deleted when the guest loses access.
		share := gateway.Command{Type: gateway.CommandShare, Subject: "bob", Access: gateway.AccessRead}
		h.do(conv, share)
		want("to a guest", h.position(bob, conv), 0, true)
		h.read(bob, conv, 0)
		keys := func() (n int) {
			t.Helper()
			all, err := h.journal.Keys(t.Context(), gateway.PositionPrefix)
			if err != nil {
				t.Fatal(err)
			}
			for _, kv := range all {
				if strings.Contains(kv.Key, "alice") || strings.Contains(kv.Key, "bob") || !gateway.PositionOf(kv.Key, "t1", "alice") && !gateway.PositionOf(kv.Key, "t1", "bob") {
					t.Errorf("key %s", kv.Key)
				}
			}
			return len(all)
		}
		if n := keys(); n != 2 {
			t.Errorf("%d positions", n)
		}
		h.do(conv, gateway.Command{Type: gateway.CommandUnshare, Subject: "bob"})
		if n := keys(); n != 1 {
			t.Errorf("%d positions after one was let out", n)
		}
		h.do(conv, gateway.Command{Type: gateway.CommandDelete})
		if n := keys(); n != 0 {
			t.Errorf("%d positions after the delete", n)
		}
	})
}

// Followers get each changed conversation once.
func TestFollowPositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, nil, nil)
		defer h.close()
		conv, own := h.create(alice), h.create(admin)
		carol := gateway.Principal{Tenant: "t1", Subject: "carol"}
		all := []gateway.Principal{alice, bob, carol, {Tenant: "t2", Subject: "alice"}, admin}
		followers := make([]*gateway.Positions, len(all))
		for i, p := range all {
			followers[i] = h.Positions(p)
		}
		told := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			for i, f := range followers {
				select {
				case <-f.Changed():
				default:
				}
				if got := strings.Join(f.Take(), " "); got != want[i] {
					t.Errorf("%s: %s gets %q, want %q", what, all[i].Subject, got, want[i])
				}
			}
		}
		note := gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "note"}}
		h.do(conv, note)
		h.do(conv, note)
		told("said", conv, "", "", "", "")
		h.do(conv, gateway.Command{Type: gateway.CommandShare, Subject: "bob", Access: gateway.AccessRead})
		h.do(conv, note)
		told("shared", conv, conv, "", "", "")
		h.read(bob, conv, 0)
		told("read", "", conv, "", "", "")
		h.read(bob, conv, 0)
		told("read already", "", "", "", "", "")
		h.do(conv, gateway.Command{Type: gateway.CommandShare, Subject: gateway.WholeTenant, Access: gateway.AccessRead})
		h.do(conv, note)
		told("shared with all", conv, conv, conv, "", "")
		h.do(own, note)
		told("the admin's", "", "", "", "", own)
		for _, f := range followers {
			f.Close()
		}
		h.do(conv, note)
		told("closed", "", "", "", "", "")
	})
}
