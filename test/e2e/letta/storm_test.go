//go:build e2e

package letta

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/leat-dev/leat/test/e2e/internal/harness"
)

// spares is the number of agents that may replace one that has lost its conversation: an App Server that is killed while it writes a
// conversation can't read it again, and rejects all messages to it.
const spares = 12

// TestStorm runs turns while connections break and programs are killed (see [harness.Storm]). Each conversation has another agent.
func TestStorm(t *testing.T) {
	s, model := harness.NewStorm(t, bash)
	letta, _ := newLetta(t, model.URL)
	letta.Start(t)
	address, mend := s.BadNetwork(t, letta)
	o := &outsider{letta: letta}
	var args []string
	for i := range 3 + spares {
		agent := newAgent(t, letta)
		o.agents = append(o.agents, agent)
		args = append(args, "--agent", fmt.Sprintf("letta%d=letta:ws://%s%s?agent=%s&mode=unrestricted&conversation=default", i, address, letta.Ready, agent))
	}
	o.connect(t)
	t.Cleanup(o.leave)
	s.Leat = harness.Leat(t, nil, args...)
	s.Leat.Start(t)
	s.Client, s.Other = harness.NewClient(s.Leat.URL), o
	for i, agent := range o.agents {
		s.Chats = append(s.Chats, &harness.Chat{Conversation: s.CreateConversation(t, fmt.Sprintf("letta%d", i)), Session: agent})
	}
	s.Chats, s.Spare = s.Chats[:3], s.Chats[3:]
	s.Run(t)
	mend()
	s.Agree(t)
}

// outsider is another client of the App Server, which follows all of its agents. It isn't safe for concurrent use.
type outsider struct {
	letta  *harness.Program
	agents []string
	calls  int

	mu       sync.Mutex
	conn     *websocket.Conn
	answers  map[string]json.RawMessage // by request
	changed  chan struct{}              // closed and replaced with each frame
	loops    map[string]*loop           // by agent
	problems error                      // why the connection ended
}

// loop is the status of an agent's loop.
type loop struct {
	idle     bool
	queued   int
	finished int // turns
}

// callLimit limits a request, and a turn.
const callLimit = time.Minute

func (o *outsider) connect(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, strings.Replace(o.letta.URL+o.letta.Ready, "http", "ws", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	o.mu.Lock()
	o.conn, o.problems = conn, nil
	o.answers, o.loops, o.changed = map[string]json.RawMessage{}, map[string]*loop{}, make(chan struct{})
	for _, agent := range o.agents {
		o.loops[agent] = &loop{}
	}
	o.mu.Unlock()
	go o.read(conn)
	for _, agent := range o.agents {
		o.call(t, map[string]any{"type": "runtime_start", "agent_id": agent, "conversation_id": "default", "mode": "unrestricted"})
	}
}

func (o *outsider) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn != nil {
		_ = o.conn.CloseNow() // the connection may be closed already
		o.conn = nil
	}
}

