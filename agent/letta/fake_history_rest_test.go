package letta

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// past is the history of a fake V1 server: its runs, the newest first, and the messages of its conversations. The fields are those of
// the real server (0.16.8).
type past struct {
	runs  []*pastRun
	rows  map[string][]map[string]any // by conversation
	date  time.Time
	asked map[string]int // requests by route
}

type pastRun struct {
	ID           string         `json:"id"`
	Status       string         `json:"status"`
	Stop         *string        `json:"stop_reason"`
	Created      time.Time      `json:"created_at"`
	Completed    *string        `json:"completed_at"`
	Agent        string         `json:"agent_id"`
	Conversation *string        `json:"conversation_id"`
	Background   bool           `json:"background"`
	Metadata     map[string]any `json:"metadata"`

	in string
}

func (f *v1) routesOfPast(mux *http.ServeMux) {
	f.past = past{rows: map[string][]map[string]any{}, date: time.Now().Add(-time.Minute).UTC().Truncate(time.Second), asked: map[string]int{}}
	handle := func(route string, answer func(r *http.Request) any) {
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.past.asked[route]++
			a := answer(r)
			if a == nil || f.old {
				http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
				return
			}
			if err := json.NewEncoder(w).Encode(a); err != nil {
				f.t.Error(err)
			}
		})
	}
	handle("GET /v1/runs/{$}", func(r *http.Request) any {
		list := []*pastRun{}
		for _, run := range f.past.runs {
			c := r.FormValue("conversation_id")
			if run.Agent == r.FormValue("agent_id") && (c == "" || run.Conversation != nil && *run.Conversation == c) {
				list = append(list, run)
			}
		}
		return list[:min(len(list), number10(r.FormValue("limit")))]
	})
	handle("GET /v1/runs/{id}", func(r *http.Request) any {
		if run := f.runOf(r.PathValue("id")); run != nil {
			return run
		}
		f.log = append(f.log, "status of "+r.PathValue("id"))
		return map[string]any{"id": r.PathValue("id"), "status": f.status, "stop_reason": nil, "background": true, "created_at": time.Now()}
	})
	handle("GET /v1/runs/{id}/usage", func(*http.Request) any { return map[string]int{"prompt_tokens": 20, "completion_tokens": 10} })
	handle("GET /v1/runs/{id}/messages", func(r *http.Request) any {
		rows := []map[string]any{}
		for _, all := range f.past.rows {
			for _, m := range all {
				if m["run_id"] == r.PathValue("id") {
					rows = append(rows, m)
				}
			}
		}
		return page(rows, r)
	})
	handle("GET /v1/conversations/{$}", func(r *http.Request) any {
		list := []map[string]any{}
		for id, a := range f.conversations {
			if q := r.FormValue("agent_id"); q == "" || q == a {
				list = append(list, map[string]any{"id": id, "agent_id": a, "summary": nil, "created_at": f.past.date, "last_message_at": time.Now()})
			}
		}
		return list
	})
	handle("GET /v1/conversations/{id}", func(r *http.Request) any {
		a, ok := f.conversations[r.PathValue("id")]
		if !ok {
			return nil
		}
		return map[string]any{"id": r.PathValue("id"), "agent_id": a, "summary": "About tea", "created_at": f.past.date}
	})
	handle("GET /v1/conversations/{id}/messages", func(r *http.Request) any { return page(f.past.rows[r.PathValue("id")], r) })
}

func number10(s string) (n int) {
	if _, err := fmt.Sscan(s, &n); err != nil {
		return 100
	}
	return n
}

// page selects messages as the real server does: the limit counts steps, and an unknown cursor selects from the start.
func page(rows []map[string]any, r *http.Request) []map[string]any {
	var steps [][]map[string]any
	for i, m := range rows {
		if i == 0 || m["id"] != rows[i-1]["id"] {
			steps = append(steps, nil)
		}
		steps[len(steps)-1] = append(steps[len(steps)-1], m)
	}
	if at := slices.IndexFunc(steps, func(s []map[string]any) bool { return s[0]["id"] == r.FormValue("after") }); at >= 0 {
		steps = steps[at+1:]
	}
	if r.FormValue("order") != "asc" {
		steps = slices.Clone(steps)
		slices.Reverse(steps)
	}
	return append([]map[string]any{}, slices.Concat(steps[:min(len(steps), number10(r.FormValue("limit")))]...)...)
}

// runOf returns a run. f.mu is held.
func (f *v1) runOf(id string) *pastRun {
	for _, run := range f.past.runs {
		if run.ID == id {
			return run
		}
	}
	return nil
}

// begin starts a run of another client. A blocking run is listed without its conversation, and never ends.
func (f *v1) begin(id, conversation, way string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	run := &pastRun{ID: id, Status: "running", Created: time.Now().UTC(), Agent: "agent-1", Metadata: map[string]any{"run_type": blockingType}, Background: way == "background", in: conversation}
	switch {
	case way == "blocking":
		run.Status = "created"
	case conversation == ownConversation:
		run.Metadata["run_type"] = "send_message"
	default:
		run.Conversation = &conversation
	}
	f.past.runs = slices.Insert(f.past.runs, 0, run)
}

// store stores messages of a run, given as pairs of a type and a text.
func (f *v1) store(run string, pairs ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	in := f.runOf(run).in
	for pair := range slices.Chunk(pairs, 2) {
		f.past.date = f.past.date.Add(time.Second)
		m := map[string]any{"id": fmt.Sprintf("message-%d", len(f.past.rows[in])+1), "date": f.past.date, "message_type": pair[0], "run_id": run, "step_id": "step-" + run, "otid": nil, "seq_id": nil}
		text, otid, _ := strings.Cut(pair[1], "|")
		switch pair[0] {
		case rowRequest:
			c := map[string]any{"name": "Bash", "arguments": "{}", "tool_call_id": text}
			m["tool_call"], m["tool_calls"] = c, []any{c}
		case rowResponse:
			m["approvals"] = []any{map[string]any{"type": "approval", "tool_call_id": text, "approve": otid == "yes"}}
		case rowReturn:
			m["tool_call_id"], m["tool_return"], m["status"] = text, otid, "success"
		default:
			if m["content"] = text; otid != "" {
				m["otid"] = otid
			}
		}
		f.past.rows[in] = append(f.past.rows[in], m)
	}
}

// finish ends a run.
func (f *v1) finish(run, status, stop string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, at := f.runOf(run), "2026-11-22T19:36:36.085659" // as the server writes it, without a zone
	r.Status, r.Stop, r.Completed = status, &stop, &at
}

// script sets the frames that a run streams.
func (f *v1) script(run string, frames ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs[run] = number(run, frames)
}

func (f *v1) requests(route string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.past.asked[route]
}

// made creates conversations, as another client would.
func (f *v1) made(t *testing.T, ids ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		f.conversations[id] = "agent-1"
	}
}
