//go:build e2e

package openclaw

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/leat-dev/leat/test/e2e/internal/harness"
)

// peer is another client of the gateway, independent of Leat.
type peer struct {
	t  *testing.T
	ws *websocket.Conn

	mu      sync.Mutex
	pending map[string]chan response
	events  []clawEvent
	arrived chan struct{} // closed and replaced with each event
	done    chan struct{}
}

type response struct {
	OK      bool            `json:"ok"`
	Payload json.RawMessage `json:"payload"`
	Error   json.RawMessage `json:"error"`
}

type clawEvent struct {
	Event   string `json:"event"`
	Payload struct {
		Run     string          `json:"runId"`
		Session string          `json:"sessionKey"`
		State   string          `json:"state"`
		Stream  string          `json:"stream"`
		Job     string          `json:"jobId"`
		Action  string          `json:"action"`
		Status  string          `json:"status"`
		Message json.RawMessage `json:"message"`
	} `json:"payload"`
}

// peerLimit is how long a peer waits for anything.
const peerLimit = time.Minute

// meet connects a peer. A gateway that already answers HTTP requests may still refuse clients for a while.
func meet(t *testing.T, claw *harness.Program) *peer {
	t.Helper()
	for deadline := time.Now().Add(peerLimit); ; time.Sleep(500 * time.Millisecond) {
		o, err := dialClaw(t, claw)
		if err == nil {
			return o
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func dialClaw(t *testing.T, claw *harness.Program) (*peer, error) {
	t.Helper()
	return dialWith(t, claw, "operator.read", "operator.write", "operator.approvals", "operator.admin")
}

// dialWith connects a client with some scopes.
func dialWith(t *testing.T, claw *harness.Program, scopes ...string) (*peer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), peerLimit)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, strings.Replace(claw.URL, "http", "ws", 1), nil)
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(64 << 20)
	o := &peer{t: t, ws: ws, pending: map[string]chan response{}, arrived: make(chan struct{}), done: make(chan struct{})}
	go o.read()
	t.Cleanup(func() {
		_ = ws.CloseNow()
		<-o.done
	})
	o.event("the challenge", func(e clawEvent) bool { return e.Event == "connect.challenge" })
	return o, o.try("connect", map[string]any{
		"minProtocol": 3, "maxProtocol": 4, "role": "operator", "caps": []string{"tool-events"}, "userAgent": "test",
		"client": map[string]string{"id": "gateway-client", "version": "1", "platform": "linux", "mode": "backend", "instanceId": uuid.NewString()},
		"scopes": scopes, "auth": map[string]string{"token": token},
	}, nil)
}

func (o *peer) read() {
	defer close(o.done)
	for {
		_, b, err := o.ws.Read(context.Background())
		if err != nil {
			return
		}
		var f struct {
			Type string `json:"type"`
			ID   string `json:"id"`
		}
		if json.Unmarshal(b, &f) != nil {
			continue
		}
		o.mu.Lock()
		if f.Type == "res" {
			var r response
			if ch := o.pending[f.ID]; ch != nil && json.Unmarshal(b, &r) == nil {
				delete(o.pending, f.ID)
				ch <- r
			}
		} else {
			var e clawEvent
			if json.Unmarshal(b, &e) == nil {
				o.events = append(o.events, e)
				close(o.arrived)
				o.arrived = make(chan struct{})
			}
		}
		o.mu.Unlock()
	}
}

// call calls a method and fails the test if the gateway refuses it.
func (o *peer) call(method string, params, to any) {
	o.t.Helper()
	if err := o.try(method, params, to); err != nil {
		o.t.Fatal(err)
	}
}

// try calls a method.
func (o *peer) try(method string, params, to any) error {
	id, ch := uuid.NewString(), make(chan response, 1)
	o.mu.Lock()
	o.pending[id] = ch
	o.mu.Unlock()
	b, err := json.Marshal(map[string]any{"type": "req", "id": id, "method": method, "params": params})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(o.t.Context(), peerLimit)
	defer cancel()
	if err := o.ws.Write(ctx, websocket.MessageText, b); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case r := <-ch:
		if !r.OK {
			return fmt.Errorf("%s: %s", method, r.Error)
		}
		if to != nil {
			if err := json.Unmarshal(r.Payload, to); err != nil {
				return fmt.Errorf("%s: %w", method, err)
			}
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: no answer", method)
	}
}

// event waits for an event, past ones included.
func (o *peer) event(what string, is func(clawEvent) bool) clawEvent {
	o.t.Helper()
	limit := time.NewTimer(peerLimit)
	defer limit.Stop()
	for seen := 0; ; {
		o.mu.Lock()
		events, arrived := o.events, o.arrived
		o.mu.Unlock()
		for ; seen < len(events); seen++ {
			if is(events[seen]) {
				return events[seen]
			}
		}
		select {
		case <-arrived:
		case <-limit.C:
			o.t.Fatalf("%s does not come", what)
		}
	}
}

// send sends a message into a session, and returns the run's id.
func (o *peer) send(session, message string) string {
	o.t.Helper()
	run := uuid.NewString()
	o.call("chat.send", map[string]string{"sessionKey": session, "message": message, "idempotencyKey": run}, nil)
	return run
}

// says waits until a run has sent content.
func (o *peer) says(run string) {
	o.t.Helper()
	o.event("a word of "+run, func(e clawEvent) bool { return e.Payload.Run == run && e.Payload.Stream == "assistant" })
}

// sessionOf returns the session of a turn of Leat. The turn must have sent a frame.
func (o *peer) sessionOf(turn string) string {
	o.t.Helper()
	return o.event("a frame of the turn", func(e clawEvent) bool { return strings.HasPrefix(e.Payload.Run, turn) && e.Payload.Session != "" }).Payload.Session
}

// over waits for the end of a run.
func (o *peer) over(run string) {
	o.t.Helper()
	o.event("the end of "+run, func(e clawEvent) bool {
		return e.Event == "chat" && e.Payload.Run == run && (e.Payload.State == "final" || e.Payload.State == "aborted" || e.Payload.State == "error")
	})
}

// rows returns a session's history, each row as its role and its text.
func (o *peer) rows(session string) (rows []string) {
	o.t.Helper()
	var h struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	o.call("chat.history", map[string]any{"sessionKey": session, "limit": 200}, &h)
	for _, m := range h.Messages {
		var text string
		if json.Unmarshal(m.Content, &text) != nil {
			var blocks []struct{ Text string }
			if err := json.Unmarshal(m.Content, &blocks); err != nil {
				o.t.Fatal(err)
			}
			for _, b := range blocks {
				text += b.Text
			}
		}
		rows = append(rows, fmt.Sprintf("%s: %s", m.Role, text))
	}
	return rows
}
