package gateway_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

func TestTitleOf(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		" \n\t ":                "",
		"---":                   "",
		"Hello":                 "Hello",
		"  Hello,\t you \nrest": "Hello, you",
		"\n\n# A **plan** #":    "A plan",
		"> quoted\nmine":        "quoted",
		"```go\nfunc f()\n```":  "func f()",
		"*emphasis*":            "emphasis",
		"🎉":                     "🎉",
		"\x00ab\x07c":           "ab c",
		"What is the best way to learn to play the piano as a grown-up person?": "What is the best way to learn to play the piano as a…",
		strings.Repeat("x", 61):                      strings.Repeat("x", 59) + "…",
		strings.Repeat("é", 60):                      strings.Repeat("é", 60),
		"y " + strings.Repeat("z", 70):               "y " + strings.Repeat("z", 57) + "…",
		strings.Repeat(" ", 5000) + "too far behind": "",
	} {
		if got := gateway.TitleOf(text); got != want {
			t.Errorf("%.70q: %q, want %q", text, got, want)
		}
	}
}

// The first message of a conversation's owner names it, once, in the commit of the message.
func TestTitles(t *testing.T) {
	quiet := agentFunc(func(context.Context, agent.Input, *agent.Emitter) error { return nil })
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(quiet), func(c *gateway.Config) { c.Titles = true })
		defer h.close()
		title := func(id string) string {
			t.Helper()
			s, err := h.Conversation(t.Context(), admin, gateway.ActionRead, id)
			if err != nil {
				t.Fatal(err)
			}
			return s.Title
		}
		send := func(p gateway.Principal, id, text string) {
			t.Helper()
			ack, err := h.Do(t.Context(), p, id, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: text}})
			if err != nil {
				t.Fatal(err)
			}
			h.ended(id, ack.Turn)
		}
		conv := h.create(alice)
		h.do(conv, gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "good morning"}})
		h.do(conv, gateway.Command{Type: gateway.CommandShare, Subject: "bob", Access: gateway.AccessWrite})
		send(bob, conv, "a guest's words")
		if got := title(conv); got != "" {
			t.Errorf("an agent or a guest made the title %q", got)
		}
		send(alice, conv, "***")
		send(alice, conv, "First words\nand more")
		send(alice, conv, "second")
		if got := title(conv); got != "First words" {
			t.Errorf("title %q", got)
		}
		if got, err := gateway.FirstTitle(t.Context(), h.Gateway, alice, conv); got != "First words" || err != nil {
			t.Errorf("made again: %q, %v", got, err)
		}
		s, _, err := h.Create(t.Context(), alice, gateway.CreateOptions{Messages: []gateway.CommandMessage{{Role: event.System, Text: "be kind"}, {Text: "before"}, {Text: "after"}}})
		if err != nil || title(s.ID) != "before" {
			t.Errorf("with messages: %q, %v", title(s.ID), err)
		}
		s, _, err = h.Create(t.Context(), alice, gateway.CreateOptions{Title: "Mine"})
		if err != nil {
			t.Fatal(err)
		}
		if send(alice, s.ID, "hello"); title(s.ID) != "Mine" {
			t.Errorf("a given title became %q", title(s.ID))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(quiet), nil)
		defer h.close()
		conv := h.create(alice)
		h.ended(conv, h.send(conv, "hello").Turn)
		if s, err := h.Conversation(t.Context(), admin, gateway.ActionRead, conv); err != nil || s.Title != "" {
			t.Errorf("unasked: %q, %v", s.Title, err)
		}
	})
}

// Older messages from elsewhere are added to an empty conversation once.
func TestFill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, nil, func(c *gateway.Config) { c.Titles, c.MaxMessage = true, 100 })
		defer h.close()
		conv := h.create(alice)
		h.do(conv, gateway.Command{Type: gateway.CommandShare, Subject: "bob", Access: gateway.AccessWrite})
		past := []gateway.BackfillMessage{{Role: event.User, Text: "a", At: 20}, {Role: event.Assistant, Text: "b", At: 10}, {Role: event.User, Text: "c"}}
		for who, want := range map[*gateway.Principal]error{&bob: gateway.ErrForbidden, {Tenant: "t2", Subject: "alice"}: gateway.ErrNotFound} {
			if filled, err := h.Backfill(t.Context(), *who, conv, "", past); filled || err != want {
				t.Errorf("%s: %t, %v, want %v", who.Subject, filled, err, want)
			}
		}
		if _, err := h.Backfill(t.Context(), alice, conv, "", []gateway.BackfillMessage{{Role: event.User, Text: strings.Repeat("x", 101)}}); err == nil {
			t.Error("too much was taken")
		}
		for i, want := range []bool{true, false} {
			if filled, err := h.Backfill(t.Context(), alice, conv, "", past); filled != want || err != nil {
				t.Errorf("time %d: %t, %v", i, filled, err)
			}
		}
		s, err := h.Conversation(t.Context(), alice, gateway.ActionRead, conv)
		if err != nil || s.Title != "a" {
			t.Errorf("title %q, %v", s.Title, err)
		}
		r, err := h.journal.Read(t.Context(), conv, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		at := []int64{20, 20, s.Updated}
		for _, e := range r.Events {
			if e.Type != event.MessageAdd {
				continue
			}
			if len(at) == 0 || e.At != at[0] || e.Body.Source != "import" {
				t.Fatalf("at %d %+v, want %v", e.At, e.Body, at)
			}
			at = at[1:]
		}
		if len(at) > 0 {
			t.Errorf("%d are missing", len(at))
		}
	})
}
