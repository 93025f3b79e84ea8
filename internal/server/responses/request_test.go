package responses

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/outputtest"
	"github.com/leat-dev/leat/internal/service/quota"
)

// post makes a request for a response, or reads it.
func (h *harness) response(status int, subject, method, path, body string) (o object) {
	h.T.Helper()
	if err := json.Unmarshal([]byte(h.Ask(status, subject, method, path, body)), &o); err != nil {
		h.T.Fatal(err)
	}
	return o
}

// Parameters that would change the meaning of the answer are refused, in OpenAI's format.
func TestRefusals(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	for body, want := range map[string]string{
		`{}`:                         "input: missing",
		`{"input":[]}`:               "the last item must be a user message",
		`{"input":7}`:                "must be a text or a list",
		`{"input":"x","model":"no"}`: "model_not_found",
		`{"input":"x","tools":[{"type":"web_search"}]}`:                                                   "tools_not_supported",
		`{"input":"x","tool_choice":"required"}`:                                                          "tool_choice",
		`{"input":"x","text":{"format":{"type":"json_schema"}}}`:                                          "text.format",
		`{"input":"x","prompt":{"id":"p"}}`:                                                               "prompt",
		`{"input":"x","top_logprobs":2}`:                                                                  "top_logprobs",
		`{"input":"x","store":false,"background":true}`:                                                   "background",
		`{"input":"x","conversation":"a","previous_response_id":"resp_b"}`:                                "together",
		`{"input":"x","conversation":"none"}`:                                                             "not_found",
		`{"input":"x","previous_response_id":"resp_none"}`:                                                "not_found",
		`{"input":[{"type":"item_reference","id":"a"}]}`:                                                  "item_reference",
		`{"input":[{"type":"function_call_output","call_id":"call_x","output":"y"}]}`:                     "no tool call",
		`{"input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]}`:                     "input_file",
		`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://a.example/"}]}]}`: "data URL",
	} {
		res := h.Send("alice", http.MethodPost, "/v1/responses", body)
		var b struct{ Error errorBody }
		if err := json.NewDecoder(res.Body).Decode(&b); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode < 400 || res.StatusCode >= 500 || b.Error.Type != "invalid_request_error" || !strings.Contains(b.Error.Message+b.Error.Code, want) {
			t.Errorf("%s: %d %+v, want %s", body, res.StatusCode, b.Error, want)
		}
	}
}

// Functions of the client are offered to the agent, unless the client chooses that none is called.
func TestFunctions(t *testing.T) {
	h := newHarness(t, outputtest.ListTools, quota.Limits{})
	const tools = `"tools":[{"type":"function","name":"map","description":"shows a map","parameters":{"type":"object"},"strict":true},{"type":"function","name":"beep","parameters":null}]`
	for body, want := range map[string]string{
		`{"input":"x",` + tools + `}`:                      `[{"name":"map","description":"shows a map","parameters":{"type":"object"}},{"name":"beep"}]`,
		`{"input":"x","tool_choice":"auto",` + tools + `}`: `[{"name":"map","description":"shows a map","parameters":{"type":"object"}},{"name":"beep"}]`,
		`{"input":"x","tool_choice":"none",` + tools + `}`: "null",
		`{"input":"x"}`: "null",
	} {
		o := h.response(http.StatusOK, "alice", http.MethodPost, "/v1/responses", body)
		if got := (*o.Output[0].Content)[0].Text; got != want {
			t.Errorf("%s: the agent is offered %s, want %s", body, got, want)
		}
	}
	h.Ask(http.StatusBadRequest, "alice", http.MethodPost, "/v1/responses", `{"input":"x","tools":[{"type":"function","name":"two words"}]}`)
}

// Responses and conversations of others don't exist.
func TestOthers(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	o := h.response(http.StatusOK, "alice", http.MethodPost, "/v1/responses", `{"input":"x"}`)
	for _, path := range []string{"", "?stream=true", "/input_items"} {
		h.Ask(http.StatusNotFound, "bob", http.MethodGet, "/v1/responses/"+o.ID+path, "")
	}
	h.Ask(http.StatusNotFound, "bob", http.MethodPost, "/v1/responses/"+o.ID+"/cancel", "")
	h.Ask(http.StatusNotFound, "bob", http.MethodDelete, "/v1/responses/"+o.ID, "")
	h.Ask(http.StatusNotFound, "bob", http.MethodPost, "/v1/responses", `{"input":"x","previous_response_id":"`+o.ID+`"}`)
	h.Ask(http.StatusNotFound, "bob", http.MethodPost, "/v1/responses", `{"input":"x","conversation":"`+o.Conversation.ID+`"}`)
	h.Ask(http.StatusNotFound, "alice", http.MethodGet, "/v1/responses/"+o.ID+".1", "")
	h.Ask(http.StatusNotFound, "alice", http.MethodGet, "/v1/responses/"+o.ID+".1?stream=true", "")
	h.Ask(http.StatusOK, "alice", http.MethodDelete, "/v1/responses/"+o.ID, "")
	h.Ask(http.StatusNotFound, "alice", http.MethodGet, "/v1/responses/"+o.ID, "")
}

