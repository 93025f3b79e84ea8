package eliza

import (
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/internal/gateway"
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
