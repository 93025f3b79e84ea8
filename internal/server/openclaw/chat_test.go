package openclaw

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// A turn with reasoning, text and a tool arrives in its order, and the history has the same afterwards.
func TestTurn(t *testing.T) {
	h := newHarness(t)
	c := h.connect("ui")
	c.call("sessions.messages.subscribe", map[string]any{"key": mainKey})
	c.send("main", "run-1", "tool")
	row := c.next("session.message")
	if m := row["message"].(map[string]any); m["idempotencyKey"] != "run-1:user" || row["sessionKey"] != mainKey {
		t.Fatalf("session.message %v", row)
	}
	var order []string
	last := 0.0
	for len(order) == 0 || order[len(order)-1] != "final" {
		var f map[string]any
		if len(c.events) > 0 {
			f, c.events = c.events[0], c.events[1:]
		} else {
			f = c.read()
		}
		p := f["payload"].(map[string]any)
		if f["event"] != "chat" && f["event"] != "agent" {
			continue
		}
		if seq := p["seq"].(float64); seq <= last {
			t.Fatalf("the number %v follows %v", seq, last)
		}
		last = p["seq"].(float64)
		name, _ := p["state"].(string)
		if data, ok := p["data"].(map[string]any); ok {
			name = p["stream"].(string)
			if phase, ok := data["phase"].(string); ok {
				name += " " + phase
			}
			if name == "tool start" && data["args"].(map[string]any)["zone"] != "UTC" {
				t.Errorf("arguments %v", data)
			}
			if name == "tool result" && (textOf(data["result"]) != "noon" || data["isError"] != false) {
				t.Errorf("result %v", data)
			}
		}
		if len(order) == 0 || order[len(order)-1] != name {
			order = append(order, name)
		}
		if name == "final" && (textOf(p["message"]) != "Before.\n\nAfter." || p["usage"].(map[string]any)["output"] != 5.0) {
			t.Errorf("final %v", p)
		}
	}
	// How many updates a tool has depends on the pace.
	got := strings.ReplaceAll(strings.Join(order, ","), "tool update,", "")
	want := "lifecycle start,thinking,assistant,delta,tool start,tool result,assistant,delta,lifecycle end,final"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	history := c.call("chat.history", map[string]any{"sessionKey": mainKey, "limit": 100})
	var rows []string
	for _, r := range history["messages"].([]any) {
		row := r.(map[string]any)
		for _, b := range row["content"].([]any) {
			rows = append(rows, row["role"].(string)+" "+b.(map[string]any)["type"].(string))
		}
		if meta := row["__openclaw"].(map[string]any); meta["runId"] != "run-1" {
			t.Errorf("row %v", row)
		}
	}
	if got := strings.Join(rows, ","); got != "user text,assistant thinking,assistant toolCall,toolResult text,assistant text" {
		t.Errorf("rows %s", got)
	}
	if history["inFlightRun"] != nil || history["hasMore"] != false {
		t.Errorf("history %v", history)
	}
}

// Text that is taken back is replaced, and a client that can only append gets no text that may be taken back.
func TestReplace(t *testing.T) {
	h := newHarness(t)
	ui, acp := h.connect("ui"), h.connect("cli")
	ui.send(mainKey, "r", "status")
	acp.call("chat.history", map[string]any{"sessionKey": mainKey})
	var shown, appended string
	ui.apply(ui.next("chat"), &shown)
	if shown != "Looking…" {
		t.Fatalf("shown %q", shown)
	}
	h.open()
	if e := ui.finish("r", &shown); e["state"] != "final" || shown != "Found" {
		t.Errorf("%v, shown %q", e, shown)
	}
	for {
		e := acp.next("chat")
		if e["replace"] == true {
			t.Errorf("a client that appends got %v", e)
		}
		if e["state"] == "final" {
			appended = textOf(e["message"])
			break
		}
	}
	if appended != "Found" {
		t.Errorf("appended %q", appended)
	}
}

