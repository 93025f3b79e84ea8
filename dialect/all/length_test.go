package all

import (
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
)

// lengths has, for each dialect, a stream that ends at a limit of length. It is empty for formats that have no such reason, and for formats
// whose frames already have canonical events.
var lengths = map[string]string{
	"a2a":              "",
	"acp":              `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"max_tokens"}}` + "\n",
	"ag-ui":            "",
	"eliza-chat":       "",
	"leat":             "",
	"agentsdk":         "data: {\"type\":\"message_start\",\"message\":{}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}\n\ndata: {\"type\":\"message_stop\"}\n\ndata: {\"type\":\"agent_stop\"}\n\n",
	"aisdk":            "data: {\"type\":\"start\"}\n\ndata: {\"type\":\"finish\",\"finishReason\":\"length\"}\n\ndata: [DONE]\n\n",
	"anthropic":        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
	"eliza-actions":    "",
	"gemini":           "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"A\"}]},\"finishReason\":\"MAX_TOKENS\"}]}\n\n",
	"langgraph":        "event: messages\ndata: [{\"type\":\"AIMessageChunk\",\"id\":\"a\",\"content\":\"A\",\"response_metadata\":{\"finish_reason\":\"length\"}},{}]\n\nevent: end\ndata: null\n\n",
	"letta":            "data: {\"message_type\":\"assistant_message\",\"otid\":\"x\",\"content\":\"A\",\"run_id\":\"r\"}\n\ndata: {\"message_type\":\"stop_reason\",\"stop_reason\":\"max_tokens_exceeded\"}\n\ndata: [DONE]\n\n",
	"letta-code":       `{"type":"stream_delta","delta":{"message_type":"assistant_message","id":"a","content":"A","run_id":"r"}}` + "\n" + `{"type":"turn_finished","run_id":"r","stop_reason":"max_tokens_exceeded","error":"Unexpected stop reason: max_tokens_exceeded"}` + "\n",
	"ollama":           `{"model":"m","message":{"role":"assistant","content":"A"},"done":true,"done_reason":"length"}` + "\n",
	"openai-chat":      "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n",
	"openai-responses": "event: response.incomplete\ndata: {\"type\":\"response.incomplete\",\"response\":{\"id\":\"r\",\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}\n\n",
	"openclaw":         `{"type":"event","event":"chat","payload":{"runId":"r","sessionKey":"s","seq":1,"state":"final","stopReason":"max_tokens","message":{"role":"assistant","content":[{"type":"text","text":"A"}]}}}` + "\n",
}

// An answer that stops at a length limit completes with the reason event.ReasonLength in every format.
func TestLengthLimit(t *testing.T) {
	for _, d := range Registry().List() {
		body, listed := lengths[d.Name]
		if !listed {
			t.Errorf("%s: the table has no stream that ends at a limit of length", d.Name)
		}
		if body == "" {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			st := dialect.NewStream(d)
			ops, err := st.Write([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			last, err := st.Close()
			if err != nil {
				t.Fatal(err)
			}
			turn := dialecttest.Fold(t, append(ops, last...)).Turns[0]
			if turn.Outcome != event.Completed || turn.Reason != event.ReasonLength || turn.Error != nil {
				t.Errorf("the turn is %s (%s, %+v), want %s (%s)", turn.Outcome, turn.Reason, turn.Error, event.Completed, event.ReasonLength)
			}
		})
	}
}
