//go:build e2e

package letta

import (
	"context"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/leat-dev/leat/test/e2e/internal/harness"
)

// viewer is another client of the agent's default conversation.
type viewer struct {
	conn    *websocket.Conn
	ctx     context.Context
	runtime map[string]any
	leave   func()
}

func watch(t *testing.T, letta *harness.Program, agent string) *viewer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.StartLimit)
	conn, _, err := websocket.Dial(ctx, strings.Replace(letta.URL+letta.Ready, "http", "ws", 1), nil)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	v := &viewer{conn: conn, ctx: ctx, runtime: map[string]any{"agent_id": agent, "conversation_id": "default"}}
	v.leave = func() { _ = conn.CloseNow(); cancel() } // the connection may be closed already
	t.Cleanup(v.leave)
	v.send(t, map[string]any{"type": "runtime_start", "request_id": "start", "agent_id": agent, "conversation_id": "default", "mode": "unrestricted"})
	v.until(t, "runtime_start_response")
	return v
}

func (v *viewer) send(t *testing.T, frame map[string]any) {
	t.Helper()
	if err := wsjson.Write(v.ctx, v.conn, frame); err != nil {
		t.Fatal(err)
	}
}

func (v *viewer) say(t *testing.T, text string) {
	t.Helper()
	v.send(t, map[string]any{"type": "input", "request_id": "say", "runtime": v.runtime, "payload": map[string]any{
		"kind": "create_message", "messages": []any{map[string]any{"role": "user", "content": text, "client_message_id": "theirs"}},
	}})
}

// until reads until a frame of a type comes.
func (v *viewer) until(t *testing.T, kind string) {
	t.Helper()
	for {
		var f struct{ Type string }
		if err := wsjson.Read(v.ctx, v.conn, &f); err != nil {
			t.Fatalf("no %s: %v", kind, err)
		}
		if f.Type == kind {
			return
		}
	}
}
