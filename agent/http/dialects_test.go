package http_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	httpagent "github.com/leat-dev/leat/agent/http"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
)

// recorded is a complete stream of each dialect: a file below ../../dialect, or the stream itself if the dialect has no file.
var recorded = map[string]struct{ file, body string }{
	"a2a":           {file: "a2a/testdata/task.sse"},
	"acp":           {file: "acp/testdata/tools.ndjson"},
	"ag-ui":         {file: "agui/testdata/tools.sse"},
	"agentsdk":      {file: "agentsdk/testdata/tools.sse"},
	"aisdk":         {file: "aisdk/testdata/tools.sse"},
	"anthropic":     {file: "anthropic/testdata/tools.sse"},
	"eliza-actions": {file: "elizaactions/testdata/statuses.ndjson"},
	"eliza-chat":    {file: "elizachat/testdata/tokens.sse"},
	"gemini":        {file: "gemini/testdata/kinds.sse"},
	"langgraph":     {file: "langgraph/testdata/tuples.sse"},
	"leat":          {file: "leat/testdata/turn.ndjson"},
	"letta": {body: `data: {"message_type":"assistant_message","id":"a","otid":"o","content":"Hello.","run_id":"r","step_id":"s","seq_id":1}` + "\n\n" +
		`data: {"message_type":"stop_reason","stop_reason":"end_turn"}` + "\n\ndata: [DONE]\n\n"},
	"letta-code": {body: `{"type":"message","message_type":"assistant_message","id":"a","otid":"o","content":"Hello.","run_id":"r"}` + "\n" +
		`{"type":"result","subtype":"success","result":"Hello.","stop_reason":"end_turn"}` + "\n"},
	"ollama":           {file: "ollama/testdata/chat.ndjson"},
	"openai-chat":      {file: "openaichat/testdata/calls.sse"},
	"openai-responses": {file: "openairesponses/testdata/text.sse"},
	"openclaw":         {file: "openclaw/testdata/2026.9.6/plain.jsonl"},
}

// A program may answer in any dialect: viewers get the result of the dialect's decoder for the same bytes.
func TestEachDialect(t *testing.T) {
	registry := all.Registry()
	for _, d := range registry.List() {
		t.Run(d.Name, func(t *testing.T) {
			r, ok := recorded[d.Name]
			if !ok {
				t.Fatal("no recorded stream of this dialect")
			}
			body := []byte(r.body)
			if r.file != "" {
				body = dialecttest.Load(t, d, filepath.Join("..", "..", "dialect", r.file), "").Body
			}
			st := dialect.NewStream(d)
			ops, err := st.Write(body)
			if err != nil {
				t.Fatal(err)
			}
			rest, err := st.Close()
			if err != nil {
				t.Fatal(err)
			}
			want := dialecttest.Fold(t, append(ops, rest...)).Visible(dialecttest.Turn)
			if want == "" {
				t.Fatal("the visible text of its stream is empty")
			}
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				// The stream is sent in two halves: its meaning must not depend on how it is split.
				for _, half := range [][]byte{body[:len(body)/2], body[len(body)/2:]} {
					if _, err := w.Write(half); err != nil {
						t.Logf("the agent hangs up: %v", err) // it may, after the turn's end
						return
					}
					w.(http.Flusher).Flush()
				}
			})
			spec, err := agent.ParseSpec("http:" + url + "?dialect=" + d.Name)
			if err != nil {
				t.Fatal(err)
			}
			a, err := agent.Kinds{httpagent.Kind(registry)}.Make(spec)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(a.(interface{ Close() }).Close)
			stage := agenttest.NewStage(t.Context())
			if err := stage.Run(a, input); err != nil {
				t.Fatal(err)
			}
			wantTurn(t, stage, event.Completed, want)
		})
	}
}

// A response that asks for an approval and ends can't get the decision: the error says what the agent must do instead.
func TestAsksAndEnds(t *testing.T) {
	body, err := os.ReadFile("../../dialect/openairesponses/testdata/cut-asked.sse")
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write(body); err != nil {
			t.Error(err)
		}
	})
	spec, err := agent.ParseSpec("http:" + url + "?dialect=openai-responses")
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.Kinds{httpagent.Kind(all.Registry())}.Make(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.(interface{ Close() }).Close)
	wantError(t, agenttest.NewStage(t.Context()).Run(a, input), "cut_short", true, "asked the user", "push the turn")
}
