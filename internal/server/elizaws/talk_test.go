package elizaws

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// said returns the messages of a conversation with their sources.
func (h *harness) said(conversation string) string {
	h.t.Helper()
	var all []string
	err := h.gw.ViewTranscript(h.t.Context(), admin, conversation, func(t *transcript.Transcript) bool {
		for _, m := range t.Messages {
			all = append(all, fmt.Sprintf("%s:%s:%s", m.Role, m.Source, m.Visible()))
		}
		return true
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// The conversation that an agent's unasked message is added to.
func TestTalk(t *testing.T) {
	h := newHarness(t, nil)
	speak := func(data, room, want string, headers ...string) {
		t.Helper()
		h.wantCall(200, want, "POST", "/api/agent/event", `{"stream":"assistant","data":`+data+`,"roomId":"`+room+`"}`, headers...)
	}
	create := func(p gateway.Principal, id string) string {
		t.Helper()
		c, _, err := h.gw.Create(t.Context(), p, gateway.CreateOptions{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	first := create(alice, "hers-1")
	speak(`{"text":"to nobody"}`, "", `{"ok":true,"eventId":"evt-1"}`) // the admin has no conversation
	h.wantCall(404, "no conversation for this message", "POST", "/api/agent/event", `{"stream":"assistant","data":{"text":"x"}}`, as("bob")...)
	old := create(admin, "old")
	recent := create(admin, "recent")
	h.send(admin, recent, "hi")
	hers := create(alice, "hers-2")
	h.send(alice, hers, "hi") // the most recent one
	speak(`{"text":" to the recent "}`, "", `"conversationId":"recent","messageId":"`)
	c := h.greeted("")
	look := func(c *client, id string) {
		t.Helper()
		c.send(`{"type":"active-conversation","conversationId":"` + id + `"}`).send(`{"type":"ping"}`)
		for c.next().Type != "pong" {
			continue // earlier frames don't matter
		}
	}
	look(c, old)
	speak(`{"text":"to the active","source":"pulse"}`, "", `"conversationId":"old"`)
	speak(`{"text":"to the named","source":"pulse"}`, recent, `"conversationId":"recent"`)
	look(c, "no such")
	speak(`{"text":"to the recent again"}`, "", `"conversationId":"recent"`)
	for room, data := range map[string]string{"": `{"text":"x","source":"client_chat"}`, old: `{"text":"of a turn"}`, recent: `{"text":" "}`} {
		speak(data, room, `"eventId":"evt-`)
	}
	speak(`{"text":7}`, old, `"eventId":"evt-`)
	speak(`"text"`, old, `"eventId":"evt-`)
	h.wantCall(200, `"eventId":"evt-`, "POST", "/api/agent/event", `{"stream":"thought","data":{"text":"x","source":"s"},"roomId":"old"}`)
	h.wantCall(400, "must be text of at most", "POST", "/api/agent/event", `{"stream":"assistant","data":{"text":"x"},"agentId":"`+strings.Repeat("x", 300)+`"}`)
	for id, want := range map[string]string{
		old:    "assistant:pulse:to the active",
		recent: "user:web:hi assistant::re: hi assistant:autonomy:to the recent assistant:pulse:to the named assistant:autonomy:to the recent again",
	} {
		if got := h.said(id); got != want {
			t.Errorf("%s: %s", id, got)
		}
	}

	// A user's agent writes to the user's conversations, and its event is visible to their readers.
	speak(`{"text":"to hers"}`, "", `"conversationId":"`+hers+`"`, as("alice")...)
	h.wantCall(404, "not found", "POST", "/api/agent/event", `{"stream":"assistant","data":{"text":"x","source":"s"},"roomId":"`+hers+`"}`, as("bob")...)
	h.wantCall(200, `"roomId":"`+hers+`","payload":{"text":"to hers"}`, "GET", "/api/agent/events?limit=1000", "", as("alice")...)
	share := gateway.Command{Type: gateway.CommandShare, Subject: "bob", Access: gateway.AccessWrite}
	if _, err := h.gw.Do(t.Context(), alice, first, share); err != nil {
		t.Fatal(err)
	}
	bobs := create(gateway.Principal{Tenant: "t1", Subject: "bob"}, "his")
	b := h.greeted("", as("bob")...)
	look(b, first) // a guest's agent does not write to it
	speak(`{"text":"to his"}`, "", `"conversationId":"`+bobs+`"`, as("bob")...)
	if got := h.said(bobs); got != "assistant:autonomy:to his" {
		t.Error(got)
	}

	quiet := gateway.Principal{Tenant: "t1", Subject: "bob", Scopes: []string{gateway.ScopeWrite}}
	if _, err := (&surface{gw: h.gw, Options: Options{Hub: h.hub}}).room(t.Context(), quiet, ""); !errors.Is(err, gateway.ErrForbidden) {
		t.Errorf("who may not speak as the agent: %v", err)
	}

	// A repeat with the same key adds no second message.
	for range 2 {
		speak(`{"text":"once"}`, "", `"conversationId":"`+bobs+`"`, append(as("bob"), "Idempotency-Key", "k")...)
	}
	if got := strings.Count(h.said(bobs), "once"); got != 1 {
		t.Errorf("said %d times", got)
	}
}
