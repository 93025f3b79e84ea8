package letta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/all"
)

// appServer is a fake of the App Server of Letta Code 0.32.18: it ignores unknown commands, cancels a turn with its last viewer,
// never repeats frames, and lists its history. Turns are scripted.
type appServer struct {
	t   *testing.T
	srv *httptest.Server

	mu      sync.Mutex
	token   string
	version int        // of the protocol; 0 means 1
	scripts [][]string // of the next turns
	refuse  []fault    // of the next connections
	break1  []fault    // faults of the connections of the next turns
	convs   map[string]*conv
	conns   int
	log     []string
	runs    int
	items   int    // number of items queued so far, for their ids
	noLists bool   // a request for a list closes the connection
	idle    bool   // a sync reports an idle loop
	late    bool   // the loop's status is sent only after the next response, as a busy server does
	listing func() // called before the next list is built

	// text is locked while a text is added to the history and sent, and while a history is sent: like the real server, which has
	// one thread, the fake must not send a history without a text after that text's delta, or a delta after a history that contains it.
	text  sync.Mutex
	gates map[string]chan struct{}
}

// conv is a conversation of the fake server.
type conv struct {
	id      string
	agent   string
	viewers map[*viewer]bool
	past    []map[string]any // oldest first
	queue   []queued
	cancel  context.CancelFunc // cancels the running turn
	aborted bool               // the running turn was aborted, but may not have ended
	ending  bool               // the turn has ended, but not every viewer has received the end
	active  []string
	by      map[string][]string
	status  string
	asked   map[string]chan map[string]any
	pending []string // control requests, as they were sent
}

type queued struct {
	id, text, item string
	from           *viewer
	paused         bool // it was queued when a turn was aborted
}

func newAppServer(t *testing.T) *appServer {
	f := &appServer{t: t, convs: map[string]*conv{}, gates: map[string]chan struct{}{}}
	f.srv = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.srv.Close)
	t.Cleanup(f.srv.CloseClientConnections)
	return f
}

func (f *appServer) lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

// until waits until so returns true.
func (f *appServer) until(what string, so func() bool) {
	f.t.Helper()
	eventually(f.t, what, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return so()
	})
}

func (f *appServer) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.conns++
	var ft fault
	if len(f.refuse) > 0 {
		ft, f.refuse = f.refuse[0], f.refuse[1:]
	}
	token := f.token
	f.mu.Unlock()
	switch {
	case ft.drop:
		reset(w)
		return
	case ft.status != 0:
		if ft.header != "" {
			w.Header().Set("Retry-After", ft.header)
		}
		w.WriteHeader(ft.status)
		return
	case r.Header.Get("Origin") != "":
		f.t.Error("an Origin header")
		w.WriteHeader(http.StatusForbidden)
		return
	case token != "" && r.Header.Get("Authorization") != "Bearer "+token:
		w.WriteHeader(http.StatusUnauthorized)
		return
	case r.URL.Path != "/ws":
		w.WriteHeader(http.StatusNotFound)
		return
	}
	v := &viewer{f: f}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{OnPingReceived: func(context.Context, []byte) bool { return !v.silent.Load() }})
	if err != nil {
		return
	}
	v.conn = conn
	defer v.leave()
	for {
		_, b, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		if ft.how == "silence" || v.silent.Load() {
			continue
		}
		v.take(b)
	}
}

// conv finds or creates a conversation. f.mu is locked.
func (f *appServer) conv(agent, id string) (*conv, string) {
	if !strings.HasPrefix(agent, "agent-") {
		return nil, "Agent " + agent + " not found"
	}
	if id == ownConversation && f.convs[ownConversation] == nil { // it exists with the agent
		f.convs[ownConversation] = newConv(ownConversation, agent)
	}
	if id == "" {
		id = fmt.Sprintf("local-conv-%d", len(f.convs)+1)
		f.convs[id] = newConv(id, agent)
		f.log = append(f.log, "make "+id+" of "+agent)
	}
	c := f.convs[id]
	if c == nil {
		return nil, "Conversation " + id + " not found"
	}
	return c, ""
}

func newConv(id, agent string) *conv {
	return &conv{id: id, agent: agent, viewers: map[*viewer]bool{}, by: map[string][]string{}, asked: map[string]chan map[string]any{}, status: "WAITING_ON_INPUT"}
}

