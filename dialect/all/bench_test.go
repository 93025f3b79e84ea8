package all

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// deltas has, for each dialect, the frames before the first delta and the form of a delta's frame, as real servers write them. In a delta
// {word} stands for its text, {text} for the whole text so far, and {n} for the number of the frame. {event} is the name of a
// server-sent event; without one the frames have no names.
var deltas = map[string]struct {
	head  []string
	event string
	delta string
}{
	"a2a": {
		head:  []string{`{"jsonrpc":"2.0","id":"1","result":{"task":{"id":"9b1de0a5-7a38-4be6-a7b8-1dcf4a01aa01","status":{"state":"TASK_STATE_WORKING"}}}}`},
		delta: `{"jsonrpc":"2.0","id":"1","result":{"artifactUpdate":{"taskId":"9b1de0a5-7a38-4be6-a7b8-1dcf4a01aa01","contextId":"c-1","artifact":{"artifactId":"a","parts":[{"text":"{word}"}]},"append":true}}}`,
	},
	"acp": {
		delta: `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_789xyz","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"{word}"}}}}`,
	},
	"ag-ui": {
		head: []string{
			`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`,
			`{"type":"TEXT_MESSAGE_START","messageId":"5f0fbd51-88e9-4b2b-8c0a-0e2a2fd7e8c1","role":"assistant"}`,
		},
		delta: `{"type":"TEXT_MESSAGE_CONTENT","messageId":"5f0fbd51-88e9-4b2b-8c0a-0e2a2fd7e8c1","delta":"{word}"}`,
	},
	"agentsdk": {
		head: []string{
			`{"type":"message_start","message":{"model":"m"}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text"}}`,
		},
		delta: `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"{word}"}}`,
	},
	"aisdk": {
		head:  []string{`{"type":"start"}`, `{"type":"start-step"}`, `{"type":"text-start","id":"txt-0"}`},
		delta: `{"type":"text-delta","id":"txt-0","delta":"{word}"}`,
	},
	"anthropic": {
		head: []string{
			`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		},
		event: "content_block_delta",
		delta: `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"{word}"}           }`,
	},
	"eliza-actions": {
		delta: `{"type":"chunk","text":"{word}"}`,
	},
	"eliza-chat": {
		delta: `{"type":"token","text":"{word}"}`,
	},
	"gemini": {
		delta: `{"candidates":[{"content":{"parts":[{"text":"{word}"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":{n},"totalTokenCount":199,"promptTokensDetails":[{"modality":"TEXT","tokenCount":9}],"thoughtsTokenCount":185},"modelVersion":"gemini-3-pro-preview","responseId":"bH6LaZW8Fp_3nsEPqtaSwQ4"}`,
	},
	"langgraph": {
		event: "messages",
		delta: `[{"content":"{word}","additional_kwargs":{},"response_metadata":{"model_provider":"openai"},"type":"AIMessageChunk","name":null,"id":"lc_run--019a5ae1-0f83-7c42-b1de-0a3c5f4f12ab","tool_calls":[],"invalid_tool_calls":[],"usage_metadata":null,"tool_call_chunks":[],"chunk_position":null},{"langgraph_step":1,"langgraph_node":"model","langgraph_triggers":["branch:to:model"],"langgraph_path":["__pregel_pull","model"],"langgraph_checkpoint_ns":"model:0f4c3d1e-7d6e-9c5b-6b64-2f5a3b1d9f57","ls_provider":"openai","ls_model_name":"gpt-4o-mini","ls_model_type":"chat"}]`,
	},
	"leat": {
		head:  []string{`{"type":"message.start","message":"m","role":"assistant"}`, `{"type":"part.start","message":"m","part":"p","kind":"text"}`},
		delta: `{"type":"part.append","message":"m","part":"p","text":"{word}"}`,
	},
	"letta": {
		delta: `{"id":"message-4f426dcb-b394-4b36-bb2d-420f0f88080b","date":"2026-01-01T00:00:00+00:00","name":null,"message_type":"assistant_message","otid":"4f426dcb-b394-4b36-bb2d-420f0f880801","sender_id":null,"step_id":"step-ae658f33-fe3b-490b-93f4-48b3a5aa3c81","is_err":null,"seq_id":{n},"run_id":"run-10a3d6b2-aa05-411a-b271-5945795e8229","content":"{word}"}`,
	},
	"letta-code": {
		delta: `{"type":"stream_delta","delta":{"id":"ui-msg-64","date":"2026-11-20T17:45:25.147Z","agent_id":"agent-local-78d2970c-f5fb-465e-bb65-6e55640692d2","conversation_id":"local-conv-20","message_type":"assistant_message","content":[{"type":"text","text":"{word}"}],"run_id":"local-run-31","seq_id":{n},"type":"message"},"runtime":{"agent_id":"agent-local-78d2970c-f5fb-465e-bb65-6e55640692d2","conversation_id":"local-conv-20"},"event_seq":{n},"emitted_at":"2026-11-20T17:45:25.148Z","idempotency_key":"stream_delta:{n}:b0dfad9f-c9bb-493f-9dda-74ad0a0c06c0"}`,
	},
	"ollama": {
		delta: `{"model":"llama3.2","created_at":"2025-10-26T17:21:21.196249Z","message":{"role":"assistant","content":"{word}"},"done":false}`,
	},
	"openai-chat": {
		delta: `{"id":"chatcmpl-Dx0Xq5Xx9rHB2ehcHZCRDsnuymUXc","object":"chat.completion.chunk","created":1782955818,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_d0469e1700","choices":[{"index":0,"delta":{"content":"{word}"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"oHb"}`,
	},
	"openai-responses": {
		head: []string{
			`{"type":"response.created","response":{"id":"resp_1","model":"m"},"sequence_number":0}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"},"sequence_number":1}`,
		},
		event: "response.output_text.delta",
		delta: `{"type":"response.output_text.delta","content_index":0,"delta":"{word}","item_id":"msg_0a63f40a2632b74300699f881bfbc88196aec38f30c3dd24b0","output_index":0,"sequence_number":{n},"logprobs":[],"obfuscation":"8xQk2"}`,
	},
	"openclaw": {
		head: []string{
			`{"type":"event","event":"agent","payload":{"runId":"f3b6b9cb-de84-408f-ab9e-a029b7a6c11c","stream":"lifecycle","data":{"phase":"start","startedAt":1},"sessionKey":"agent:main:s","agentId":"main","seq":1,"ts":1},"seq":1}`,
		},
		delta: `{"type":"event","event":"agent","payload":{"runId":"f3b6b9cb-de84-408f-ab9e-a029b7a6c11c","stream":"assistant","data":{"text":"{text}","delta":"{word}","itemId":"a4a382eb-1809-4c0c-b4c3-fd3511ad46fb:1"},"sessionKey":"agent:main:plain-56819","agentId":"main","seq":{n},"ts":1795194262675,"isHeartbeat":false},"seq":{n}}`,
	},
}

// round is the number of deltas of a stream. After it another stream begins, because some formats repeat the whole text in each frame.
const round = 200

// deltaStream is a stream as a benchmark writes it: what precedes the deltas, and each delta as the bytes and as the JSON of its frame.
type deltaStream struct {
	head     []byte
	deltas   [][]byte
	payloads [][]byte
}

func newDeltaStream(t testing.TB, d dialect.Dialect) deltaStream {
	t.Helper()
	form, ok := deltas[d.Name]
	if !ok {
		t.Fatalf("%s: the table has no delta", d.Name)
	}
	frame := func(name, data string) []byte {
		switch {
		case d.Framing == dialect.Lines:
			return []byte(data + "\n")
		case name != "":
			data = "event: " + name + "\ndata: " + data
		default:
			data = "data: " + data
		}
		return []byte(data + "\n\n")
	}
	var s deltaStream
	for _, data := range form.head {
		s.head = append(s.head, frame("", data)...)
	}
	text := ""
	for n := range round + 1 {
		word := fmt.Sprintf(" word%03d", n)
		text += word
		data := strings.NewReplacer("{word}", word, "{text}", text, "{n}", fmt.Sprint(n+2)).Replace(form.delta)
		// The first delta starts the message and its part, so it belongs to the head.
		if n == 0 {
			s.head = append(s.head, frame(form.event, data)...)
			continue
		}
		s.deltas = append(s.deltas, frame(form.event, data))
		s.payloads = append(s.payloads, []byte(data))
	}
	return s
}

// begin returns a stream at the first delta.
func (s *deltaStream) begin(t testing.TB, d dialect.Dialect) *dialect.Stream {
	t.Helper()
	st := dialect.NewStream(d)
	if _, err := st.Write(s.head); err != nil {
		t.Fatal(err)
	}
	return st
}

// A benchmark must not measure frames that a decoder ignores: each delta gives one append with its text.
func TestDeltas(t *testing.T) {
	for _, d := range Registry().List() {
		s := newDeltaStream(t, d)
		st := s.begin(t, d)
		for i, delta := range s.deltas {
			ops, err := st.Write(delta)
			if want := fmt.Sprintf(" word%03d", i+1); err != nil || len(ops) != 1 || ops[0].Type != event.PartAppend || ops[0].Text != want {
				t.Fatalf("%s: delta %d gives %+v, %v", d.Name, i, ops, err)
			}
		}
	}
}

// BenchmarkDelta decodes one delta a write, in each format, from the bytes of the stream to the operation. Besides the time and the
// allocations its table has the length of the frame, the goal of 400 ns and 3 ns for each byte, and the time that json.Unmarshal takes for
// the same payloads and one field of them:
//
//	go test -run '^$' -bench Delta ./dialect/all
func BenchmarkDelta(b *testing.B) {
	for _, d := range Registry().List() {
		b.Run(d.Name, func(b *testing.B) {
			s := newDeltaStream(b, d)
			size := len(bytes.Join(s.deltas, nil)) / round
			b.ReportAllocs()
			st := s.begin(b, d)
			b.ResetTimer()
			for i := range b.N {
				if i > 0 && i%round == 0 {
					b.StopTimer()
					st = s.begin(b, d)
					b.StartTimer()
				}
				if _, err := st.Write(s.deltas[i%round]); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			took := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			baseline := s.baseline(b)
			b.ReportMetric(float64(size), "frame-B")
			b.ReportMetric(400+3*float64(size), "goal-ns")
			b.ReportMetric(baseline, "json-ns")
			b.ReportMetric(took/baseline, "of-json")
		})
	}
}

// baseline returns the nanoseconds that json.Unmarshal takes for one field of a payload.
func (s *deltaStream) baseline(b *testing.B) float64 {
	const rounds = 10
	start := time.Now()
	for range rounds {
		for _, p := range s.payloads {
			var object struct {
				Type string `json:"type"`
			}
			var err error
			if p[0] == '[' {
				var list []json.RawMessage
				err = json.Unmarshal(p, &list)
			} else {
				err = json.Unmarshal(p, &object)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	return float64(time.Since(start).Nanoseconds()) / float64(rounds*len(s.payloads))
}

// BenchmarkState encodes the state of a decoder in the middle of a text. It calls the decoder itself, because a stream stores its state.
func BenchmarkState(b *testing.B) {
	for _, d := range Registry().List() {
		b.Run(d.Name, func(b *testing.B) {
			s := newDeltaStream(b, d)
			st := s.begin(b, d)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := st.Decoder().State(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
