package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// replyTo returns what the reply of a kind collects from a body, and the transcript that the decoder makes of it.
func replyTo(t *testing.T, kind string, body []byte) (reply, *transcript.Transcript) {
	t.Helper()
	i := slices.IndexFunc(providers, func(p provider) bool { return p.kind == kind })
	d, r := providers[i].api.dialect(), providers[i].api.reply()
	inner := d.Decoder
	d.Decoder = func() dialect.Decoder { return &recorder{Decoder: inner(), name: d.Name, reply: r} }
	s := dialect.NewStream(d)
	ops, err := s.Write(body)
	if err != nil {
		t.Fatal(err)
	}
	rest, _ := s.Close() // some bodies are cut short
	return r, dialecttest.Fold(t, append(ops, rest...))
}

// compactJSON returns JSON without spaces.
func compactJSON(t *testing.T, text string) string {
	t.Helper()
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A reply has the same calls as the tools that the decoder shows, whatever form the server gives them.
func TestReplyHasTheCallsOfTheDecoder(t *testing.T) {
	for kind, folder := range map[string]string{"anthropic": "anthropic", "openai": "openaichat", "responses": "openairesponses", "gemini": "gemini", "ollama": "ollama"} {
		paths, err := filepath.Glob("../../dialect/" + folder + "/testdata/*.*")
		if err != nil || len(paths) == 0 {
			t.Fatal(paths, err)
		}
		for _, path := range paths {
			t.Run(kind+"/"+filepath.Base(path), func(t *testing.T) { sameCalls(t, kind, path) })
		}
	}
}

// TestReplyOfRecordings is TestReplyHasTheCallsOfTheDecoder for recordings of real servers.
func TestReplyOfRecordings(t *testing.T) {
	for kind, folder := range map[string]string{"anthropic": "anthropic", "openai": "openai-chat", "responses": "openai-responses", "gemini": "gemini", "ollama": "ollama"} {
		for _, path := range dialecttest.Glob(t, folder+"/*") {
			t.Run(kind+"/"+filepath.Base(path), func(t *testing.T) { sameCalls(t, kind, path) })
		}
	}
}

// otherCalls are the names of calls in these bodies that aren't calls of functions: of approvals, of tools of other types, and one in the
// form before tool_calls, which no request asks for.
var otherCalls = []string{"shorten", "erase", "tool_search", "program", "sh", "local_shell", "old"}

func sameCalls(t *testing.T, kind, path string) {
	i := slices.IndexFunc(providers, func(p provider) bool { return p.kind == kind })
	body := dialecttest.Load(t, providers[i].api.dialect(), path, "").Body
	if bytes.Contains(body, []byte("partialArgs")) {
		return // the request does not ask for arguments in pieces
	}
	r, tr := replyTo(t, kind, body)
	var got, want []string
	for _, c := range r.calls() {
		got = append(got, c.Name+" "+compactJSON(t, c.Arguments))
	}
	for _, m := range tr.Messages {
		for _, p := range m.Parts {
			if p.Kind == event.KindTool && p.State == "" && !slices.Contains(otherCalls, p.Name) {
				want = append(want, p.Name+" "+compactJSON(t, p.Text(event.Input)))
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-decoder +reply):\n%s", diff)
	}
}

// Arguments in pieces, which a request must ask for, are an error and not a call with other arguments.
func TestGeminiArgumentsInPieces(t *testing.T) {
	r := &geminiReply{}
	err := r.add(dialect.Frame{Data: []byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"paint","willContinue":true}}]}}]}`)})
	if !errors.Is(err, errPieces) {
		t.Error(err)
	}
}

// What the next request repeats of responses in unusual forms.
func TestRepeatedResponses(t *testing.T) {
	for name, tt := range map[string]struct {
		kind string
		body string
		want string // the new messages, without the result of the call
	}{
		"redacted thinking and an empty text": {"anthropic", events(
			`{"type":"message_start","message":{"id":"m"}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"secret"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"","citations":[]}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"x":1},"caller":{"type":"direct"}}}`,
			`{"type":"message_start","message":{"id":"m"}}`, // repeated
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`,
			`{"type":"message_stop"}`,
		), `{"role":"assistant","content":[{"type":"redacted_thinking","data":"secret"},{"type":"tool_use","id":"a","name":"f","input":{"x":1},"caller":{"type":"direct"}}]}`},
		"a message that replaces another": {"anthropic", events(
			`{"type":"message_start","message":{"id":"m"}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"lost"}}`,
			`{"type":"message_start","message":{"id":"n"}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b\ud83d"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ude00"}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"x":"begun"}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\":2}"}}`,
			`{"type":"message_stop"}`,
		), `{"role":"assistant","content":[{"type":"text","text":"ab😀"},{"type":"tool_use","id":"a","name":"f","input":{"x":2}}]}`},
		"reasoning, signatures and no id": {"openai", events(
			`{"choices":[{"index":0,"delta":{"reasoning":"h","content":[{"type":"thinking","thinking":[]},{"type":"text","text":"t"}]}}]}`,
			`{"choices":[{"index":1,"delta":{"content":"of another choice"}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning":"m","tool_calls":[{"function":{"name":"f","arguments":{"x":1}},"extra_content":{"google":{"thought_signature":"s"}}}]},"finish_reason":"tool_calls"}]}`,
			`{"choices":[{"index":0,"delta":{"content":"after the end"}}]}`,
		), `{"role":"assistant","content":"t","reasoning":"hm","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"},"extra_content":{"google":{"thought_signature":"s"}}}]}`},
		"items in the last event only": {"responses", events(
			`{"type":"response.completed","response":{"id":"r","output":[{"type":"reasoning","id":"rs","summary":[]},
				{"type":"message","content":[{"type":"refusal","refusal":"no"}]},{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"}]}}`,
		), `{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"}`},
		"a function that the server runs": {"responses", events(
			`{"type":"response.output_item.done","sequence_number":1,"item":{"type":"function_call","call_id":"b","name":"g","arguments":"{}"}}`,
			`{"type":"response.output_item.done","sequence_number":2,"item":{"type":"function_call_output","call_id":"b","output":"o"}}`,
			`{"type":"response.output_item.done","sequence_number":3,"item":{"type":"function_call","call_id":"a","name":"f","arguments":{"x":1}}}`,
			`{"type":"response.output_item.done","sequence_number":3,"item":{"type":"function_call","call_id":"a","name":"f","arguments":{"x":1}}}`,
			`{"type":"response.completed","sequence_number":4,"response":{"id":"r","output":[]}}`,
		), `{"type":"function_call","call_id":"b","name":"g","arguments":"{}"},{"type":"function_call_output","call_id":"b","output":"o"},
			{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"}`},
		"signatures and thoughts": {"gemini", events(
			`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"a\ud83d"}]}}]}`,
			`{"candidates":[{"content":{"parts":[{"text":"\ude00"},{"text":"","thoughtSignature":"s"},{"text":"b"}]}}]}`,
			`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"},"thoughtSignature":"t"},{"functionCall":{}}]},"finishReason":"STOP"}]}`,
		), `{"role":"model","parts":[{"text":"a😀"},{"text":"","thoughtSignature":"s"},{"text":"b"},{"functionCall":{"name":"f"},"thoughtSignature":"t"}]}`},
		"no arguments": {
			"ollama", `{"message":{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":null}}]},"done":true}` + "\n",
			`{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := replyTo(t, tt.kind, []byte(tt.body))
			calls := r.calls()
			if len(calls) != 1 || calls[0].Name != "f" {
				t.Fatalf("calls %+v", calls)
			}
			i := slices.IndexFunc(providers, func(p provider) bool { return p.kind == tt.kind })
			a, err := newAgent(*providers[i].api, config{Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(a.Close)
			b, err := json.Marshal(r.next(a.api.body(a, nil, nil), []callResult{{functionCall: calls[0], text: "result"}}))
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			var want list
			if json.Unmarshal(b, &got) != nil || json.Unmarshal([]byte("["+tt.want+"]"), &want) != nil {
				t.Fatalf("%s", b)
			}
			var messages list
			for _, key := range []string{"messages", "input", "contents"} {
				if l, ok := got[key].(list); ok {
					messages = l
				}
			}
			if diff := cmp.Diff(want, messages[:len(messages)-1]); diff != "" {
				t.Errorf("the next request repeats (-want +got):\n%s", diff)
			}
		})
	}
}

// events returns a stream of server-sent events.
func events(frames ...string) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "data: %s\n\n", strings.ReplaceAll(f, "\n", ""))
	}
	return b.String()
}

// Schemas get the keys that providers require of every function, and stay as they are if they have them.
func TestParameters(t *testing.T) {
	for schema, want := range map[string]string{
		"":                                    `{"properties":{},"type":"object"}`,
		"null":                                `{"properties":{},"type":"object"}`,
		`{}`:                                  `{"properties":{},"type":"object"}`,
		`{"type":"object"}`:                   `{"properties":{},"type":"object"}`,
		`{ "type":"object", "properties":{}}`: `{ "type":"object", "properties":{}}`,
		`{"anyOf":[]}`:                        `{"anyOf":[],"properties":{},"type":"object"}`,
	} {
		if got := string(parametersOf(&agent.ClientTool{Parameters: json.RawMessage(schema)})); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
}
