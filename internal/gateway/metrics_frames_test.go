package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	agents "github.com/leat-dev/leat/agent/all"
	dialects "github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// Frames are counted for agents that choose their own dialect too, and unknown frames even if the stream ends correctly.
func TestMetricsOfFrames(t *testing.T) {
	streams := map[string]string{
		"anthropic": `event: message_start
data: {"type":"message_start","message":{"id":"m","role":"assistant","model":"m","usage":{"input_tokens":1,"output_tokens":1}}}

event: mystery
data: {"type":"mystery"}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}

event: message_stop
data: {"type":"message_stop"}

`,
		"ollama": `{"model":"m","message":{"role":"assistant","content":"Hello"},"done":false}
{"type":"mystery"}
{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}
`,
	}
	for kind, body := range streams {
		t.Run(kind, func(t *testing.T) {
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, body)
			}))
			t.Cleanup(upstream.Close)
			m := gateway.NewMetrics()
			kinds := agents.Kinds(m.Dialects(dialects.Registry()))
			a, err := kinds.Make(agent.Spec{Name: kind, Kind: kind, Target: "m", Options: map[string]string{"base_url": upstream.URL}})
			if err != nil {
				t.Fatal(err)
			}
			stage := agenttest.NewStage(t.Context())
			if err := stage.Run(a, agent.Input{Conversation: "c", Turn: "t", Key: "k", Message: agent.Message{ID: "m", Role: event.User, Text: "Hi"}}); err != nil {
				t.Fatal(err)
			}
			if turn := stage.Turn(); turn.Outcome != event.Completed || stage.Visible() != "Hello" {
				t.Fatalf("%s, %q", turn.Outcome, stage.Visible())
			}
			registry := prometheus.NewPedanticRegistry()
			registry.MustRegister(m)
			w := httptest.NewRecorder()
			promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			if series := `leat_decode_unknown_frames_total{dialect="` + kind + `"} 1` + "\n"; !strings.Contains(w.Body.String(), series) {
				t.Errorf("no %s in:\n%s", series, w.Body)
			}
			if series := `leat_decode_frames_total{dialect="` + kind + `"} 0` + "\n"; strings.Contains(w.Body.String(), series) {
				t.Errorf("%s", series)
			}
		})
	}
}
