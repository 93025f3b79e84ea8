package letta

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/service/quota"
)

const toAgent = "/letta/v1/agents/agent-eliza/messages/stream"

// begin makes a conversation of a subject and returns its path.
func (h *harness) begin(subject string) string {
	h.T.Helper()
	var c conversation
	if err := json.Unmarshal([]byte(h.Ask(http.StatusOK, subject, http.MethodPost, "/letta/v1/conversations/?agent_id=agent-eliza", "{}")), &c); err != nil {
		h.T.Fatal(err)
	}
	return "/letta/v1/conversations/" + c.ID
}

// Two users have two conversations with an agent, and neither sees or changes anything of the other.
func TestConversationsAreTheirs(t *testing.T) {
	h := newHarness(t, asking, quota.Limits{})
	if stream := h.Ask(http.StatusOK, "alice", http.MethodPost, toAgent, body("m1", "of alice")); !strings.Contains(stream, typeApproval) {
		t.Fatalf("alice gets %s", stream)
	}
	if list := h.Ask(http.StatusOK, "bob", http.MethodGet, "/letta/v1/agents/agent-eliza/messages", ""); strings.TrimSpace(list) != "[]" {
		t.Errorf("bob gets %s", list)
	}
	approval := `{"messages":[{"type":"approval","approvals":[{"type":"approval","tool_call_id":"ask","approve":true}]}]}`
	h.Ask(http.StatusBadRequest, "bob", http.MethodPost, toAgent, approval)
	h.Ask(http.StatusOK, "bob", http.MethodPost, toAgent, body("m1", "of bob"))
	h.Ask(http.StatusOK, "bob", http.MethodPost, "/letta/v1/agents/agent-eliza/messages/cancel", "{}")
	if stream := h.Ask(http.StatusOK, "alice", http.MethodPost, toAgent, approval); !strings.Contains(stream, "the answer is approve") {
		t.Errorf("alice gets %s", stream)
	}
	path := h.begin("alice")
	h.Ask(http.StatusNotFound, "bob", http.MethodGet, path, "")
	h.Ask(http.StatusNotFound, "bob", http.MethodPost, path+"/messages", body("m1", "hi"))
}

// Errors have the form of the API.
func TestRefusals(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	path := h.begin("alice")
	for _, test := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{http.MethodPost, path + "/messages", "{", 400, `{"detail":"`},
		{http.MethodPost, path + "/messages", "{}", 400, `{"detail":"A message is needed."}`},
		{http.MethodPost, path + "/messages", `{"messages":[{"role":"assistant","content":"x"}]}`, 400, `can't be sent.`},
		{http.MethodPost, path + "/messages", `{"messages":[{"role":"user","content":7}]}`, 400, `a text or a list of parts`},
		{http.MethodPost, path + "/messages", `{"messages":[{"role":"user","content":[{"type":"x"}]}]}`, 400, `a part of type \"x\" can't be sent here`},
		{http.MethodPost, path + "/stream", "{}", 404, `No run is active`},
		{http.MethodGet, path + "/messages?limit=x", "", 400, `limit must be a positive number`},
		{http.MethodPatch, "/letta/v1/agents/agent-eliza", `{"model":"leat/eliza","model_settings":{},"context_window_limit":1}`, 200, `"model":"leat/eliza"`},
		{http.MethodPatch, "/letta/v1/agents/agent-eliza", `{"model":"leat/other"}`, 400, `model of an agent can't be changed`},
		{http.MethodPatch, "/letta/v1/agents/agent-eliza", `{"system":"x"}`, 400, `system of an agent can't be changed`},
		{http.MethodPost, path + "/messages", `{"messages":[{"role":"user","content":"a"},{"type":"approval","approvals":[]}]}`, 400, `answers must be in the first message`},
		{http.MethodPost, path + "/messages", `{"messages":[{"type":"approval","approvals":[{"type":"tool","tool_call_id":"x"}]}]}`, 400, `no tool call is currently awaiting approval`},
		{http.MethodGet, "/letta/v1/agents/agent-nobody", "", 404, `There is no agent`},
		{http.MethodGet, "/letta/v1/runs/run-none", "", 404, `{"detail":"Not found."}`},
	} {
		if text := h.Ask(test.status, "alice", test.method, test.path, test.body); !strings.Contains(strings.ToLower(text), strings.ToLower(test.want)) {
			t.Errorf("%s %s: %s, want %s", test.path, test.body, text, test.want)
		}
	}
}

