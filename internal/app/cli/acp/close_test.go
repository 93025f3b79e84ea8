package acp

import (
	"strings"
	"testing"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
)

// Closing a session stops the turns of its prompts. The conversation stays, and can be opened again.
func TestCloseSession(t *testing.T) {
	c := newGateway(t)
	e := edit(t, c)
	session := e.open()
	e.call("session/set_mode", map[string]any{"sessionId": session, "modeId": "hung"}, nil)
	const prompt = 99
	e.write(map[string]any{"id": prompt, "method": "session/prompt", "params": map[string]any{"sessionId": session, "prompt": []any{text("wait")}}})
	turn := runningTurn(t, c, session)
	if failure := e.call("session/close", map[string]any{"sessionId": session}, nil); failure != "" {
		t.Fatal(failure)
	}
	var result struct{ StopReason string }
	if failure := e.await(prompt, &result); failure != "" || result.StopReason != "cancelled" {
		t.Errorf("the prompt ended with %q %s", failure, result.StopReason)
	}
	if _, got, err := c.Turn(t.Context(), turn); err != nil || got.Outcome != event.Cancelled {
		t.Errorf("%v, the turn is %s", err, got.Outcome)
	}
	for method, params := range map[string]map[string]any{"session/prompt": {"prompt": []any{text("more")}}, "session/close": {}} {
		params["sessionId"] = session
		if failure := e.call(method, params, nil); !strings.Contains(failure, "is not open") {
			t.Errorf("%s of a closed session: %q", method, failure)
		}
	}
	e.updates = nil
	if failure := e.call("session/load", map[string]any{"sessionId": session, "cwd": "/project", "mcpServers": []any{}}, nil); failure != "" {
		t.Fatal(failure)
	}
	if got := strings.Join(e.shown(userChunk), ","); got != "wait" {
		t.Errorf("the history is %q", got)
	}
	e.call("session/set_mode", map[string]any{"sessionId": session, "modeId": "mirror"}, nil)
	if reason := e.prompt(session, text("hello")); reason != "end_turn" {
		t.Errorf("the next prompt ended with %s", reason)
	}
}

// A prompt that follows the close of its session isn't sent.
func TestPromptAfterClose(t *testing.T) {
	c := newGateway(t)
	e := edit(t, c)
	session := e.open()
	e.write(map[string]any{"id": 98, "method": "session/close", "params": map[string]any{"sessionId": session}})
	if failure := e.prompt(session, text("hello")); !strings.Contains(failure, "is not open") {
		t.Errorf("the prompt ended with %q", failure)
	}
	if failure := e.await(98, nil); failure != "" {
		t.Error(failure)
	}
	if tr, err := c.Transcript(t.Context(), session); err != nil || len(tr.Messages) != 0 {
		t.Errorf("%v, %d messages", err, len(tr.Messages))
	}
}

// The turns of other clients run on when an editor closes its session. What they write isn't sent to the editor any more.
func TestCloseBesideOthers(t *testing.T) {
	c := newGateway(t)
	e := edit(t, c)
	session := e.open()
	ack, err := c.Do(t.Context(), session, leat.Command{Type: "send", Agent: "hung", Message: &leat.Message{Text: "from a phone"}})
	if err != nil {
		t.Fatal(err)
	}
	if failure := e.call("session/close", map[string]any{"sessionId": session}, nil); failure != "" {
		t.Fatal(failure)
	}
	e.updates = nil
	if _, got, err := c.Turn(t.Context(), ack.Turn); err != nil || !got.Unfinished() {
		t.Errorf("%v, the turn is %s", err, got.Outcome)
	}
	if _, err := c.Stop(t.Context(), session, ack.Turn); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), session, "hello"); err != nil {
		t.Fatal(err)
	}
	other := e.open() // its response comes after what would have been sent before
	for _, u := range e.updates {
		if content, ok := u["content"]; ok {
			t.Errorf("an update after the close: %v", content)
		}
	}
	if other == session {
		t.Error("the closed session was opened again")
	}
}
