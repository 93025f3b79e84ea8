package openclaw

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
)

// Sessions are created, listed, renamed, emptied and deleted, and unknown ones are refused.
func TestSessions(t *testing.T) {
	h := newHarness(t)
	c := h.connect("ui")
	c.call("sessions.subscribe", nil)
	c.send("agent:max:notes", "r", "hello")
	text := ""
	c.finish("r", &text)
	c.call("sessions.patch", map[string]any{"key": "agent:max:notes", "label": "My notes"})
	list := c.call("sessions.list", map[string]any{"search": "my notes"})
	rows := list["sessions"].([]any)
	if len(rows) != 1 || list["defaults"].(map[string]any)["model"] != "eliza" {
		t.Fatalf("list %v", list)
	}
	row := rows[0].(map[string]any)
	if row["key"] != "agent:Max:notes" || row["agentId"] != "Max" || row["displayName"] != "My notes" || row["hasActiveRun"] != false {
		t.Errorf("row %v", row)
	}
	if got := c.call("sessions.list", map[string]any{"agentId": "eliza"}); got["count"] != 0.0 {
		t.Errorf("list of another agent: %v", got)
	}
	if got := c.refused("sessions.patch", map[string]any{"key": "agent:max:notes", "model": "leat/eliza"}); !strings.Contains(got["message"].(string), "model can't be changed") {
		t.Errorf("patch of the model: %v", got)
	}
	created := c.call("sessions.create", map[string]any{"agentId": "eliza", "label": "New"})
	key := created["key"].(string)
	c.send(key, "r2", "slow")
	c.call("sessions.reset", map[string]any{"key": key})
	if e := c.finish("r2", new(string)); e["state"] != "aborted" {
		t.Errorf("a reset ends the run with %v", e)
	}
	if got := c.call("chat.history", map[string]any{"sessionKey": key})["messages"].([]any); len(got) != 0 {
		t.Errorf("after a reset: %v", got)
	}
	if got := c.call("sessions.delete", map[string]any{"key": key}); got["deleted"] != true {
		t.Errorf("delete: %v", got)
	}
	if got := c.call("sessions.describe", map[string]any{"key": key}); got["session"] != nil {
		t.Errorf("deleted, and described as %v", got)
	}
	for _, p := range []map[string]any{{"key": "agent:max:notes"}, {"reference": map[string]any{"key": "agent:max:notes"}}, {"label": "My notes"}, {"sessionId": row["sessionId"]}} {
		if got := c.call("sessions.resolve", p); got["ok"] != true || got["key"] != "agent:Max:notes" || got["displayName"] != "My notes" {
			t.Errorf("resolve %v: %v", p, got)
		}
	}
	for range 2 {
		c.call("sessions.create", map[string]any{"agentId": "eliza", "label": "Twin"})
	}
	if got := c.call("sessions.resolve", map[string]any{"label": "Twin", "allowMissing": true}); got["ok"] != false || len(got["candidates"].([]any)) != 2 {
		t.Errorf("resolve of two sessions with one title: %v", got)
	}
	id := strings.ReplaceAll(row["sessionId"].(string), "-", "")
	for _, p := range []map[string]any{{"shortId": id}, {"shortId": id[:20], "agentId": "max", "allowMissing": true}, {"shortId": id[:8], "slugHint": "my-notes", "allowMissing": true}} {
		if got := c.call("sessions.resolve", p); got["ok"] != true || got["key"] != "agent:Max:notes" || got["displayName"] != "My notes" {
			t.Errorf("resolve %v: %v", p, got)
		}
	}
	if got := c.call("sessions.resolve", map[string]any{"shortId": "none", "allowMissing": true}); got["ok"] != false {
		t.Errorf("resolve of an unknown session: %v", got)
	}
	c.refused("sessions.resolve", map[string]any{"key": "agent:max:none"})
	c.refused("sessions.delete", map[string]any{"key": "main"})
	c.refused("sessions.patch", map[string]any{"key": "agent:eliza:none", "label": "x"})
	c.refused("chat.send", map[string]any{"sessionKey": "agent:nobody:x", "message": "x", "idempotencyKey": "r3"})
}

