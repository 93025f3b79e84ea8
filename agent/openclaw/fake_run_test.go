package openclaw

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// fakeRun is a run whose frames and rows a test's script produces.
type fakeRun struct {
	f          *fakeGateway
	id         string
	session    string
	params     map[string]any
	ctx        context.Context
	cancel     context.CancelFunc
	owner      *fakeConn
	seq        int
	isOver     bool
	steered    []*fakeRun        // runs of steered messages
	spoken     map[string]string // by segment
	unwritten  []map[string]any  // rows that are written with the first answer (protocol 3)
	isUnlisted bool              // histories don't show it while it runs
	isQuiet    bool              // only clients that subscribed to the session get its frames
}

// broadcast sends an event of the run to every admitted client. Tool frames go to the owner only.
func (r *fakeRun) broadcast(event string, payload map[string]any) {
	r.f.mu.Lock()
	payload["runId"], payload["sessionKey"] = r.id, r.session
	if event == "agent" {
		r.seq++
	}
	payload["seq"] = r.seq
	var to []*fakeConn
	for c := range r.f.conns {
		if c.isAdmitted && (payload["stream"] != "tool" || c == r.owner) && (!r.isQuiet || c.subscriptions[r.session]) {
			to = append(to, c)
		}
	}
	r.f.mu.Unlock()
	for _, c := range to {
		c.event(event, payload)
	}
}

func (r *fakeRun) agent(stream string, data map[string]any) {
	r.broadcast("agent", map[string]any{"stream": stream, "data": data})
}

// speak sends a snapshot of a text segment.
func (r *fakeRun) speak(item, text string) {
	r.f.mu.Lock()
	before := r.spoken[item]
	if r.spoken == nil {
		r.spoken = map[string]string{}
	}
	r.spoken[item] = text
	r.f.mu.Unlock()
	data := map[string]any{"text": text, "delta": strings.TrimPrefix(text, before)}
	if r.f.protocol >= numberedProtocol {
		data["itemId"] = r.id + ":" + item
	}
	r.agent("assistant", data)
}

// tool sends the frames of a command. Before protocol 4 only the connection that started the run gets any.
func (r *fakeRun) tool(call, command, output string) {
	if r.f.protocol >= numberedProtocol {
		r.agent("item", map[string]any{"kind": "tool", "phase": "start", "itemId": "tool:" + call, "toolCallId": call, "name": "exec", "title": command, "status": "running"})
		r.agent("command_output", map[string]any{"phase": "end", "itemId": "command:" + call, "toolCallId": call, "name": "exec", "output": output, "status": "completed"})
	}
	r.agent("tool", map[string]any{"phase": "start", "name": "exec", "toolCallId": call, "args": map[string]any{"command": command}})
	r.agent("tool", map[string]any{"phase": "result", "name": "exec", "toolCallId": call, "result": textContent(output)})
}

func textContent(text string) map[string]any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
}

// userRow returns the row of the message that the run answers. key is the id of the message's run.
func (r *fakeRun) userRow(key string) map[string]any {
	row := map[string]any{"role": "user", "content": r.params["message"]}
	if r.f.protocol >= numberedProtocol {
		row["idempotencyKey"] = key + ":user"
	}
	return row
}

// addRow writes a row of the run into the session's history. Before protocol 4 a new session is written with its first answer.
// The caller holds f.mu.
func (r *fakeRun) addRow(row map[string]any) {
	s := r.f.sessions[r.session]
	row["timestamp"] = time.Now().UnixMilli()
	if r.f.protocol < numberedProtocol {
		r.unwritten = append(r.unwritten, row)
		if len(s.rows) > 0 || row["role"] == "assistant" {
			s.rows = append(s.rows, r.unwritten...)
			r.unwritten = nil
		}
		return
	}
	meta, ok := row["__openclaw"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		row["__openclaw"] = meta
	}
	if row["role"] != "user" {
		meta["runId"] = r.id
	}
	s.append(row, meta)
}

// append adds a row of protocol 4 with its id and sequence number.
func (s *fakeSession) append(row, meta map[string]any) {
	meta["seq"] = len(s.rows) + 1
	row["__openclaw"] = meta
	meta["id"] = fmt.Sprint("row-", len(s.rows)+1)
	s.rows = append(s.rows, row)
}

// addRows writes rows of the run.
func (r *fakeRun) addRows(rows ...map[string]any) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	for _, row := range rows {
		r.addRow(row)
	}
}

func (r *fakeRun) rowText(text, stop string) {
	row := textContent(text)
	row["role"], row["stopReason"] = "assistant", stop
	r.addRows(row)
}

// end ends the run with a chat frame, and starts the next queued message.
func (r *fakeRun) end(state string, extra map[string]any) {
	r.f.mu.Lock()
	r.isOver = true
	s := r.f.sessions[r.session]
	if s.inFlight == r {
		s.inFlight = nil
	}
	s.rows = append(s.rows, r.unwritten...)
	r.unwritten = nil
	r.f.mu.Unlock()
	defer func() {
		r.f.mu.Lock()
		defer r.f.mu.Unlock()
		r.f.answerNext(s)
	}()
	p := map[string]any{"state": state}
	for k, v := range extra {
		p[k] = v
	}
	r.broadcast("chat", p)
}

// final ends the run with a text: its remaining snapshots, its row and the final frame.
func (r *fakeRun) final(item, text string) {
	r.f.mu.Lock()
	begun := r.spoken[item] != ""
	r.f.mu.Unlock()
	if !begun {
		r.speak(item, text[:len(text)/2])
	}
	r.speak(item, text)
	r.rowText(text, "stop")
	r.end("final", map[string]any{"stopReason": "stop", "message": textContent(text)})
}

// wait sleeps for d and reports whether the run still exists.
func (r *fakeRun) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.ctx.Done():
		return false
	}
}
