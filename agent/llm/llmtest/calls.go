package llmtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Answer is an answer of the model with calls of functions. Empty fields are left out.
type Answer struct {
	Thought, Text string
	Calls         []Call
}

// Call is a call of a function. Servers of APIs without ids leave out the ID.
type Call struct{ ID, Name, Arguments string }

// Reply appends answers, one for each of the next calls that succeed. Calls after the last one get the pieces of Say.
func (s *Server) Reply(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answers...)
}

// schema is the JSON schema of a function's arguments.
type schema struct {
	Type       string         `json:"type"`
	Properties map[string]any `json:"properties"`
	Required   []string       `json:"required"`
}

// isObject reports whether OpenAI and Anthropic accept the schema.
func (s *schema) isObject() bool { return s.Type == "object" && s.Properties != nil }

// tool is a function as Chat Completions and Ollama get it.
type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Parameters  schema `json:"parameters"`
	} `json:"function"`
}

// checkTools returns a refusal for an invalid tool.
func checkTools(tools []tool) *refusal {
	for i, t := range tools {
		if t.Type != "function" || t.Function.Name == "" || !t.Function.Parameters.isObject() {
			return bad("tools.%d: invalid function %q", i, t.Function.Name)
		}
	}
	return nil
}

// callIDs are the ids of the calls without a result.
type callIDs []string

func (c *callIDs) ask(id string) { *c = append(*c, id) }

// answer removes a call. It returns false if the call is unknown.
func (c *callIDs) answer(id string) bool {
	i := slices.Index(*c, id)
	if i < 0 {
		return false
	}
	*c = slices.Delete(*c, i, i+1)
	return true
}

// merged adds a role unless it is that of the message before: the results of several calls are one turn of the user.
func merged(roles []string, role string) []string {
	if n := len(roles); n > 0 && roles[n-1] == role {
		return roles
	}
	return append(roles, role)
}

// object reports whether a text is a JSON object.
func object(text string) bool {
	var o map[string]any
	return json.Unmarshal([]byte(text), &o) == nil
}

// halves returns a text in two pieces, as a stream has it.
func halves(text string) [2]string { return [2]string{text[:len(text)/2], text[len(text)/2:]} }