// A stop ends the run with an aborted event before the response, for all clients.
func TestAbort(t *testing.T) {
	h := newHarness(t)
	a, b := h.connect("ui"), h.connect("ui")
	a.send(mainKey, "r", "slow")
	text := ""
	a.apply(a.next("chat"), &text)
	b.call("chat.startup", map[string]any{"sessionKey": mainKey})
	got := a.call("chat.abort", map[string]any{"sessionKey": mainKey, "runId": "r"})
	if got["aborted"] != true || got["runIds"].([]any)[0] != "r" {
		t.Fatalf("abort %v", got)
	}
	isBefore := false
	for _, e := range a.events {
		if p := e["payload"].(map[string]any); e["event"] == "chat" && p["state"] == "aborted" {
			isBefore = p["stopReason"] == "rpc" && textOf(p["message"]) == "one "
		}
	}
	if !isBefore {
		t.Errorf("no aborted event with the text before the response: %v", a.events)
	}
	for e := b.next("chat"); e["state"] != "aborted"; e = b.next("chat") {
	}
	rows := a.call("chat.history", map[string]any{"sessionKey": mainKey})["messages"].([]any)
	last := rows[len(rows)-1].(map[string]any)
	if textOf(last) != "one " || last["openclawAbort"].(map[string]any)["aborted"] != true {
		t.Errorf("row %v", last)
	}
	if got := a.call("chat.abort", map[string]any{"sessionKey": mainKey, "runId": "none"}); got["aborted"] != false {
		t.Errorf("abort of an unknown run: %v", got)
	}
	a.send(mainKey, "r2", "slow")
	if got := a.call("chat.send", map[string]any{"sessionKey": mainKey, "message": "/stop", "idempotencyKey": "r3"}); got["summary"] != "stopped" {
		t.Errorf("/stop: %v", got)
	}
}

// A failed turn ends with an error of a kind that clients know.
func TestError(t *testing.T) {
	h := newHarness(t)
	c := h.connect("ui")
	c.send(mainKey, "r", "fail")
	text := ""
	e := c.finish("r", &text)
	if e["state"] != "error" || e["errorMessage"] != "the model is busy" || e["errorKind"] != "rate_limit" || text != "so far" {
		t.Errorf("%v after %q", e, text)
	}
	again := c.call("chat.send", map[string]any{"sessionKey": mainKey, "message": "fail", "idempotencyKey": "r"})
	if again["status"] != "error" || again["summary"] != "the model is busy" {
		t.Errorf("repetition: %v", again)
	}
}

// A repeated message does nothing, and its key with another text is refused.
func TestRepeat(t *testing.T) {
	h := newHarness(t)
	c := h.connect("ui")
	c.send(mainKey, "r", "slow")
	message := map[string]any{"sessionKey": mainKey, "message": "slow", "idempotencyKey": "r"}
	if got := c.call("chat.send", message); got["status"] != "in_flight" {
		t.Errorf("while it runs: %v", got)
	}
	h.open()
	h.open()
	text := ""
	c.finish("r", &text)
	if got := c.call("chat.send", message); got["status"] != "ok" {
		t.Errorf("after the end: %v", got)
	}
	message["message"] = "other"
	if got := c.refused("chat.send", message); got["details"].(map[string]any)["reason"] != "chat-request-conflict" {
		t.Errorf("another text: %v", got)
	}
}

// An approval is listed, reported to all clients and answered once.
func TestApprovals(t *testing.T) {
	h := newHarness(t)
	a, b := h.connect("ui"), h.connect("ui")
	for decision, want := range map[string]string{"allow-once": "approve", "deny": "deny"} {
		run := "run-" + decision
		a.send(mainKey, run, "ask")
		asked := a.next("plugin.approval.requested")
		id, request := asked["id"].(string), asked["request"].(map[string]any)
		if request["description"] != "May I?" || request["toolName"] != "shell" || request["runId"] != run || request["sessionKey"] != mainKey {
			t.Errorf("approval %v", asked)
		}
		list := b.response(b.request("plugin.approval.list", nil))["payload"].([]any)
		if len(list) != 1 || list[0].(map[string]any)["id"] != id {
			t.Errorf("list %v", list)
		}
		if got := b.refused("plugin.approval.resolve", map[string]any{"id": id, "decision": "allow-always"}); got["code"] != "INVALID_REQUEST" {
			t.Errorf("a decision that isn't offered: %v", got)
		}
		b.call("plugin.approval.resolve", map[string]any{"id": id, "decision": decision})
		if got := a.next("plugin.approval.resolved"); got["id"] != id {
			t.Errorf("resolved %v", got)
		}
		text := ""
		a.finish(run, &text)
		if text != "decision: "+want {
			t.Errorf("%s: %q", decision, text)
		}
		if got := b.refused("plugin.approval.resolve", map[string]any{"id": id, "decision": decision}); !strings.Contains(got["message"].(string), "unknown or expired approval id") {
			t.Errorf("second answer: %v", got)
		}
	}
}