// A session whose conversation was deleted elsewhere begins again under its key.
func TestDeletedElsewhere(t *testing.T) {
	h := newHarness(t)
	c := h.connect("ui")
	c.send(mainKey, "r", "hello")
	c.finish("r", new(string))
	id := c.call("chat.history", map[string]any{"sessionKey": mainKey})["sessionId"].(string)
	if _, err := h.gw.Do(t.Context(), admin, id, gateway.Command{Type: gateway.CommandDelete}); err != nil {
		t.Fatal(err)
	}
	if e := c.next("sessions.changed"); e["reason"] != "delete" || e["sessionKey"] != mainKey {
		t.Errorf("event %v", e)
	}
	c.send(mainKey, "r2", "hello")
	text := ""
	if c.finish("r2", &text); text != "re: hello" {
		t.Errorf("text %q", text)
	}
	if got := c.call("chat.history", map[string]any{"sessionKey": mainKey}); got["sessionId"] == id || len(got["messages"].([]any)) != 2 {
		t.Errorf("history %v", got)
	}
}

// A connection can subscribe to a limited number of sessions. What is beyond it is refused, and not ignored.
func TestSubscriptions(t *testing.T) {
	h := newHarness(t)
	c := h.connect("ui")
	for i := range maxSessions {
		c.call("sessions.messages.subscribe", map[string]any{"key": fmt.Sprint("s", i)})
	}
	c.call("sessions.messages.subscribe", map[string]any{"key": "s0"})
	if got := c.refused("sessions.messages.subscribe", map[string]any{"key": mainKey}); got["code"] != "UNAVAILABLE" {
		t.Errorf("one too many: %v", got)
	}
	if got := c.call("sessions.messages.unsubscribe", map[string]any{"key": "s0"}); got["subscribed"] != false {
		t.Errorf("unsubscribed: %v", got)
	}
	c.call("sessions.messages.subscribe", map[string]any{"key": mainKey})
	c.send(mainKey, "r", "hello")
	if got := c.next("session.message"); got["sessionKey"] != mainKey {
		t.Errorf("message %v", got)
	}
}

// Two users with the same key have two sessions, and neither sees the other's.
func TestPrincipals(t *testing.T) {
	h := newHarness(t)
	alice, bob := h.connectAs("ui", "user-alice"), h.connectAs("ui", "user-bob")
	alice.send(mainKey, "same-run", "secret of alice")
	alice.finish("same-run", new(string))
	bob.send(mainKey, "same-run", "hello")
	text := ""
	if bob.finish("same-run", &text); text != "re: hello" {
		t.Errorf("bob got %q", text)
	}
	id := alice.call("chat.history", map[string]any{"sessionKey": mainKey})["sessionId"].(string)
	for _, key := range []string{keyOf("eliza", id), keyOf("eliza", prefixForeign+id)} {
		if got := bob.call("chat.history", map[string]any{"sessionKey": key}); len(got["messages"].([]any)) != 0 {
			t.Errorf("bob reads %v", got)
		}
		if got := bob.call("sessions.describe", map[string]any{"key": key}); got["session"] != nil {
			t.Errorf("bob sees %v", got)
		}
		bob.call("chat.abort", map[string]any{"sessionKey": key})
	}
	bob.refused("chat.send", map[string]any{"sessionKey": keyOf("eliza", prefixForeign+id), "message": "x", "idempotencyKey": "x"})
	if got := bob.call("sessions.list", nil); got["count"] != 1.0 {
		t.Errorf("bob's list %v", got)
	}
}

// The agents are listed in the way that the Control UI needs.
func TestAgents(t *testing.T) {
	h := newHarness(t)
	c := h.connect("ui")
	got := c.call("agents.list", nil)
	agents := got["agents"].([]any)
	if got["defaultId"] != "eliza" || len(agents) != 2 || agents[0].(map[string]any)["model"].(map[string]any)["primary"] != "leat/Max" {
		t.Errorf("agents %v", got)
	}
	if got := c.call("models.list", nil)["models"].([]any); len(got) != 2 {
		t.Errorf("models %v", got)
	}
	if got := c.call("agent.identity.get", map[string]any{"agentId": "max"}); got["name"] != "Max" {
		t.Errorf("identity %v", got)
	}
	if got := c.call("health", nil); got["ok"] != true {
		t.Errorf("health %v", got)
	}
}
