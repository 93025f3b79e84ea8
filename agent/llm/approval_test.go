package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/llm/llmtest"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
)

// If a response asks for approvals, the turn waits for the answers and continues with a second request.
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

// eventwise returns each event of a body from a separate Read, so that each event is committed separately.
type eventwise struct{ http.RoundTripper }

func (e eventwise) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := e.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	var events []io.Reader
	for _, one := range bytes.SplitAfter(b, []byte("\n\n")) {
		events = append(events, bytes.NewReader(one))
	}
	res.Body = io.NopCloser(io.MultiReader(events...))
	return res, nil
}

// A background response that waits for approvals is resumed wherever the process ends. Its answers are sent at most once: if they
// may have arrived, the turn fails.
func TestApprovalsAfterARestart(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	stream, err := os.ReadFile("../../dialect/openairesponses/testdata/approved.sse")
	if err != nil {
		t.Fatal(err)
	}
	second := bytes.Index(stream[1:], []byte("event: response.created")) + 1
	responses := map[string][]byte{"resp_1": stream[:second], "resp_2": stream[second:]}
	var answers atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if r.Method == http.MethodGet { // the events after a position
			after, err := strconv.Atoi(r.URL.Query().Get("starting_after"))
			if err != nil {
				t.Errorf("%s: %v", r.URL, err)
			}
			for _, e := range bytes.SplitAfter(responses[path.Base(r.URL.Path)], []byte("\n\n")) {
				m := regexp.MustCompile(`"sequence_number": (\d+)`).FindSubmatch(e)
				if m == nil {
					continue
				}
				if n, _ := strconv.Atoi(string(m[1])); n > after {
					_, _ = w.Write(e)
				}
			}
			return
		}
		var body struct {
			Input    []approval `json:"input"`
			Previous string     `json:"previous_response_id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if body.Previous == "" {
			_, _ = w.Write(responses["resp_1"])
			return
		}
		answers.Add(1)
		want := []approval{
			{Type: "mcp_approval_response", Request: "mcpr_shorten", Approve: true},
			{Type: "mcp_approval_response", Request: "mcpr_erase", Reason: "too dangerous"},
		}
		if diff := cmp.Diff(want, body.Input); diff != "" || body.Previous != "resp_1" {
			t.Errorf("the answer to %s (-want +got):\n%s", body.Previous, diff)
		}
		_, _ = w.Write(responses["resp_2"])
	}))
	defer server.Close()
	a := made(t, "responses", server.URL, map[string]string{"background": "true"}).(backgroundAgent)
	a.client.Transport = eventwise{a.client.Transport}
	decide := func(r event.Request) event.Answer {
		if r.Tool == "shorten" {
			return event.Answer{Decision: event.Approve}
		}
		return event.Answer{Decision: event.Deny, Text: "too dangerous"}
	}
	whole := &log{answer: decide}
	if err := a.Run(t.Context(), question("go"), agent.NewEmitter(t.Context(), whole)); err != nil {
		t.Fatal(err)
	}
	want := dialecttest.Dump(dialecttest.Fold(t, whole.all()))
	if !strings.Contains(want, "Here it is.") || !strings.Contains(want, `"completed"`) {
		t.Fatal(want)
	}
	asked, sent := 0, 0
	for cut := 1; cut < len(whole.ops); cut++ {
		answers.Store(0)
		var from backgroundState
		if err := json.Unmarshal(whole.last[cut-1], &from); err != nil {
			t.Fatal(err)
		}
		rest := &log{answer: decide}
		err := a.Resume(t.Context(), question("go"), whole.last[cut-1], agent.NewEmitter(t.Context(), rest))
		if from.AnswersSent {
			sent++
			if shown := (*agent.Error)(nil); !errors.As(err, &shown) || shown.Code != codeGone || answers.Load() != 0 {
				t.Errorf("restart after %d commits, while the answers were sent: %v, sent %d times", cut, err, answers.Load())
			}
			continue
		}
		first := from.ID == "resp_1"
		if first {
			asked++
		}
		if n := answers.Load(); err != nil || first != (n == 1) {
			t.Errorf("restart after %d commits: %v, answers sent %d times", cut, err, n)
		}
		all := append((&log{ops: whole.ops[:cut]}).all(), rest.all()...)
		if diff := cmp.Diff(want, dialecttest.Dump(dialecttest.Fold(t, all))); diff != "" {
			t.Errorf("restart after %d commits (-want +got):\n%s", cut, diff)
		}
	}
	if asked < 5 || sent != 1 {
		t.Errorf("%d commits before the answers, %d while they were sent", asked, sent)
	}
}
