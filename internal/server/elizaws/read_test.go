package elizaws

import (
	"context"
	"fmt"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
)

// A read position set on one socket reaches all sockets of that user. New messages in an open conversation are read at once.
func TestRead(t *testing.T) {
	h := newHarness(t, nil)
	conv := h.create(alice)
	other := h.create(alice)
	phone, desk, bob := h.greeted("", as("alice")...), h.greeted("", as("alice")...), h.greeted("", as("bob")...)
	for _, c := range []*client{phone, desk, bob} {
		c.reads = true
		c.send(`{"type":"ping"}`).want("pong") // the socket has joined
	}
	note := func(conv string) (seq int64) {
		t.Helper()
		ack, err := h.gw.Do(context.Background(), alice, conv, gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "note"}})
		if err != nil {
			t.Fatal(err)
		}
		return ack.Seq
	}
	want := func(c *client, conv string, unread bool, read int64) {
		t.Helper()
		if f := c.want("conversation-read"); f.raw != fmt.Sprintf(`{"type":"conversation-read","conversationId":"%s","unread":%t,"read":%d}`, conv, unread, read) {
			t.Errorf("got %s", f.raw)
		}
	}
	at := func(p gateway.Principal, conv string) gateway.Position {
		t.Helper()
		s, err := h.gw.Conversation(t.Context(), p, gateway.ActionRead, conv)
		if err != nil {
			t.Fatal(err)
		}
		at, err := h.gw.Position(t.Context(), p, &s)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	first := note(conv)
	want(phone, conv, true, 0)
	want(desk, conv, true, 0)
	phone.send(`{"type":"active-conversation","conversationId":"` + conv + `"}`) // opening it marks it as read
	want(phone, conv, false, first)
	want(desk, conv, false, first)
	second := note(conv) // the phone has it open
	want(phone, conv, false, second)
	want(desk, conv, false, second)
	phone.send(`{"type":"active-conversation","conversationId":null}`).send(`{"type":"ping"}`).want("pong")
	third := note(conv)
	want(phone, conv, true, second)
	want(desk, conv, true, second)
	for _, s := range []string{
		`{"type":"conversation-read"}`, `{"type":"conversation-read","conversationId":7}`, `{"type":"conversation-read","conversationId":"none"}`,
		`{"type":"conversation-read","conversationId":"` + conv + `","seq":-1}`, `{"type":"conversation-read","conversationId":"` + conv + `","seq":"x"}`,
	} {
		desk.send(s)
	}
	bob.send(`{"type":"conversation-read","conversationId":"` + conv + `"}`)
	desk.send(`{"type":"conversation-read","conversationId":"` + conv + `","seq":` + fmt.Sprint(third) + `}`)
	want(desk, conv, false, third)
	want(phone, conv, false, third)
	fourth := note(other)
	want(phone, other, true, 0)
	desk.send(`{"type":"conversation-read","conversationId":"` + other + `"}`)
	want(phone, other, false, fourth)
	if p := at(alice, conv); p.Unread || p.Read != third {
		t.Errorf("it is kept as %+v", p)
	}
	bob.send(`{"type":"ping"}`).want("pong") // bob got no frame about it
}
