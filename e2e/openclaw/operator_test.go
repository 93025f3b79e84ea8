//go:build e2e

package openclaw

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/leat-dev/leat/e2e/internal/house"
)

// operator is another client of the gateway, which knows nothing of Leat. One caller at a time.
type operator struct {
	url     string
	conn    *websocket.Conn
	replies chan reply
	ended   chan string // runs whose terminal frame came
	calls   int
}

type reply struct {
	ID      string
	OK      bool
	Payload json.RawMessage
	Error   struct{ Message string }
}

// callLimit is how long a call of another client may take, and how long a run of its own.
const callLimit = time.Minute

// newOperator connects another client.
func newOperator(t *testing.T, claw *house.Program) *operator {
	t.Helper()
	o := &operator{url: strings.Replace(claw.URL, "http", "ws", 1)}
	t.Cleanup(func() { o.leave() })
	o.connect(t)
	return o
}

// leave closes the connection, if there is one.
func (o *operator) leave() {
	if o.conn != nil {
		_ = o.conn.CloseNow() // that it is gone is no news
		o.conn = nil
	}
}

func (o *operator) connect(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, o.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	o.conn, o.replies, o.ended = conn, make(chan reply, 1), make(chan string, 1000)
	go o.read(conn, o.replies, o.ended)
	o.call(t, "connect", map[string]any{
		"minProtocol": 3, "maxProtocol": 4, "role": "operator", "scopes": []string{"operator.read", "operator.write", "operator.admin"},
		"client": map[string]string{"id": "cli", "version": "1.0.0", "platform": "linux", "mode": "cli"},
		"auth":   map[string]string{"token": token},
	})
}

func (o *operator) read(conn *websocket.Conn, replies chan reply, ended chan string) {
	defer close(replies)
	for {
		var f struct {
			Type, Event string
			Payload     struct{ RunID, State string }
		}
		_, raw, err := conn.Read(context.Background())
		if err != nil {
			return
		}
		if json.Unmarshal(raw, &f) != nil {
			continue
		}
		switch {
		case f.Type == "res":
			var r reply
			if json.Unmarshal(raw, &r) == nil {
				replies <- r
			}
		case f.Event == "chat" && (f.Payload.State == "final" || f.Payload.State == "error" || f.Payload.State == "aborted"):
			select {
			case ended <- f.Payload.RunID:
			default:
			}
		}
	}
}

// try calls a method; the error is the gateway's, or that of a connection which is gone.
func (o *operator) try(ctx context.Context, method string, params any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	o.calls++
	id := fmt.Sprint(o.calls)
	if err := wsjson.Write(ctx, o.conn, map[string]any{"type": "req", "id": id, "method": method, "params": params}); err != nil {
		return nil, err
	}
	for {
		select {
		case r, ok := <-o.replies:
			switch {
			case !ok:
				return nil, fmt.Errorf("%s: the connection is gone", method)
			case r.ID != id:
			case !r.OK:
				return nil, fmt.Errorf("%s: %s", method, r.Error.Message)
			default:
				return r.Payload, nil
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %w", method, ctx.Err())
		}
	}
}

func (o *operator) call(t *testing.T, method string, params any) json.RawMessage {
	t.Helper()
	payload, err := o.try(t.Context(), method, params)
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// row is one of a session's history.
type row struct {
	Role    string
	Content json.RawMessage
	Tool    string `json:"toolCallId"`
	Stop    string `json:"stopReason"`
	About   struct {
		Run string `json:"runId"`
	} `json:"__openclaw"`
}

type block struct {
	Type, Text, ID, Name string
	Arguments            struct{ Command string }
}

func (r *row) blocks() []block {
	var all []block
	if json.Unmarshal(r.Content, &all) == nil {
		return all
	}
	var text string
	if json.Unmarshal(r.Content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	return nil
}

// history returns what the gateway keeps of a session.
func (o *operator) history(t *testing.T, session string) []row {
	t.Helper()
	var h struct{ Messages []row }
	if err := json.Unmarshal(o.call(t, "chat.history", map[string]any{"sessionKey": session, "limit": 1000, "maxChars": 500000}), &h); err != nil {
		t.Fatal(err)
	}
	return h.Messages
}

// kept returns a history as items. What the gateway says to itself in the user's name is left out.
func kept(rows []row) (items []house.Item) {
	outputs := map[string]string{}
	for _, r := range rows {
		if r.Role == "toolResult" {
			for _, b := range r.blocks() {
				outputs[r.Tool] += b.Text
			}
		}
	}
	for _, r := range rows {
		for _, b := range r.blocks() {
			text := strings.TrimSpace(b.Text)
			switch {
			case b.Type == "toolCall":
				items = append(items, house.Tool(b.Arguments.Command, outputs[b.ID]))
			case b.Type != "text" || text == "" || r.Role == "toolResult":
			case r.Role == "user":
				if !strings.HasPrefix(text, "[System]") {
					items = append(items, house.Item{Kind: house.ItemUser, Text: text})
				}
			case r.Role == "assistant":
				items = append(items, house.Item{Kind: house.ItemText, Text: text})
			}
		}
	}
	return items
}
