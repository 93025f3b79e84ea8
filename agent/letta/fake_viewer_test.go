package letta

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"
)

type viewer struct {
	f      *appServer
	conn   *websocket.Conn
	mu     sync.Mutex
	seq    int
	frames int
	fault  fault
	gone   bool
	leat   bool        // it has sent Leat's client_info
	silent atomic.Bool // frames are dropped in both directions, without an error
}

func (v *viewer) leave() {
	_ = v.conn.CloseNow()
	if !v.silent.Load() { // otherwise the server doesn't notice
		v.detach()
	}
}

func (v *viewer) detach() {
	v.f.mu.Lock()
	defer v.f.mu.Unlock()
	for _, c := range v.f.convs {
		if !c.viewers[v] {
			continue
		}
		delete(c.viewers, v)
		c.remove(func(q queued) bool { return q.from == v })
		if len(c.viewers) == 0 && c.cancel != nil {
			v.f.log = append(v.f.log, "the last viewer left")
			c.cancel()
		}
	}
}

// send writes a frame, or breaks the connection as its fault asks.
func (v *viewer) send(frame map[string]any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.gone || v.silent.Load() {
		return
	}
	b, err := json.Marshal(frame)
	if err != nil {
		v.f.t.Error(err)
		return
	}
	ctx := context.Background()
	if v.fault.how != "" && frame["type"] == "stream_delta" {
		if v.frames++; v.frames > v.fault.frames {
			switch v.fault.how {
			case "reset":
				v.gone = true
				v.detach() // before the client can reconnect
				_ = v.conn.CloseNow()
				return
			case "silence":
				v.silent.Store(true)
				return
			case "half":
				v.gone = true
				v.detach()
				if w, err := v.conn.Writer(ctx, websocket.MessageText); err == nil {
					_, _ = w.Write(append(b[:len(b)/2], make([]byte, 8192)...))
				}
				_ = v.conn.CloseNow()
				return
			case "loris":
				w, err := v.conn.Writer(ctx, websocket.MessageText)
				for i := 0; err == nil && i < len(b); i++ {
					_, err = w.Write(b[i : i+1])
				}
				if err == nil {
					_ = w.Close()
				}
				return
			case "garbage":
				b = []byte("\x01 what? {")
			}
		}
	}
	_ = v.conn.Write(ctx, websocket.MessageText, b)
}

