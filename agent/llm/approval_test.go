package llm

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/llm/llmtest"
	"github.com/leat-dev/leat/event"
)

// A response that asks for approvals waits for a person, and goes on from the answers in the same turn.
func TestApprovals(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	stream, err := os.ReadFile("../../dialect/openairesponses/testdata/approved.sse")
	if err != nil {
		t.Fatal(err)
	}
	second := bytes.Index(stream[1:], []byte("event: response.created")) + 1
	for name, c := range map[string]struct {
		options map[string]string
		want    string // of the second request
	}{
		"stateless": {nil, `{"model":"` + llmtest.Model + `","input":[{"role":"user","content":[{"type":"input_text","text":"go"}]},
			{"arguments":"{\"url\":\"https://example.org\"}","id":"mcpr_shorten","name":"shorten","server_label":"links","type":"mcp_approval_request"},
			{"type":"mcp_approval_response","approval_request_id":"mcpr_shorten","approve":true},
			{"arguments":"{\"url\":\"https://example.org\"}","id":"mcpr_erase","name":"erase","server_label":"links","type":"mcp_approval_request"},
			{"type":"mcp_approval_response","approval_request_id":"mcpr_erase","approve":false,"reason":"too dangerous"}],"stream":true,"store":false}`},
		"stored": {map[string]string{"background": "true"}, `{"model":"` + llmtest.Model + `","input":[
			{"type":"mcp_approval_response","approval_request_id":"mcpr_shorten","approve":true},
			{"type":"mcp_approval_response","approval_request_id":"mcpr_erase","approve":false,"reason":"too dangerous"}],
			"previous_response_id":"resp_1","stream":true,"background":true,"store":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			var bodies []json.RawMessage
			keys := map[string]bool{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body json.RawMessage
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Errorf("%s %s: %v", r.Method, r.URL, err)
				}
				bodies = append(bodies, body)
				keys[r.Header.Get("Idempotency-Key")] = true
				w.Header().Set("Content-Type", "text/event-stream")
				if len(bodies) == 1 {
					_, _ = w.Write(stream[:second])
				} else {
					_, _ = w.Write(stream[second:])
				}
			}))
			defer server.Close()
			stage := agenttest.NewStage(t.Context())
			stage.Answer = func(r event.Request) event.Answer {
				if r.Tool == "shorten" {
					return event.Answer{Decision: event.Approve}
				}
				return event.Answer{Decision: event.Deny, Text: "too dangerous"}
			}
			if err := stage.Run(made(t, "responses", server.URL, c.options), question("go")); err != nil {
				t.Fatal(err)
			}
			if turn := stage.Turn(); turn.Outcome != event.Completed || stage.Visible() != "Here it is." || turn.Usage.Input != 30 {
				t.Errorf("%+v, %q", turn, stage.Visible())
			}
			if len(bodies) != 2 || len(keys) != 2 {
				t.Fatalf("%d requests, %d keys", len(bodies), len(keys))
			}
			var got, want any
			if json.Unmarshal(bodies[1], &got) != nil || json.Unmarshal([]byte(c.want), &want) != nil {
				t.Fatalf("%s", bodies[1])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the second request (-want +got):\n%s", diff)
			}
		})
	}
}