// A text of several parts is the message, without what Letta Code tells its agents about itself.
func TestContent(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	path := h.begin("alice")
	sent := `{"messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>\nx\n</system-reminder>"},{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`
	if got := h.Ask(http.StatusOK, "alice", http.MethodPost, path+"/messages", sent); !strings.Contains(got, `re: a\nb"`) {
		t.Errorf("got %s", got)
	}
}

// The pages of a list have all elements once and end, in both orders and directions.
func TestPages(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	path := h.begin("alice")
	for _, text := range []string{"a", "b", "c"} {
		h.Ask(http.StatusOK, "alice", http.MethodPost, path+"/messages", body(text, text))
	}
	for _, order := range []string{"asc", "desc"} {
		got, after := "", ""
		for range 10 {
			var list []struct {
				ID      string `json:"id"`
				Content string `json:"content"`
			}
			if err := json.Unmarshal([]byte(h.Ask(http.StatusOK, "alice", http.MethodGet, path+"/messages?limit=2&order="+order+"&after="+after, "")), &list); err != nil {
				t.Fatal(err)
			}
			if len(list) == 0 {
				after = ""
				break
			}
			for _, m := range list {
				got += m.Content + " "
			}
			after = list[len(list)-1].ID
		}
		want := map[string]string{"asc": "a re: a b re: b c re: c ", "desc": "re: c c re: b b re: a a "}[order]
		if got != want || after != "" {
			t.Errorf("%s: %q, want %q", order, got, want)
		}
	}
}

// The same message again gets the same run, and adds nothing.
func TestRepetition(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	path := h.begin("alice")
	first := h.Ask(http.StatusOK, "alice", http.MethodPost, path+"/messages", body("m", "hi"))
	again := h.Ask(http.StatusOK, "alice", http.MethodPost, path+"/messages", body("m", "hi"))
	if d := cmp.Diff(framesOf(t, first), framesOf(t, again)); d != "" {
		t.Errorf("(-first +again)\n%s", d)
	}
	if n := strings.Count(h.Ask(http.StatusOK, "alice", http.MethodGet, path+"/messages", ""), `"message_type"`); n != 2 {
		t.Errorf("%d messages", n)
	}
}

// After its user has stopped an answer, Letta Code sends the messages since then again. Others become one message.
func TestSeveralMessages(t *testing.T) {
	isRunning := make(chan struct{})
	h := newHarness(t, agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		if in.Message.Text != "slow" {
			return out.Text("re: " + in.Message.Text)
		}
		close(isRunning)
		<-ctx.Done()
		return ctx.Err()
	}), quota.Limits{})
	path := h.begin("alice")
	res := h.Send("alice", http.MethodPost, path+"/messages", body("1", "slow"))
	<-isRunning
	h.Ask(http.StatusOK, "alice", http.MethodPost, path+"/cancel", "{}")
	if b, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(b), stopCancelled) {
		t.Fatalf("%s, %v", b, err)
	}
	for _, test := range []struct{ sent, want string }{
		{`{"role":"user","otid":"2","content":"slow"},{"role":"user","otid":"3","content":"hello"}`, "re: hello"},
		{`{"role":"user","otid":"4","content":"slow"},{"role":"user","otid":"5","content":"hello"},{"role":"user","otid":"6","content":"bye"}`, "re: bye"},
		{`{"role":"user","otid":"7","content":"bye"},{"role":"user","otid":"8","content":"again"}`, "re: bye\n\nagain"},
	} {
		stream := h.Ask(http.StatusOK, "alice", http.MethodPost, path+"/messages", `{"messages":[`+test.sent+`]}`)
		if got := textIn(framesOf(t, stream)); got != test.want {
			t.Errorf("%s: %q, want %q", test.sent, got, test.want)
		}
	}
}