func (o *outsider) read(conn *websocket.Conn) {
	for {
		_, raw, err := conn.Read(context.Background())
		o.mu.Lock()
		if o.conn != conn {
			o.mu.Unlock()
			return
		}
		if err != nil {
			o.problems = err
		} else {
			o.take(raw)
		}
		close(o.changed)
		o.changed = make(chan struct{})
		o.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// take records a frame's status. o.mu is locked.
func (o *outsider) take(raw []byte) {
	var f struct {
		Type    string
		Request string `json:"request_id"`
		Runtime struct {
			Agent string `json:"agent_id"`
		}
		Loop struct {
			Status string
		} `json:"loop_status"`
		Queue []json.RawMessage
	}
	if json.Unmarshal(raw, &f) != nil {
		return
	}
	if f.Request != "" {
		o.answers[f.Request] = raw
	}
	l := o.loops[f.Runtime.Agent]
	switch {
	case l == nil:
	case f.Type == "update_loop_status":
		l.idle = f.Loop.Status == "WAITING_ON_INPUT"
	case f.Type == "update_queue":
		l.queued = len(f.Queue)
	case f.Type == "turn_finished":
		l.finished++
	}
}

// until waits until so returns true.
func (o *outsider) until(t *testing.T, what string, so func() bool) {
	t.Helper()
	limit := time.NewTimer(callLimit)
	defer limit.Stop()
	for {
		o.mu.Lock()
		ok, err, changed := so(), o.problems, o.changed
		o.mu.Unlock()
		if ok {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		select {
		case <-changed:
		case <-limit.C:
			t.Fatalf("%s: no frame for %v", what, callLimit)
		}
	}
}

// call sends a request and returns its response.
func (o *outsider) call(t *testing.T, request map[string]any) json.RawMessage {
	t.Helper()
	o.calls++
	id := fmt.Sprintf("outsider-%d", o.calls)
	request["request_id"] = id
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	if err := wsjson.Write(ctx, o.conn, request); err != nil {
		t.Fatal(err)
	}
	var answer json.RawMessage
	o.until(t, fmt.Sprint(request["type"]), func() bool {
		answer = o.answers[id]
		return answer != nil
	})
	return answer
}

// Send implements [harness.Other].
func (o *outsider) Send(t *testing.T, session, prompt string) (answered func(*testing.T)) {
	t.Helper()
	o.mu.Lock()
	before := o.loops[session].finished
	o.mu.Unlock()
	o.call(t, map[string]any{
		"type": "input", "runtime": map[string]string{"agent_id": session, "conversation_id": "default"},
		"payload": map[string]any{"kind": "create_message", "messages": []any{
			map[string]string{"role": "user", "content": prompt, "client_message_id": fmt.Sprintf("outside-%d", o.calls)},
		}},
	})
	return func(t *testing.T) {
		t.Helper()
		o.until(t, "the answer to another client", func() bool {
			l := o.loops[session]
			return l.idle && l.queued == 0 && l.finished > before
		})
	}
}

// Note implements [harness.Other]. The App Server doesn't support notes.
func (o *outsider) Note(*testing.T, string, string) bool { return false }

// Kill implements [harness.Other].
func (o *outsider) Kill() {
	o.leave()
	o.letta.Signal(syscall.SIGKILL)
}

// Start implements [harness.Other].
func (o *outsider) Start(t *testing.T) {
	t.Helper()
	o.letta.Start(t)
	o.connect(t)
}

// message is a message of an agent's history.
type message struct {
	Type    string `json:"message_type"`
	Content json.RawMessage
	Tool    struct {
		ID        string `json:"tool_call_id"`
		Arguments string
	} `json:"tool_call"`
	Call   string `json:"tool_call_id"`
	Return string `json:"tool_return"`
}

// last returns the last text of a message's content. The texts before it are the server's notes for its model.
func (m *message) last() string {
	var parts []struct{ Text string }
	if json.Unmarshal(m.Content, &parts) == nil && len(parts) > 0 {
		return strings.TrimSpace(parts[len(parts)-1].Text)
	}
	var text string
	_ = json.Unmarshal(m.Content, &text) // a message of another shape has no text
	return strings.TrimSpace(text)
}

// History implements [harness.Other].
func (o *outsider) History(t *testing.T, session string) (items []harness.Item) {
	t.Helper()
	var list struct {
		Success  bool
		Error    string
		Messages []message
	}
	raw := o.call(t, map[string]any{"type": "conversation_messages_list", "conversation_id": "default", "query": map[string]any{"limit": 2000, "agent_id": session}})
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	if !list.Success && !strings.HasSuffix(list.Error, " not found") { // the server loses a conversation if it is killed while writing it
		t.Fatalf("list of messages: %s", list.Error)
	}
	slices.Reverse(list.Messages) // the newest comes first
	outputs := map[string]string{}
	for _, m := range list.Messages {
		if m.Type == "tool_return_message" {
			outputs[m.Call] = m.Return
		}
	}
	for _, m := range list.Messages {
		switch m.Type {
		case "user_message":
			items = append(items, harness.Item{Kind: harness.ItemUser, Text: m.last()})
		case "assistant_message":
			if text := m.last(); text != "" {
				items = append(items, harness.Item{Kind: harness.ItemText, Text: text})
			}
		case "approval_request_message":
			var in struct{ Command string }
			_ = json.Unmarshal([]byte(m.Tool.Arguments), &in) // a tool of another shape has no command
			items = append(items, harness.Tool(in.Command, outputs[m.Tool.ID]))
		}
	}
	return items
}
