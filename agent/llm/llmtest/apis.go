package llmtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// strict decodes a body and refuses unknown fields, so that a misspelled field fails a test instead of being
// ignored. The real APIs differ in this: some refuse unknown fields, and some ignore them.
func strict(raw []byte, v any) *refusal {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return bad("%s", err)
	}
	return nil
}

// bad returns a refusal with status 400, the answer of all APIs to a request that they understand but don't
// accept.
func bad(format string, args ...any) *refusal {
	return &refusal{http.StatusBadRequest, "invalid_request_error", fmt.Sprintf(format, args...)}
}

// turns refuses messages whose roles don't alternate, or that don't start and end with the user. assistant is
// the API's name of the model's role.
func turns(roles []string, assistant string) *refusal {
	if len(roles) == 0 {
		return bad("messages: at least one message is required")
	}
	for i, r := range roles {
		want := "user"
		if i%2 == 1 {
			want = assistant
		}
		if r != want {
			return bad("messages.%d: roles must alternate, found %q", i, r)
		}
	}
	if len(roles)%2 == 0 {
		return bad("the last message is the user's")
	}
	return nil
}

// bearer returns the token of the header Authorization, or the whole header if it has another scheme, which
// then isn't a valid key.
func bearer(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// sse returns a server-sent event with one line of data. name may be empty.
func sse(name, data string) string {
	if name != "" {
		name = "event: " + name + "\n"
	}
	return name + "data: " + data + "\n\n"
}

// dataURL reports whether s is a data URL with content that is valid base64.
func dataURL(s string) bool {
	head, data, ok := strings.Cut(s, ";base64,")
	_, err := base64.StdEncoding.DecodeString(data)
	return ok && strings.HasPrefix(head, "data:") && err == nil && data != ""
}

// apis are the imitated APIs, by the name of the agent kind. The frames have the fields of the real APIs that a
// decoder reads, and some that it must ignore. An answer begins with frames without content if the real API's
// answers do.
//
// The refusals of a missing key differ: Gemini uses the status 400, and Ollama has no key. The beats are all
// forms of keep-alive of an API: comments and blank lines of server-sent events, events without data, and the
// API's own.
var apis = map[string]api{
	"anthropic": {
		base: "",
		key: func(r *http.Request) string {
			if r.Header.Get("Anthropic-Version") != "2023-06-01" {
				return ""
			}
			return r.Header.Get("X-Api-Key")
		},
		missing: refusal{http.StatusUnauthorized, "authentication_error", "invalid x-api-key"},
		route: func(r *http.Request) (string, string) {
			if m, ok := strings.CutPrefix(r.URL.Path, "/v1/models/"); ok && r.Method == http.MethodGet {
				return "model", m
			}
			if r.Method == http.MethodPost && r.URL.Path == "/v1/messages" {
				return "stream", ""
			}
			return "", ""
		},
		check: checkAnthropic,
		frames: func(pieces []string) ([]string, int) {
			frames := []string{
				sse("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"usage":{"input_tokens":12,"output_tokens":1}}}`),
				sse("ping", `{"type":"ping"}`),
				sse("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
			}
			for _, p := range pieces {
				frames = append(frames, sse("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+quote(p)+`}}`))
			}
			return append(frames,
				sse("content_block_stop", `{"type":"content_block_stop","index":0}`),
				sse("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}`),
				sse("message_stop", `{"type":"message_stop"}`),
			), len(frames)
		},
		failure: func(kind, message string) string {
			return sse("error", `{"type":"error","error":{"type":`+quote(kind)+`,"message":`+quote(message)+`}}`)
		},
		fail: func(r refusal) string {
			return `{"type":"error","error":{"type":` + quote(r.kind) + `,"message":` + quote(r.message) + `},"request_id":"req_1"}`
		},
		modelReply: `{"type":"model","id":"m-1"}`,
		media:      "text/event-stream",
		beats:      []string{": beat\n", "\n", "event: x\n\n", "event: ping\ndata: {\"type\":\"ping\"}\n\n"},
	},
	"openai": {
		base: "/v1", key: bearer,
		missing: refusal{http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided."},
		route: func(r *http.Request) (string, string) {
			switch r.Method + " " + r.URL.Path {
			case "GET /v1/models":
				return "model", ""
			case "POST /v1/chat/completions":
				return "stream", ""
			}
			return "", ""
		},
		check: checkChat,
		frames: func(pieces []string) ([]string, int) {
			chunk := func(delta, finish string) string {
				return sse("", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":`+delta+`,"finish_reason":`+finish+`}],"usage":null}`)
			}
			frames := []string{chunk(`{"role":"assistant","content":""}`, "null")}
			for _, p := range pieces {
				frames = append(frames, chunk(`{"content":`+quote(p)+`}`, "null"))
			}
			return append(frames, chunk(`{}`, `"stop"`),
				sse("", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":7,"total_tokens":19}}`),
				sse("", "[DONE]")), len(frames)
		},
		failure: func(kind, message string) string {
			return sse("", openAIError(refusal{kind: kind, message: message}))
		},
		fail:       openAIError,
		modelReply: `{"object":"list","data":[{"id":"other"},{"id":"m-1","object":"model"}]}`,
		media:      "text/event-stream",
		beats:      []string{": beat\n", "\n", "event: x\n\n", "data: {\"choices\":[]}\n\n"},
	},
	"responses": {
		base: "/v1", key: bearer,
		missing: refusal{http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided."},
		route: func(r *http.Request) (string, string) {
			switch id, below := strings.CutPrefix(r.URL.Path, "/v1/responses/"); {
			case r.Method+" "+r.URL.Path == "GET /v1/models":
				return "model", ""
			case r.Method+" "+r.URL.Path == "POST /v1/responses":
				return "stream", ""
			case below && r.Method == http.MethodGet && !strings.Contains(id, "/"):
				return "follow", ""
			case below && r.Method == http.MethodPost && strings.HasSuffix(id, "/cancel"):
				return "cancel", ""
			}
			return "", ""
		},
		check:  checkResponses,
		frames: responsesFrames,
		failure: func(kind, message string) string {
			return sse("response.failed", `{"type":"response.failed","sequence_number":999,"response":{"id":"resp_0","status":"failed","model":"m-1","output":[],"error":{"code":`+quote(kind)+`,"message":`+quote(message)+`}}}`)
		},
		fail:       openAIError,
		modelReply: `{"object":"list","data":[{"id":"m-1","object":"model"}]}`,
		media:      "text/event-stream",
		beats:      []string{": beat\n", "\n", "event: x\n\n", "event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n", "data: {\"type\":\"response.in_progress\",\"response\":{\"id\":\"resp_0\"}}\n\n"},
	},
	"gemini": {
		base:    "",
		key:     func(r *http.Request) string { return r.Header.Get("X-Goog-Api-Key") },
		missing: refusal{http.StatusBadRequest, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."},
		route: func(r *http.Request) (string, string) {
			name, ok := strings.CutPrefix(r.URL.Path, "/v1beta/models/")
			model, verb, _ := strings.Cut(name, ":")
			switch {
			case ok && r.Method == http.MethodGet && verb == "":
				return "model", model
			case ok && r.Method == http.MethodPost && verb == "streamGenerateContent" && r.URL.RawQuery == "alt=sse":
				return "stream", model
			}
			return "", ""
		},
		check: checkGemini,
		frames: func(pieces []string) ([]string, int) {
			var frames []string
			for _, p := range pieces {
				frames = append(frames, sse("", `{"candidates":[{"content":{"parts":[{"text":`+quote(p)+`}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":12},"modelVersion":"m-1","responseId":"r"}`))
			}
			return append(frames, sse("", `{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":7,"totalTokenCount":19},"modelVersion":"m-1","responseId":"r"}`)), len(frames)
		},
		// The real API writes the error into the stream without the framing of an event.
		failure: func(kind, message string) string {
			return "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": " + quote(message) + ",\n    \"status\": " + quote(kind) + "\n  }\n}\n"
		},
		fail: func(r refusal) string {
			return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%s}}`, r.status, quote(r.message), quote(r.kind))
		},
		modelReply: `{"name":"models/m-1"}`,
		media:      "text/event-stream",
		beats:      []string{": beat\n", "\n", "event: x\n\n", "data: {\"x\":1}\n\n"},
	},
	"ollama": {
		base: "",
		route: func(r *http.Request) (string, string) {
			switch r.Method + " " + r.URL.Path {
			case "POST /api/show":
				return "model", ""
			case "POST /api/chat":
				return "stream", ""
			}
			return "", ""
		},
		check: checkOllama,
		frames: func(pieces []string) ([]string, int) {
			var frames []string
			for _, p := range pieces {
				frames = append(frames, `{"model":"m-1","created_at":"2025-10-26T17:15:24Z","message":{"role":"assistant","content":`+quote(p)+`},"done":false}`+"\n")
			}
			return append(frames, `{"model":"m-1","created_at":"2025-10-26T17:15:24Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":12,"eval_count":7}`+"\n"), len(frames)
		},
		failure:    func(_, message string) string { return `{"error":` + quote(message) + "}\n" },
		fail:       func(r refusal) string { return `{"error":` + quote(r.message) + `}` },
		modelReply: `{"details":{}}`,
		media:      "application/x-ndjson",
		beats:      []string{"\n", "{\"type\":\"beat\"}\n"},
	},
}

// openAIError returns an error in OpenAI's format, in which the kind is the code. The type is the same for most
// errors, so a client that only reads the type can't tell them apart.
func openAIError(r refusal) string {
	return `{"error":{"message":` + quote(r.message) + `,"type":"invalid_request_error","param":null,"code":` + quote(r.kind) + `}}`
}

// responsesFrames returns the events of a Responses stream, numbered from 0, for a response with the id resp_0.
// Server.background replaces the id. The numbers matter: a client resumes a stream after the last number that
// it received.
func responsesFrames(pieces []string) ([]string, int) {
	var frames []string
	event := func(kind, fields string) {
		frames = append(frames, sse("response."+kind, fmt.Sprintf(`{"type":"response.%s","sequence_number":%d,%s}`, kind, len(frames), fields)))
	}
	event("created", `"response":{"id":"resp_0","status":"queued","model":"m-1","output":[]}`)
	event("in_progress", `"response":{"id":"resp_0","status":"in_progress","model":"m-1","output":[]}`)
	event("output_item.added", `"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`)
	event("content_part.added", `"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`)
	for _, p := range pieces {
		event("output_text.delta", `"item_id":"msg_1","output_index":0,"content_index":0,"delta":`+quote(p))
	}
	end := len(frames)
	text := quote(strings.Join(pieces, ""))
	event("output_text.done", `"item_id":"msg_1","output_index":0,"content_index":0,"text":`+text)
	event("content_part.done", `"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":`+text+`}`)
	event("output_item.done", `"output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":`+text+`}]}`)
	event("completed", `"response":{"id":"resp_0","status":"completed","model":"m-1","output":[],"usage":{"input_tokens":12,"output_tokens":7,"total_tokens":19}}`)
	return frames, end
}
