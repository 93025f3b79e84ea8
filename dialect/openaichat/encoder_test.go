package openaichat

import (
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
)

func TestEncoder(t *testing.T) {
	e := Encoder{ID: "chatcmpl-1", Model: "a \"b\"", Created: 7}
	got := string(e.End(e.Text(e.Text(e.Start(nil), "x\n<y>"), ""), "max_tokens", nil))
	const head = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"a \"b\"","choices":[{"index":0,"delta":`
	want := head + `{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n" +
		head + `{"content":"x\n<y>"},"finish_reason":null}]}` + "\n\n" +
		head + `{},"finish_reason":"length"}]}` + "\n\ndata: [DONE]\n\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got = string(e.Fail(e.Start(nil), "server_error", "", "boom"))
	if want := `data: {"error":{"message":"boom","type":"server_error","param":null,"code":null}}` + "\n\n"; !strings.HasSuffix(got, want) || strings.Contains(got, "[DONE]") {
		t.Errorf("the end of a failed answer: %s", got)
	}
}

func TestFinishReason(t *testing.T) {
	for reason, want := range map[string]string{"": "stop", "end_turn": "stop", "length": "length", "max_tokens": "length", "tool_use": "stop"} {
		if got := finishReason(reason); got != want {
			t.Errorf("%q: %q, want %q", reason, got, want)
		}
	}
}

func TestUsage(t *testing.T) {
	got := string(appendUsage(nil, &event.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 4, Reasoning: 2}))
	want := `{"prompt_tokens":6,"completion_tokens":4,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":2}}`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