func (c *conv) loop() map[string]any {
	by := map[string]any{}
	for k, v := range c.by {
		by[k] = v
	}
	return map[string]any{"type": "update_loop_status", "loop_status": map[string]any{"status": c.status, "active_run_ids": slices.Clone(c.active), "client_message_ids_by_run_id": by}}
}

func (f *appServer) all(c *conv, frame map[string]any) {
	f.mu.Lock()
	viewers := make([]*viewer, 0, len(c.viewers))
	for v := range c.viewers {
		viewers = append(viewers, v)
	}
	f.mu.Unlock()
	for _, v := range viewers {
		copied := map[string]any{}
		for k, x := range frame {
			copied[k] = x
		}
		v.event(c, copied)
	}
}

func (f *appServer) delta(c *conv, delta map[string]any) {
	f.all(c, map[string]any{"type": "stream_delta", "delta": delta})
}

// start plays the next script. f.mu is locked.
func (f *appServer) start(c *conv, q queued) {
	ctx, cancel := context.WithCancel(context.Background())
	f.t.Cleanup(cancel)
	c.cancel, c.aborted = cancel, false
	var script []string
	if len(f.scripts) > 0 {
		script, f.scripts = f.scripts[0], f.scripts[1:]
	}
	if len(f.break1) > 0 {
		for v := range c.viewers {
			v.mu.Lock()
			v.fault = f.break1[0]
			v.mu.Unlock()
		}
		f.break1 = f.break1[1:]
	}
	c.hear(q)
	go f.play(ctx, c, q, script)
}

// hear adds a message to the history, after the server's notes for its model. f.mu is locked.
func (c *conv) hear(q queued) {
	c.past = append(c.past, map[string]any{
		"id": fmt.Sprintf("ui-msg-%d", len(c.past)), "message_type": "user_message", "otid": q.id, "date": time.Now().UTC().Format(time.RFC3339Nano),
		"content": []any{map[string]any{"type": "text", "text": "<system-reminder>Device: Linux</system-reminder>"}, map[string]any{"type": "text", "text": q.text}},
	})
}

// next starts the queued message, unless the queue is paused. f.mu is locked.
func (f *appServer) next(c *conv) {
	at := slices.IndexFunc(c.queue, func(q queued) bool { return !q.paused })
	if at < 0 || len(c.viewers) == 0 || c.cancel != nil || c.ending {
		return
	}
	next := c.queue[at]
	c.queue = slices.Delete(c.queue, at, at+1)
	f.start(c, next)
	go f.delta(c, map[string]any{"message_type": "user_message", "id": "user-msg-1", "content": next.text, "otid": next.id})
}

// abort aborts the running turn, and reports whether a turn was running. f.mu is locked.
func (c *conv) abort() bool {
	if c.cancel == nil || c.aborted {
		return false
	}
	c.aborted = true
	for i := range c.queue {
		c.queue[i].paused = true
	}
	c.cancel()
	return true
}

// items lists the queued messages. f.mu is locked.
func (c *conv) items() []any {
	all := []any{}
	for _, q := range c.queue {
		all = append(all, map[string]any{"id": q.item, "client_message_id": q.id, "kind": "message", "content": q.text})
	}
	return all
}

// remove removes messages from the queue, and reports whether it found any. f.mu is locked.
func (c *conv) remove(so func(queued) bool) bool {
	n := len(c.queue)
	c.queue = slices.DeleteFunc(c.queue, so)
	return len(c.queue) < n
}

var errCancelled = errors.New("cancelled")