// answers returns the frames of an answer with calls, for each API.
var answers = map[string]func(Answer) []string{
	"anthropic": func(a Answer) []string {
		frames := []string{sse("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"usage":{"input_tokens":12,"output_tokens":1}}}`)}
		index := 0
		block := func(start string, deltas ...string) {
			frames = append(frames, sse("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, start)))
			for _, d := range deltas {
				frames = append(frames, sse("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, d)))
			}
			frames = append(frames, sse("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index)))
			index++
		}
		if a.Thought != "" {
			block(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":`+quote(a.Thought)+`}`, `{"type":"signature_delta","signature":"sig"}`)
		}
		if a.Text != "" {
			block(`{"type":"text","text":""}`, `{"type":"text_delta","text":`+quote(a.Text)+`}`)
		}
		for _, c := range a.Calls {
			in := halves(c.Arguments)
			block(`{"type":"tool_use","id":`+quote(c.ID)+`,"name":`+quote(c.Name)+`,"input":{}}`,
				`{"type":"input_json_delta","partial_json":`+quote(in[0])+`}`, `{"type":"input_json_delta","partial_json":`+quote(in[1])+`}`)
		}
		return append(frames,
			sse("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":7}}`),
			sse("message_stop", `{"type":"message_stop"}`))
	},
	"openai": func(a Answer) []string {
		chunk := func(delta, finish string) string {
			return sse("", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":`+delta+`,"finish_reason":`+finish+`}],"usage":null}`)
		}
		frames := []string{chunk(`{"role":"assistant","content":null}`, "null")}
		if a.Thought != "" {
			frames = append(frames, chunk(`{"reasoning_content":`+quote(a.Thought)+`}`, "null"))
		}
		if a.Text != "" {
			frames = append(frames, chunk(`{"content":`+quote(a.Text)+`}`, "null"))
		}
		for i, c := range a.Calls {
			in := halves(c.Arguments)
			frames = append(frames,
				chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`, i, quote(c.ID), quote(c.Name)), "null"),
				chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quote(in[0])), "null"),
				chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quote(in[1])), "null"))
		}
		return append(frames, chunk(`{}`, `"tool_calls"`),
			sse("", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":7,"total_tokens":19}}`),
			sse("", "[DONE]"))
	},
	"responses": func(a Answer) []string {
		var frames, items []string
		event := func(kind, fields string) {
			frames = append(frames, sse("response."+kind, fmt.Sprintf(`{"type":"response.%s","sequence_number":%d,%s}`, kind, len(frames), fields)))
		}
		item := func(initial, final string, deltas func(place string)) {
			event("output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, len(items), initial))
			if deltas != nil {
				deltas(fmt.Sprintf(`"output_index":%d`, len(items)))
			}
			event("output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, len(items), final))
			items = append(items, final)
		}
		event("created", `"response":{"id":"resp_0","status":"in_progress","model":"m-1","output":[]}`)
		if a.Thought != "" {
			item(`{"id":"rs_1","type":"reasoning","summary":[]}`,
				`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":`+quote(a.Thought)+`}],"encrypted_content":"secret"}`, nil)
		}
		if a.Text != "" {
			item(`{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`,
				`{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":`+quote(a.Text)+`,"annotations":[]}]}`,
				func(place string) {
					event("output_text.delta", `"item_id":"msg_1",`+place+`,"content_index":0,"delta":`+quote(a.Text))
				})
		}
		for i, c := range a.Calls {
			call := func(arguments, status string) string {
				return fmt.Sprintf(`{"id":"fc_%d","type":"function_call","status":%q,"call_id":%s,"name":%s,"arguments":%s}`, i, status, quote(c.ID), quote(c.Name), quote(arguments))
			}
			item(call("", "in_progress"), call(c.Arguments, "completed"), func(place string) {
				for _, half := range halves(c.Arguments) {
					event("function_call_arguments.delta", place+`,"delta":`+quote(half))
				}
				event("function_call_arguments.done", place+`,"arguments":`+quote(c.Arguments))
			})
		}
		event("completed", `"response":{"id":"resp_0","status":"completed","model":"m-1","output":[`+strings.Join(items, ",")+`],"usage":{"input_tokens":12,"output_tokens":7,"total_tokens":19}}`)
		return frames
	},
	"gemini": func(a Answer) []string {
		chunk := func(part, finish string) string {
			return sse("", `{"candidates":[{"content":{"parts":[`+part+`],"role":"model"},`+finish+`"index":0}],"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":7,"totalTokenCount":19},"modelVersion":"m-1","responseId":"r"}`)
		}
		var frames []string
		if a.Thought != "" {
			frames = append(frames, chunk(`{"text":`+quote(a.Thought)+`,"thought":true}`, ""))
		}
		if a.Text != "" {
			frames = append(frames, chunk(`{"text":`+quote(a.Text[:1])+`}`, ""), chunk(`{"text":`+quote(a.Text[1:])+`}`, ""))
		}
		for i, c := range a.Calls {
			id, signature := "", ""
			if c.ID != "" {
				id = `,"id":` + quote(c.ID)
			}
			if i == 0 {
				signature = `,"thoughtSignature":"sig"`
			}
			frames = append(frames, chunk(`{"functionCall":{"name":`+quote(c.Name)+`,"args":`+c.Arguments+id+`}`+signature+`}`, ""))
		}
		return append(frames, chunk(`{"text":""}`, `"finishReason":"STOP",`))
	},
	"ollama": func(a Answer) []string {
		line := func(fields string) string {
			return `{"model":"m-1","created_at":"2025-10-26T17:15:24Z","message":{"role":"assistant","content":""` + fields + `},"done":false}` + "\n"
		}
		var frames []string
		if a.Thought != "" {
			frames = append(frames, line(`,"thinking":`+quote(a.Thought)))
		}
		if a.Text != "" {
			frames = append(frames, strings.Replace(line(""), `"content":""`, `"content":`+quote(a.Text), 1))
		}
		for i, c := range a.Calls {
			id := ""
			if c.ID != "" {
				id = `"id":` + quote(c.ID) + `,`
			}
			frames = append(frames, line(fmt.Sprintf(`,"tool_calls":[{%s"function":{"index":%d,"name":%s,"arguments":%s}}]`, id, i, quote(c.Name), c.Arguments)))
		}
		return append(frames, `{"model":"m-1","created_at":"2025-10-26T17:15:24Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":12,"eval_count":7}`+"\n")
	},
}