// The default conversation of an agent is the one for clients that name none.
func TestDefaultConversation(t *testing.T) {
	h := newHarness(t, asking, quota.Limits{})
	h.Ask(http.StatusNotFound, "alice", http.MethodGet, "/letta/v1/conversations/default?agent_id=agent-eliza", "")
	h.Ask(http.StatusNotFound, "alice", http.MethodPost, "/letta/v1/conversations/default/messages", body("1", "hi"))
	direct := strings.TrimSuffix(body("1", "hi"), "}") + `,"agent_id":"agent-eliza"}`
	if stream := h.Ask(http.StatusOK, "alice", http.MethodPost, "/letta/v1/conversations/default/messages", direct); !strings.Contains(stream, typeApproval) {
		t.Errorf("got %s", stream)
	}
	for path, want := range map[string]string{
		"/letta/v1/conversations/default/messages?agent_id=agent-eliza": typeApproval,
		"/letta/v1/agents/agent-eliza/messages":                         typeApproval,
		"/letta/v1/conversations/default?agent_id=agent-eliza":          `.requests"]`,
	} {
		if got := h.Ask(http.StatusOK, "alice", http.MethodGet, path, ""); !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	h.begin("alice")
	if got := h.Ask(http.StatusOK, "alice", http.MethodGet, "/letta/v1/conversations/?agent_id=agent-eliza", ""); strings.Count(got, `"id"`) != 1 {
		t.Errorf("the list is %s", got)
	}
	again := h.Ask(http.StatusOK, "alice", http.MethodPost, "/letta/v1/conversations/default/stream", `{"agent_id":"agent-eliza","otid":"1"}`)
	if !strings.Contains(again, stopApproval) {
		t.Errorf("got %s", again)
	}
	if got := h.Ask(http.StatusOK, "alice", http.MethodPost, "/letta/v1/conversations/agent-eliza/cancel", "{}"); !strings.Contains(got, stopCancelled) {
		t.Errorf("got %s", got)
	}
}

// A run that failed says why, and Letta Code doesn't send the message again by itself. Lists of types have the calls with their results.
func TestFailedRun(t *testing.T) {
	h := newHarness(t, agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		tool, err := out.Tool("clock", "c")
		if err != nil {
			return err
		}
		if err := errors.Join(tool.Output("noon"), tool.Done()); err != nil {
			return err
		}
		return &agent.Error{Code: "overloaded_error", Message: "The model is busy.", Retryable: true}
	}), quota.Limits{})
	path := h.begin("alice")
	frames := framesOf(t, h.Ask(http.StatusOK, "alice", http.MethodPost, path+"/messages", body("1", "hi")))
	run := h.Ask(http.StatusOK, "alice", http.MethodGet, "/letta/v1/runs/"+frames[0].Run, "")
	if want := `"metadata":{"error":{"error_type":"llm_error","message":"The model is busy.","retryable":false}}`; !strings.Contains(run, want) {
		t.Errorf("the run is %s", run)
	}
	for query, want := range map[string]int{"": 1, "&statuses=failed&statuses=running": 1, "&statuses=running": 0} {
		list := h.Ask(http.StatusOK, "alice", http.MethodGet, "/letta/v1/runs/?conversation_id="+path[strings.LastIndex(path, "/")+1:]+query, "")
		if strings.Count(list, `"id"`) != want {
			t.Errorf("the runs of %q are %s", query, list)
		}
	}
	for types, want := range map[string][]string{
		"tool_return_message": {typeCall, typeReturn}, "user_message": {typeUser}, "tool_call_message": {typeCall}, "": {typeUser, typeCall, typeReturn},
	} {
		query := "/messages?order=asc"
		if types != "" {
			query += "&include_return_message_types=" + types
		}
		var list []frame
		if err := json.Unmarshal([]byte(h.Ask(http.StatusOK, "alice", http.MethodGet, path+query, "")), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range list {
			got = append(got, m.Type)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", types, got, want)
		}
	}
}

// The end of the gateway doesn't look like the end of an answer: the connection breaks, and the client resumes.
func TestShutdown(t *testing.T) {
	h := newHarness(t, agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		if err := errors.Join(out.Text("first "), out.Flush()); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}), quota.Limits{})
	res := h.Send("alice", http.MethodPost, toAgent, body("m1", "hi"))
	r := bufio.NewReader(res.Body)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "first") {
			break
		}
	}
	h.Server.Close()
	rest, err := io.ReadAll(r)
	if err == nil {
		t.Errorf("the stream ends with %s", rest)
	}
	if strings.Contains(string(rest), typeStop) {
		t.Errorf("the stream has an end: %s", rest)
	}
}

// The result of a client's tool is a text, whatever form the client gives it.
func TestReturnText(t *testing.T) {
	for raw, want := range map[string]string{
		`"plain"`: "plain",
		`[{"type":"text","text":"one"},{"type":"text","text":"two"}]`: "one\ntwo",
		`[{"type":"image","source":{}}]`:                              `[{"type":"image","source":{}}]`,
		`{"city":"Graz"}`:                                             `{"city":"Graz"}`,
		`["a"]`:                                                       `["a"]`,
		`[]`:                                                          `[]`,
		``:                                                            "",
	} {
		if got := returnText(json.RawMessage(raw)); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
