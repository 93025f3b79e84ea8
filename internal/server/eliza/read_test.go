package eliza

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/store/journal"
)

// The list marks unread conversations. A read request or the delivery of the answer marks them as read.
func TestUnread(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		t := h.t
		c := h.create()
		unread := func(what string, want bool) conversation {
			t.Helper()
			synctest.Wait()
			var l struct{ Conversations []conversation }
			h.do(200, &l, "GET", "/api/conversations", "")
			var one conversationResponse
			h.do(200, &one, "GET", at(c, ""), "")
			got := l.Conversations[0]
			if got.Unread != want || one.Conversation.Unread != want || got.Read != one.Conversation.Read {
				t.Errorf("%s: listed %+v, is %+v", what, got, one.Conversation)
			}
			return got
		}
		note := func() int64 {
			t.Helper()
			ack, err := h.gw.Do(t.Context(), gateway.Principal{Admin: true}, c, gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "note"}})
			if err != nil {
				t.Fatal(err)
			}
			return ack.Seq
		}
		unread("new", false)
		seq := note()
		unread("injected", true)
		var out struct {
			OK     bool
			Unread bool
			Read   int64
		}
		h.do(200, &out, "POST", at(c, "/read"), `{}`)
		if !out.OK || out.Unread || out.Read != seq {
			t.Errorf("read: %+v, want %d", out, seq)
		}
		if got := unread("read", false); got.Read != seq {
			t.Errorf("read up to %d, not %d", got.Read, seq)
		}
		note()
		h.do(200, &out, "POST", at(c, "/read"), `{"seq":1}`)
		if !out.Unread || out.Read != seq {
			t.Errorf("read less: %+v", out)
		}
		unread("read less", true)
		h.send(c, "hi") // the reader of an answer has seen the messages before it
		unread("answered", false)
		if w := h.stream("POST", at(c, "/messages/stream"), `{"text":"again"}`).wait(); w.text == "" {
			t.Error("nothing was streamed")
		}
		unread("streamed", false)
		h.messages(c)
		note()
		h.messages(c) // fetching the list marks nothing as read, because any program may do that
		unread("only listed", true)
		h.refused(404, "Conversation not found", "POST", at("none", "/read"), `{}`)
		h.refused(400, "invalid seq -1", "POST", at(c, "/read"), `{"seq":-1}`)
	})
}

// A list shows which conversations wait for a person, and sockets learn when one begins and ceases to.
func TestWaiting(t *testing.T) {
	ask := agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		_, err := out.Ask(ctx, event.Request{ID: "q", Kind: event.RequestApproval})
		return err
	})
	bubble(t, ask, func(h *harness) {
		t := h.t
		c := h.create()
		listed := func(want bool) {
			t.Helper()
			synctest.Wait()
			var l struct{ Conversations []conversation }
			h.do(200, &l, "GET", "/api/conversations", "")
			if l.Conversations[0].IsWaiting != want {
				t.Errorf("listed %+v, want waiting %v", l.Conversations[0], want)
			}
		}
		admin := gateway.Principal{Admin: true}
		listed(false)
		ack, err := h.gw.Do(t.Context(), admin, c, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "go"}})
		if err != nil {
			t.Fatal(err)
		}
		listed(true)
		if _, err := h.gw.Do(t.Context(), admin, c, gateway.Command{Type: gateway.CommandAnswer, Turn: ack.Turn, Request: "q", Decision: event.Approve}); err != nil {
			t.Fatal(err)
		}
		listed(false)
	})
	var sent []string
	u := &Updates{Send: func(f hub.Frame) { sent = append(sent, string(f.JSON)) }}
	u.Committed(&journal.Summary{ID: "c", WaitingTurns: []string{"t"}}, []event.Event{{Type: event.TurnWait, Turn: "t"}})
	u.Committed(&journal.Summary{ID: "c"}, []event.Event{{Type: event.TurnResume, Turn: "t"}})
	if len(sent) != 2 || !strings.Contains(sent[0], `"waiting":true`) || strings.Contains(sent[1], "waiting") {
		t.Errorf("sent %q", sent)
	}
}
