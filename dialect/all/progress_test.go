package all_test

import (
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/all"
)

// A frame without operations counts as progress only if its format says that the agent is working.
func TestProgressWithoutOperations(t *testing.T) {
	for _, tt := range []struct {
		dialect, event, data string
		want                 bool
	}{
		{"anthropic", "ping", `{"type":"ping"}`, false},
		{"anthropic", "", `{"type":"x-beat"}`, false},
		{"anthropic", "", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`, true},
		{"anthropic", "message_delta", `{"usage":{"output_tokens":1}}`, true},
		{"openai-chat", "", `{"choices":[]}`, false},
		{"openai-chat", "", `{"choices":[],"usage":{"total_tokens":1}}`, false},
		{"openai-chat", "", `{"choices":[{"index":0,"delta":{"content":""}}]}`, true},
		{"openai-responses", "", `{"type":"keepalive","sequence_number":9}`, false},
		{"openai-responses", "", `{"type":"response.in_progress"}`, false},
		{"openai-responses", "", `{"type":"response.web_search_call.searching"}`, true},
		{"gemini", "", `{"usageMetadata":{}}`, false},
		{"gemini", "", `{"candidates":[{"content":{"parts":[]}}]}`, true},
		{"ollama", "", `{"model":"m"}`, false},
		{"ollama", "", `{"message":{"content":""}}`, true},
		{"ag-ui", "", `{"type":"CUSTOM","name":"beat"}`, false},
		{"ag-ui", "", `{"type":"STATE_DELTA","delta":[]}`, true},
		{"aisdk", "", `{"type":"message-metadata"}`, false},
		{"aisdk", "", `{"type":"data-progress","transient":true,"data":1}`, true},
		{"a2a", "", `{"jsonrpc":"2.0","result":{}}`, false},
		{"a2a", "", `{"jsonrpc":"2.0","result":{"kind":"status-update","status":{"state":"working"}}}`, true},
		{"a2a", "", `{"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}`, true},
		{"acp", "", `{"method":"session/update","params":{"update":{"sessionUpdate":"available_commands_update"}}}`, false},
		{"acp", "", `{"method":"session/update","params":{"update":{"sessionUpdate":"usage_update"}}}`, true},
		{"langgraph", "metadata", `{"run_id":"r"}`, false},
		{"langgraph", "heartbeat", `{}`, false},
		{"langgraph", "debug|sub:1", `{}`, true},
		{"agentsdk", "", `{"type":"ping"}`, false},
		{"agentsdk", "", `{"type":"iteration_stop"}`, true},
		{"eliza-chat", "", `{"type":"token","text":""}`, false},
		{"eliza-chat", "", `{"type":"status","kind":"thinking"}`, true},
		{"eliza-actions", "", `{"type":"chunk","text":""}`, false},
		{"eliza-actions", "", `{"type":"callback","text":"Reading"}`, true},
		{"leat", "", `{"type":"x.beat"}`, false},
	} {
		d, err := all.Registry().Lookup(tt.dialect)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Advances(dialect.Frame{Event: tt.event, Data: []byte(tt.data)}, nil); got != tt.want {
			t.Errorf("%s: %s %s: progress is %v, want %v", tt.dialect, tt.event, tt.data, got, tt.want)
		}
	}
}