// A question is listed, reported to all clients and answered once. The client that answers gets its answer in the event, so that the event
// doesn't contradict the response, and the others learn that there was one.
func TestQuestions(t *testing.T) {
	h := newHarness(t)
	a, b := h.connect("ui"), h.connect("ui")
	for answer, want := range map[string]string{"blue": "answer: blue", "teal": "answer: teal", "green": "answer: green", "": "answer: deny"} {
		run := "run-" + answer
		a.send(mainKey, run, "question")
		asked := a.next("question.requested")
		id := asked["id"].(string)
		item := asked["questions"].([]any)[0].(map[string]any)
		if item["question"] != "Which?\nOther answers: cyan, teal" || len(item["options"].([]any)) != maxOptions || asked["expiresAtMs"].(float64) <= asked["createdAtMs"].(float64) {
			t.Errorf("question %v", asked)
		}
		if got := b.call("question.get", map[string]any{"id": id})["question"].(map[string]any); got["id"] != id {
			t.Errorf("question.get %v", got)
		}
		b.call("chat.startup", map[string]any{"sessionKey": mainKey})
		params := map[string]any{"id": id, "answers": map[string]any{"answers": map[string]any{item["questionId"].(string): []string{answer}}}}
		status := "answered"
		if answer == "" {
			params, status = map[string]any{"id": id, "cancel": true}, "cancelled"
		}
		if got := b.call("question.resolve", params); got["status"] != status {
			t.Errorf("question.resolve %v", got)
		}
		if got := b.next("question.resolved"); got["id"] != id || got["status"] != status || answer != "" && !strings.Contains(fmt.Sprint(got["answers"]), answer) {
			t.Errorf("the client that has answered gets %v", got)
		}
		text := ""
		if a.finish(run, &text); text != want {
			t.Errorf("%s: %q", answer, text)
		}
		if got := b.refused("question.resolve", params); got["details"].(map[string]any)["reason"] != "QUESTION_NOT_FOUND" {
			t.Errorf("second answer: %v", got)
		}
	}
	// The turn continues after the answer, so the others know that there was one.
	a.send(mainKey, "run", "question, then wait")
	id := a.next("question.requested")["id"]
	b.call("question.resolve", map[string]any{"id": id, "cancel": true})
	if got := a.next("question.resolved"); got["id"] != id || got["status"] != "answered" {
		t.Errorf("the other client gets %v", got)
	}
	h.open()
	a.finish("run", new(string))
}

// Files reach the agent, and the history shows them.
func TestAttachments(t *testing.T) {
	h := newHarness(t)
	c := h.connect("ui")
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n0000"))
	send := func(run, content string) map[string]any {
		return map[string]any{"sessionKey": mainKey, "message": "parts", "idempotencyKey": run, "attachments": []any{
			map[string]any{"type": "image", "mimeType": "image/png", "fileName": "a.png", "content": content},
		}}
	}
	if got := c.refused("chat.send", send("bad", "no base64!")); !strings.Contains(got["message"].(string), "a.png") {
		t.Errorf("bad base64: %v", got)
	}
	c.call("chat.send", send("r", png))
	text := ""
	c.finish("r", &text)
	if text != "media" {
		t.Errorf("the agent got %q", text)
	}
	row := c.call("chat.history", map[string]any{"sessionKey": mainKey})["messages"].([]any)[0].(map[string]any)
	found := false
	for _, b := range row["content"].([]any) {
		found = found || b.(map[string]any)["type"] == "image" && b.(map[string]any)["mimeType"] == "image/png"
	}
	if !found {
		t.Errorf("row %v", row)
	}
}
