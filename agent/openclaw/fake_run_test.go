package openclaw

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// fakeRun is a run that a script plays.
type fakeRun struct {
	f       *fake
	id      string
	session string
	params  map[string]any
	ctx     context.Context
	cancel  context.CancelFunc
	owner   *fakeConn
	seq     int
	over    bool
	follow  []*fakeRun        // steered in
	said    map[string]string // by segment
	late    []map[string]any  // rows that wait for the first answer
	unnamed bool              // the history does not show it while it runs
	quiet   bool              // only clients that watch the session get its frames
}

// all sends to every connection that was let in.
func (r *fakeRun) all(event string, payload map[string]any) {
	r.f.mu.Lock()
	payload["runId"], payload["sessionKey"] = r.id, r.session
	if event == "agent" {
		r.seq++
	}
	payload["seq"] = r.seq
	var to []*fakeConn
	for c := range r.f.conns {
		if c.open && (payload["stream"] != "tool" || c == r.owner) && (!r.quiet || c.watched[r.session]) {
			to = append(to, c)
		}
	}
	r.f.mu.Unlock()
	for _, c := range to {
		c.event(event, payload)
	}
}

func (r *fakeRun) agent(stream string, data map[string]any) {
	r.all("agent", map[string]any{"stream": stream, "data": data})
}

// say shows a snapshot of a segment.
func (r *fakeRun) say(item, text string) {
	r.f.mu.Lock()
	before := r.said[item]
	if r.said == nil {
		r.said = map[string]string{}
	}
	r.said[item] = text
	r.f.mu.Unlock()
	data := map[string]any{"text": text, "delta": strings.TrimPrefix(text, before)}
	if r.f.protocol >= numbered {
		data["itemId"] = r.id + ":" + item
	}
	r.agent("assistant", data)
}

// tool runs a command. Before protocol 4 only the connection that started the run sees anything of it.
func (r *fakeRun) tool(call, command, output string) {
	if r.f.protocol >= numbered {
		r.agent("item", map[string]any{"kind": "tool", "phase": "start", "itemId": "tool:" + call, "toolCallId": call, "name": "exec", "title": command, "status": "running"})
		r.agent("command_output", map[string]any{"phase": "end", "itemId": "command:" + call, "toolCallId": call, "name": "exec", "output": output, "status": "completed"})
	}
	r.agent("tool", map[string]any{"phase": "start", "name": "exec", "toolCallId": call, "args": map[string]any{"command": command}})
	r.agent("tool", map[string]any{"phase": "result", "name": "exec", "toolCallId": call, "result": content1(output)})
}

func content1(text string) map[string]any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
}

// userRow is the row of the message that the run answers, of which key is the id.
func (r *fakeRun) userRow(key string) map[string]any {
	row := map[string]any{"role": "user", "content": r.params["message"]}
	if r.f.protocol >= numbered {
		row["idempotencyKey"] = key + ":user"
	}
	return row
}

// row writes a row of the run into the session's history. Before protocol 4 a new session is written with its first answer.
// f.mu is held.
func (r *fakeRun) row(row map[string]any) {
	s := r.f.sessions[r.session]
	row["timestamp"] = time.Now().UnixMilli()
	if r.f.protocol < numbered {
		r.late = append(r.late, row)
		if len(s.rows) > 0 || row["role"] == "assistant" {
			s.rows = append(s.rows, r.late...)
			r.late = nil
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
	s.add(row, meta)
}

// add adds a row of protocol 4, with its id and its number.
func (s *fakeSession) add(row, meta map[string]any) {
	meta["seq"] = len(s.rows) + 1
	row["__openclaw"] = meta
	meta["id"] = fmt.Sprint("row-", len(s.rows)+1)
	s.rows = append(s.rows, row)
}

// write writes rows of the run.
func (r *fakeRun) write(rows ...map[string]any) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	for _, row := range rows {
		r.row(row)
	}
}

func (r *fakeRun) rowText(text, stop string) {
	row := content1(text)
	row["role"], row["stopReason"] = "assistant", stop
	r.write(row)
}

// end ends the run: the row of its last text, and its terminal.
func (r *fakeRun) end(state string, more map[string]any) {
	r.f.mu.Lock()
	r.over = true
	s := r.f.sessions[r.session]
	if s.inFlight == r {
		s.inFlight = nil
	}
	s.rows = append(s.rows, r.late...)
	r.late = nil
	r.f.mu.Unlock()
	defer func() {
		r.f.mu.Lock()
		defer r.f.mu.Unlock()
		r.f.next(s)
	}()
	p := map[string]any{"state": state}
	for k, v := range more {
		p[k] = v
	}
	r.all("chat", p)
}

// final says a text, in two pieces where nothing of it was said, and ends with it.
func (r *fakeRun) final(item, text string) {
	r.f.mu.Lock()
	begun := r.said[item] != ""
	r.f.mu.Unlock()
	if !begun {
		r.say(item, text[:len(text)/2])
	}
	r.say(item, text)
	r.rowText(text, "stop")
	r.end("final", map[string]any{"stopReason": "stop", "message": content1(text)})
}

// wait lets time pass, and reports whether the run still runs.
func (r *fakeRun) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.ctx.Done():
		return false
	}
}