func (v *viewer) take(b []byte) {
	var m struct {
		Type         string            `json:"type"`
		ID           string            `json:"request_id"`
		Agent        string            `json:"agent_id"`
		Conversation string            `json:"conversation_id"`
		Runtime      *runtime          `json:"runtime"`
		Client       map[string]string `json:"client_info"`
		Item         string            `json:"item_id"`
		Payload      struct {
			Kind     string           `json:"kind"`
			Messages []map[string]any `json:"messages"`
			ID       string           `json:"request_id"`
			Decision map[string]any   `json:"decision"`
		} `json:"payload"`
	}
	if json.Unmarshal(b, &m) != nil {
		return // as the real server does
	}
	f := v.f
	switch m.Type {
	case "app_server_info":
		f.mu.Lock()
		version := max(f.version, 1)
		f.mu.Unlock()
		v.send(map[string]any{"type": "app_server_info_response", "request_id": m.ID, "success": true, "letta_code_version": "0.32.18", "protocol_version": version})
	case "sync":
		f.mu.Lock()
		c := f.convs[m.Runtime.Conversation]
		loop := c.loop()
		if f.idle {
			loop["loop_status"].(map[string]any)["status"] = loopIdle
		}
		f.mu.Unlock()
		loop["runtime"] = m.Runtime
		v.send(loop)
		f.mu.Lock()
		items := c.items()
		f.mu.Unlock()
		v.event(c, map[string]any{"type": "update_queue", "queue": items, "removed": []any{}})
		v.send(map[string]any{"type": "sync_response", "request_id": m.ID, "runtime": m.Runtime, "success": true})
	case "agent_list":
		v.send(map[string]any{"type": "agent_list_response", "request_id": m.ID, "success": true, "agents": json.RawMessage(listed)})
	case "conversation_list":
		v.send(map[string]any{"type": "conversation_list_response", "request_id": m.ID, "success": true, "conversations": json.RawMessage(listedConversations)})
	case "conversation_retrieve":
		f.mu.Lock()
		c := f.convs[m.Conversation]
		f.mu.Unlock()
		if c == nil {
			v.send(map[string]any{"type": "conversation_retrieve_response", "request_id": m.ID, "success": false, "conversation": nil, "error": "Conversation " + m.Conversation + " not found"})
			return
		}
		v.send(map[string]any{"type": "conversation_retrieve_response", "request_id": m.ID, "success": true, "conversation": map[string]any{"id": c.id, "agent_id": c.agent, "summary": "A plan"}})
	case "runtime_start":
		f.mu.Lock()
		c, why := f.conv(m.Agent, m.Conversation)
		if c == nil {
			f.mu.Unlock()
			v.send(map[string]any{"type": "runtime_start_response", "request_id": m.ID, "success": false, "runtime": nil, "error": why})
			return
		}
		c.viewers[v], v.leat = true, m.Client["name"] == "leat"
		pending := slices.Clone(c.pending)
		loop, late := c.loop(), f.late
		f.mu.Unlock()
		v.send(map[string]any{"type": "runtime_start_response", "request_id": m.ID, "success": true, "runtime": map[string]any{"agent_id": c.agent, "conversation_id": c.id}})
		v.event(c, map[string]any{"type": "update_device_status", "device_status": map[string]any{"pending_control_requests": []any{}}})
		if !late {
			v.event(c, loop)
		}
		for range 2 { // as the real server does
			for _, p := range pending {
				v.event(c, raw(p))
			}
		}
	case "conversation_messages_list":
		f.mu.Lock()
		if listing := f.listing; listing != nil {
			f.listing = nil
			f.mu.Unlock()
			listing()
			f.mu.Lock()
		}
		if f.noLists {
			f.mu.Unlock()
			_ = v.conn.CloseNow()
			return
		}
		f.mu.Unlock()
		f.text.Lock()
		defer f.text.Unlock()
		f.mu.Lock()
		var past []map[string]any
		if c := f.convs[m.Conversation]; c != nil {
			past = slices.Clone(c.past)
		}
		f.mu.Unlock()
		slices.Reverse(past)
		v.send(map[string]any{"type": "conversation_messages_list_response", "request_id": m.ID, "success": true, "messages": past})
	case "abort_message":
		f.mu.Lock()
		f.log = append(f.log, "abort")
		aborted := f.convs[m.Runtime.Conversation].abort()
		f.mu.Unlock()
		v.send(map[string]any{"type": "abort_message_response", "request_id": m.ID, "runtime": m.Runtime, "aborted": aborted, "success": true})
	case "remove_queue_item":
		f.mu.Lock()
		f.log = append(f.log, "remove "+m.Item)
		removed := f.convs[m.Runtime.Conversation].remove(func(q queued) bool { return q.item == m.Item })
		f.mu.Unlock()
		v.send(map[string]any{"type": "remove_queue_item_response", "request_id": m.ID, "success": removed, "item_id": m.Item})
	case "resume_queue":
		f.mu.Lock()
		c := f.convs[m.Runtime.Conversation]
		for i := range c.queue {
			c.queue[i].paused = false
		}
		f.next(c)
		f.mu.Unlock()
		v.send(map[string]any{"type": "resume_queue_response", "request_id": m.ID, "success": true})
	case "input":
		f.mu.Lock()
		defer f.mu.Unlock()
		c := f.convs[m.Runtime.Conversation]
		switch m.Payload.Kind {
		case "approval_response":
			f.log = append(f.log, fmt.Sprintf("answer %s %v", m.Payload.ID, m.Payload.Decision))
			if ch := c.asked[m.Payload.ID]; ch != nil {
				ch <- m.Payload.Decision
				delete(c.asked, m.Payload.ID) // a second answer is ignored
			}
		case "create_message":
			msg := m.Payload.Messages[0]
			f.items++
			q := queued{id: fmt.Sprint(msg["client_message_id"]), text: fmt.Sprint(msg["content"]), item: fmt.Sprintf("q-%d", f.items), from: v}
			disposition := "started"
			if c.cancel != nil {
				disposition = "queued"
				c.queue = append(c.queue, q)
			}
			f.log = append(f.log, disposition+" "+q.text)
			go func() {
				v.event(c, map[string]any{"type": "input_accepted", "request_id": m.ID, "accepted": true, "disposition": disposition})
				if disposition == "queued" {
					item := map[string]any{"id": q.item, "client_message_id": q.id, "kind": "message", "content": q.text}
					v.event(c, map[string]any{"type": "update_queue", "queue": []any{item}, "removed": []any{}})
				}
			}()
			if disposition == "started" {
				f.start(c, q)
			}
		}
	}
}

func raw(s string) (v map[string]any) {
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		panic(err)
	}
	return v
}

// event sends a conversation's frame to one viewer.
func (v *viewer) event(c *conv, frame map[string]any) {
	frame["runtime"] = map[string]any{"agent_id": c.agent, "conversation_id": c.id}
	v.mu.Lock()
	v.seq++
	frame["event_seq"] = v.seq
	v.mu.Unlock()
	v.send(frame)
}
