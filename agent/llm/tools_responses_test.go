package llm

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/llm/llmtest"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
)

// A background response whose calls wait for the client is resumed wherever the process ends, with the same requests.
func TestClientToolsAfterARestart(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	s := llmtest.New(t, "responses")
	s.Reply(paints, clears("responses"))
	a := background(t, s)
	a.client.Transport = eventwise{a.client.Transport}
	whole := &log{answer: answerPage}
	if err := a.Run(t.Context(), withTools("go"), agent.NewEmitter(t.Context(), whole)); err != nil {
		t.Fatal(err)
	}
	first := s.Calls()
	dump := func(ops []event.Event) string {
		return regexp.MustCompile(`resp_\d+`).ReplaceAllString(dialecttest.Dump(dialecttest.Fold(t, ops)), "resp") // every response has another id
	}
	want := dump(whole.all())
	if !strings.Contains(want, "wörld") || !strings.Contains(want, `"completed"`) || len(first) != 3 {
		t.Fatalf("%d requests\n%s", len(first), want)
	}
	waits := 0
	for cut := 1; cut < len(whole.ops); cut++ {
		var from backgroundState
		if err := json.Unmarshal(whole.last[cut-1], &from); err != nil {
			t.Fatal(err)
		}
		if from.Tools.HasEnded {
			waits++
		}
		// The remaining responses are new ones of the server.
		switch from.Answers {
		case 0:
			s.Reply(clears("responses"))
		case 1:
			if from.ID == "resp_1" {
				s.Reply(clears("responses"))
			}
		}
		before := len(s.Calls())
		rest := &log{answer: answerPage}
		if err := a.Resume(t.Context(), withTools("go"), whole.last[cut-1], agent.NewEmitter(t.Context(), rest)); err != nil {
			t.Fatalf("restart after %d commits: %v", cut, err)
		}
		all := append((&log{ops: whole.ops[:cut]}).all(), rest.all()...)
		if diff := cmp.Diff(want, dump(all)); diff != "" {
			t.Fatalf("restart after %d commits (-want +got):\n%s", cut, diff)
		}
		posts := 0
		for _, c := range s.Calls()[before:] {
			if c.Method != "POST" {
				continue
			}
			want := first[from.Answers+1+posts].Body
			posts++
			c.Body["previous_response_id"] = want["previous_response_id"]
			if diff := cmp.Diff(want, c.Body); diff != "" {
				t.Errorf("restart after %d commits: request (-want +got):\n%s", cut, diff)
			}
		}
		if posts != 2-from.Answers {
			t.Errorf("restart after %d commits, which had %d answers: %d requests", cut, from.Answers, posts)
		}
	}
	if waits < 2 {
		t.Errorf("%d commits with calls that wait", waits)
	}
}

// If the gateway has lost the tools of a turn, a resumed turn answers the calls with errors and continues.
func TestRestartWithoutTools(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	s := llmtest.New(t, "responses")
	s.Reply(paints)
	a := background(t, s)
	stopped := &log{} // requests fail
	if err := a.Run(t.Context(), withTools("go"), agent.NewEmitter(t.Context(), stopped)); err == nil {
		t.Fatal("the turn did not wait for its client")
	}
	rest := &log{}
	if err := a.Resume(t.Context(), question("go"), stopped.last[len(stopped.last)-1], agent.NewEmitter(t.Context(), rest)); err != nil {
		t.Fatal(err)
	}
	end := rest.all()[len(rest.all())-1]
	if calls := s.Calls(); end.Get().Outcome != event.Completed || len(calls) != 2 || len(calls[1].Body["input"].(list)) != 2 {
		t.Errorf("%+v, %d requests", end.Body, len(calls))
	}
}

// A response may ask for an approval and call a tool of the client. One request has both answers, in the same turn.
func TestApprovalAndCall(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	first := events(
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"m-1"}}`,
		`{"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":{"type":"mcp_approval_request","id":"mcpr_1","name":"erase","server_label":"disk","arguments":"{}"}}`,
		`{"type":"response.output_item.done","sequence_number":2,"output_index":1,"item":{"type":"function_call","call_id":"call_a","name":"clear","arguments":"{}"}}`,
		`{"type":"response.completed","sequence_number":3,"response":{"id":"resp_1","output":[],"usage":{"input_tokens":1}}}`,
	)
	second := events(
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_2","model":"m-1"}}`,
		`{"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":{"type":"function_call","call_id":"call_b","name":"clear","arguments":"{}"}}`,
		`{"type":"response.completed","sequence_number":2,"response":{"id":"resp_2","output":[],"usage":{"input_tokens":2}}}`,
	)
	third := events(
		`{"type":"response.created","sequence_number":0,"response":{"id":"resp_3","model":"m-1"}}`,
		`{"type":"response.output_text.delta","sequence_number":1,"output_index":0,"content_index":0,"delta":"Done."}`,
		`{"type":"response.completed","sequence_number":2,"response":{"id":"resp_3","output":[],"usage":{"input_tokens":4}}}`,
	)
	approvalItem := `{"arguments":"{}","id":"mcpr_1","name":"erase","server_label":"disk","type":"mcp_approval_request"},`
	for background, want := range map[string][2]string{
		"false": {
			`[` + approvalItem + `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true},
			{"type":"function_call","call_id":"call_a","name":"clear","arguments":"{}"},{"type":"function_call_output","call_id":"call_a","output":"done"}]`,
			`[{"type":"function_call","call_id":"call_b","name":"clear","arguments":"{}"},{"type":"function_call_output","call_id":"call_b","output":"done"}]`,
		},
		"true": {
			`[{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true},{"type":"function_call_output","call_id":"call_a","output":"done"}]`,
			`[{"type":"function_call_output","call_id":"call_b","output":"done"}]`,
		},
	} {
		var inputs []list
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body struct {
				Input list `json:"input"`
			}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			inputs = append(inputs, body.Input)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, []string{first, second, third}[min(len(inputs), 3)-1])
		}))
		defer server.Close()
		stage := agenttest.NewStage(t.Context())
		stage.Answer = func(r event.Request) event.Answer {
			if r.Kind == event.RequestApproval {
				return event.Answer{Decision: event.Approve}
			}
			return event.Answer{Text: "done"}
		}
		if err := stage.Run(made(t, "responses", server.URL, map[string]string{"background": background}), withTools("go")); err != nil {
			t.Fatal(err)
		}
		if turn := stage.Turn(); turn.Outcome != event.Completed || stage.Visible() != "Done." || turn.Usage.Input != 7 || len(inputs) != 3 {
			t.Fatalf("background %s: %+v, %q, %d requests", background, turn, stage.Visible(), len(inputs))
		}
		for i, text := range want {
			var items list
			if err := json.Unmarshal([]byte(text), &items); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(items, inputs[i+1][max(len(inputs[i+1])-len(items), 0):]); diff != "" {
				t.Errorf("background %s: request %d (-want +got):\n%s", background, i+2, diff)
			}
		}
	}
}