// An answer to a wait is scoped too, and the question of an agent is answered by the next message.
func TestQuestion(t *testing.T) {
	h := newHarness(t, agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		a, err := out.Ask(ctx, event.Request{ID: "ask", Kind: event.RequestInput, Prompt: "Which one?", Options: []string{"red", "blue"}})
		if err != nil {
			return err
		}
		return out.Text("You chose " + string(a.Decision) + a.Text + ".")
	}), quota.Limits{})
	asked := h.response(http.StatusOK, "alice", http.MethodPost, "/v1/responses", `{"input":"x"}`)
	if len(asked.Output) != 1 || (*asked.Output[0].Content)[0].Text != "Which one?\n\n- red\n- blue" {
		t.Fatalf("%+v", asked.Output)
	}
	h.Ask(http.StatusNotFound, "bob", http.MethodPost, "/v1/responses", `{"input":[{"type":"function_call_output","call_id":"`+requestID(prefixCall, strings.TrimPrefix(asked.ID, prefixResponse), "ask")+`","output":"red"}]}`)
	done := h.response(http.StatusOK, "alice", http.MethodPost, "/v1/responses", `{"input":"Blue","previous_response_id":"`+asked.ID+`"}`)
	if done.text() != "You chose blue." || done.Status != statusCompleted {
		t.Errorf("%+v", done.Output)
	}
	items := h.Ask(http.StatusOK, "alice", http.MethodGet, "/v1/responses/"+done.ID+"/input_items", "")
	if !strings.Contains(items, `"text":"blue"`) {
		t.Error(items)
	}
}

// A turn that waits for two answers at once lists both, and each may come alone.
func TestTwoRequests(t *testing.T) {
	h := newHarness(t, agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		failures := make(chan error, 2)
		for _, id := range []string{"one", "two"} {
			go func() {
				_, err := out.Ask(ctx, event.Request{ID: id, Kind: event.RequestInput, Tool: id})
				failures <- err
			}()
		}
		if err := errors.Join(<-failures, <-failures); err != nil {
			return err
		}
		return out.Text("both")
	}), quota.Limits{})
	o := h.response(http.StatusOK, "alice", http.MethodPost, "/v1/responses", `{"input":"x"}`)
	answered := map[string]bool{}
	for o.text() != "both" {
		if len(o.Output) == 0 {
			t.Fatalf("%+v", o)
		}
		call := o.Output[0]
		if answered[call.CallID] {
			t.Fatalf("%s is asked again", call.CallID)
		}
		answered[call.CallID] = true
		o = h.response(http.StatusOK, "alice", http.MethodPost, "/v1/responses", `{"input":[{"type":"function_call_output","call_id":"`+call.CallID+`","output":"y"}],"previous_response_id":"`+o.ID+`"}`)
	}
	if len(answered) != 2 {
		t.Errorf("%v", answered)
	}
}

// Instructions and earlier messages begin the conversation, and the user's message keeps its id.
func TestHistory(t *testing.T) {
	var got []string
	h := newHarness(t, agentFunc(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
		got = append(got, in.Message.ID+" "+in.Message.Text)
		return out.Text("ok")
	}), quota.Limits{})
	o := h.response(http.StatusOK, "alice", http.MethodPost, "/v1/responses",
		`{"instructions":"Be brief.","input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","id":"mine","content":"c"}]}`)
	if len(got) != 1 || got[0] != "mine c" {
		t.Errorf("%q", got)
	}
	list := h.Ask(http.StatusOK, "alice", http.MethodGet, "/v1/conversations/"+o.Conversation.ID+"/items?order=asc", "")
	at := -1
	for _, text := range []string{"Be brief.", `"a"`, `"b"`, `"c"`, `"ok"`} {
		i := strings.Index(list, text)
		if i <= at {
			t.Errorf("%s isn't in its place in %s", text, list)
		}
		at = i
	}
}

// A client that disconnects stops nothing.
func TestDisconnect(t *testing.T) {
	gate := make(chan struct{})
	h := newHarness(t, agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		if err := errors.Join(out.Text("first "), out.Flush()); err != nil {
			return err
		}
		select {
		case <-gate:
			return out.Text("second")
		case <-ctx.Done():
			return ctx.Err()
		}
	}), quota.Limits{})
	res := h.Send("alice", http.MethodPost, "/v1/responses", `{"input":"x","stream":true}`)
	turn := res.Header.Get("Leat-Turn")
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Gateway.Turn(t.Context(), gateway.Principal{Subject: "alice"}, gateway.ActionRead, turn); err != nil {
		t.Fatal(err)
	}
	close(gate)
	stream := h.Ask(http.StatusOK, "alice", http.MethodGet, "/v1/responses/resp_"+turn+"?stream=true", "")
	frames := framesOf(t, stream)
	if end := frames[len(frames)-1]; end.Type != "response.completed" || end.Response.text() != "first second" {
		t.Errorf("%s", stream)
	}
}