// play runs a turn. A line of a script is a word of the answer, or a directive: "gate NAME", "step" for the model's next
// step, "think WORD", "ask CALL", "run CALL", "return CALL TEXT", "take" for what is queued, "retry", "stop REASON", "deaf
// NAME" for a gate at which an abort is not noticed.
func (f *appServer) play(ctx context.Context, c *conv, q queued, script []string) {
	mine := []string{q.id}
	run, msg := "", ""
	seq, stop, twice := 0, "end_turn", false
	step := func() {
		f.mu.Lock()
		f.runs++
		run, seq = fmt.Sprintf("local-run-%d", f.runs), 0
		msg = fmt.Sprintf("ui-msg-%d", len(c.past))
		c.active, c.status = []string{run}, "PROCESSING_API_RESPONSE"
		c.by[run] = slices.Clone(mine)
		loop := c.loop()
		f.mu.Unlock()
		f.all(c, loop)
	}
	send := func(delta map[string]any) {
		seq++
		delta["run_id"], delta["seq_id"] = run, seq
		f.delta(c, delta)
	}
	remember := func(id, typ, key string, text string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i, m := range c.past {
			if m["id"] == id && m["message_type"] == typ {
				// Copy the message, because another goroutine may be encoding the list that contains it.
				m = maps.Clone(m)
				c.past[i] = m
				if typ == "reasoning_message" {
					m[key] = m[key].(string) + text
				} else {
					piece := m["content"].([]any)[0].(map[string]any)
					m["content"] = []any{map[string]any{"type": "text", "text": piece["text"].(string) + text}}
				}
				return
			}
		}
		m := map[string]any{"id": id, "message_type": typ}
		if typ == "reasoning_message" {
			m[key] = text
		} else {
			m["content"] = []any{map[string]any{"type": "text", "text": text}}
		}
		c.past = append(c.past, m)
	}
	ended := func(stop string) {
		f.mu.Lock()
		c.active, c.status, c.cancel, c.pending, c.ending = nil, "WAITING_ON_INPUT", nil, nil, true
		loop := c.loop()
		f.mu.Unlock()
		f.all(c, loop)
		end := map[string]any{"type": "turn_finished", "turn_id": "batch-direct-1", "stop_reason": stop, "run_id": run}
		f.all(c, end)
		if twice {
			f.all(c, end)
			send(map[string]any{"message_type": "assistant_message", "id": msg, "content": "More."})
			f.delta(c, map[string]any{"message_type": "loop_error", "message": "an error of another loop", "is_terminal": true})
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		c.ending = false
		f.next(c)
	}
	step()
	for _, line := range script {
		word, rest, _ := strings.Cut(line, " ")
		var err error
		switch word {
		case "gate":
			select {
			case <-f.gate(rest):
			case <-ctx.Done():
				err = errCancelled
			}
		case "deaf": // like the real server while its model sends no token
			f.mu.Lock()
			f.log = append(f.log, "deaf")
			f.mu.Unlock()
			<-f.gate(rest)
		case "step":
			send(map[string]any{"message_type": "usage_statistics", "prompt_tokens": 10, "completion_tokens": 5})
			send(map[string]any{"message_type": "stop_reason", "stop_reason": "requires_approval"})
			step()
		case "think":
			f.text.Lock()
			remember(msg+":reasoning:0", "reasoning_message", "reasoning", rest)
			send(map[string]any{"message_type": "reasoning_message", "id": msg + ":reasoning:0", "reasoning": rest})
			f.text.Unlock()
		case "ask", "question":
			name, input := "Bash", map[string]any{"command": "ls"}
			if word == "question" {
				name, input = "AskUserQuestion", map[string]any{"questions": []any{map[string]any{"question": "Which?", "options": []any{map[string]any{"label": "red"}, map[string]any{"label": "blue"}}}}}
			}
			args, _ := json.Marshal(input)
			send(map[string]any{"message_type": "approval_request_message", "id": "letta-msg-1", "tool_call": map[string]any{"tool_call_id": rest, "name": name, "arguments": string(args)}})
			req, _ := json.Marshal(map[string]any{"type": "control_request", "request_id": "perm-" + rest, "request": map[string]any{"subtype": "can_use_tool", "tool_name": name, "tool_call_id": rest, "input": input}})
			ch := make(chan map[string]any, 1)
			f.mu.Lock()
			c.asked["perm-"+rest] = ch
			c.pending = append(c.pending, string(req))
			f.mu.Unlock()
			f.all(c, raw(string(req)))
			select {
			case d := <-ch:
				f.mu.Lock()
				c.pending = nil
				f.mu.Unlock()
				if d["behavior"] == "allow" {
					f.delta(c, map[string]any{"message_type": "client_tool_start", "run_id": run, "tool_call_id": rest, "tool_args": string(args)})
					f.delta(c, map[string]any{"message_type": "client_tool_end", "run_id": run, "tool_call_id": rest, "status": "success"})
					f.delta(c, map[string]any{"message_type": "tool_return_message", "id": "synthetic-tool-return-1", "run_id": run, "tool_call_id": rest, "status": "success", "tool_return": "done"})
				} else {
					f.delta(c, map[string]any{"message_type": "client_tool_end", "run_id": run, "tool_call_id": rest, "status": "error"})
					f.delta(c, map[string]any{"message_type": "tool_return_message", "id": "synthetic-tool-return-1", "run_id": run, "tool_call_id": rest, "status": "error", "tool_return": d["message"]})
				}
			case <-ctx.Done():
				err = errCancelled
			}
		case "run":
			send(map[string]any{"message_type": "approval_request_message", "id": "letta-msg-1", "tool_call": map[string]any{"tool_call_id": rest, "name": "Bash", "arguments": "{}"}})
			send(map[string]any{"message_type": "stop_reason", "stop_reason": "requires_approval"})
			f.delta(c, map[string]any{"message_type": "client_tool_start", "run_id": run, "tool_call_id": rest, "tool_args": "{}"})
			f.mu.Lock()
			c.past = append(c.past, map[string]any{"id": msg + ":tool:" + rest + ":request", "message_type": "approval_request_message", "tool_call": map[string]any{"tool_call_id": rest, "name": "Bash", "arguments": "{}"}})
			f.mu.Unlock()
		case "return":
			f.delta(c, map[string]any{"message_type": "client_tool_end", "run_id": run, "tool_call_id": rest, "status": "success"})
			f.delta(c, map[string]any{"message_type": "tool_return_message", "id": "synthetic-tool-return-1", "run_id": run, "tool_call_id": rest, "status": "success", "tool_return": "done"})
			f.mu.Lock()
			c.past = append(c.past, map[string]any{"id": fmt.Sprintf("ui-msg-%d", len(c.past)), "message_type": rowReturn, "tool_call_id": rest, "status": "success", "tool_return": "done"})
			f.mu.Unlock()
		case "take":
			f.mu.Lock()
			for _, q := range c.queue {
				mine = append(mine, q.id)
				c.hear(q)
				go f.delta(c, map[string]any{"message_type": "user_message", "id": "user-msg-1", "content": q.text, "otid": q.id})
			}
			c.queue = nil
			f.mu.Unlock()
		case "retry":
			send(map[string]any{"message_type": "stop_reason", "stop_reason": "llm_api_error"})
			f.delta(c, map[string]any{"message_type": "retry", "run_id": run, "attempt": 1, "delay_ms": 1})
			step()
		case "stop":
			stop = rest
		case "twice":
			twice = true
		default:
			f.text.Lock()
			remember(msg, "assistant_message", "", line)
			send(map[string]any{"message_type": "assistant_message", "id": msg, "content": []any{map[string]any{"type": "text", "text": line}}})
			f.text.Unlock()
		}
		if err != nil || ctx.Err() != nil {
			f.delta(c, map[string]any{"message_type": "status", "run_id": run, "message": "Interrupted"})
			ended("cancelled")
			return
		}
	}
	send(map[string]any{"message_type": "usage_statistics", "prompt_tokens": 10, "completion_tokens": 5})
	send(map[string]any{"message_type": "stop_reason", "stop_reason": stop})
	ended(stop)
}

func (f *appServer) gate(name string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gates[name] == nil {
		f.gates[name] = make(chan struct{})
	}
	return f.gates[name]
}

// watch connects another viewer to a conversation, which keeps the conversation's turns alive.
func (f *appServer) watch(conversation string) *websocket.Conn {
	f.t.Helper()
	conn, _, err := websocket.Dial(f.t.Context(), f.url(), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	f.t.Cleanup(func() { _ = conn.CloseNow() })
	b, _ := json.Marshal(map[string]any{"type": "runtime_start", "request_id": "w", "agent_id": "agent-1", "conversation_id": conversation})
	if err := conn.Write(f.t.Context(), websocket.MessageText, b); err != nil {
		f.t.Fatal(err)
	}
	if _, _, err := conn.Read(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		for {
			if _, _, err := conn.Read(context.Background()); err != nil {
				return
			}
		}
	}()
	return conn
}

func (f *appServer) url() string { return "ws" + strings.TrimPrefix(f.srv.URL, "http") + "/ws" }

func (f *appServer) agent(options map[string]string) *socketAgent {
	f.t.Helper()
	spec := agent.Spec{Name: "letta", Kind: "letta", Target: f.url(), Options: map[string]string{"agent": "agent-1"}}
	for k, v := range options {
		spec.Options[k] = v
	}
	a, err := agent.Kinds{Kind(all.Registry())}.Make(spec)
	if err != nil {
		f.t.Fatal(err)
	}
	k := a.(*socketAgent)
	k.times = quick
	// The end of another test's server closes the idle connections of the default transport, also one whose response is just being read.
	transport := &http.Transport{}
	f.t.Cleanup(transport.CloseIdleConnections)
	k.client.Transport = transport
	return k
}
