package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/llm/llmtest"
	"github.com/leat-dev/leat/event"
)

// pageTools are the tools of the client in tests: one with arguments, one without, and one whose schema lacks the keys that providers require.
var pageTools = []agent.ClientTool{
	{Name: "paint", Description: "Paints the page.", Parameters: json.RawMessage(`{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`)},
	{Name: "clear"},
	{Name: "title", Parameters: json.RawMessage(`{"required":[]}`)},
}

// withTools returns the input of a turn in which the client offers pageTools.
func withTools(text string) agent.Input {
	in := question(text)
	in.Tools = pageTools
	return in
}

// paints is an answer that paints twice, after a thought and a text.
var paints = llmtest.Answer{Thought: "hm", Text: "Let me see.", Calls: []llmtest.Call{
	{ID: "call_a", Name: "paint", Arguments: `{"color":"red"}`},
	{ID: "call_b", Name: "paint", Arguments: `{"color":"blue"}`},
}}

// clears is an answer that only has a call, without arguments and, if the API allows it, without an id.
func clears(kind string) llmtest.Answer {
	c := llmtest.Call{ID: "call_c", Name: "clear", Arguments: `{}`}
	if kind == "gemini" || kind == "ollama" {
		c.ID = ""
	}
	return llmtest.Answer{Calls: []llmtest.Call{c}}
}

// answerPage answers the calls of paints and clears: the second one fails, the third one is refused.
func answerPage(r event.Request) event.Answer {
	switch {
	case r.Tool == "clear":
		return event.Answer{Decision: event.Deny, Text: "not now"}
	case string(r.Data) == `{"color":"blue"}`:
		return event.Answer{Text: "Error: no paint"}
	}
	return event.Answer{Text: `{"painted":1}`}
}

// The model calls tools of the client until it answers without calls. Its calls are open at the same time, viewers don't see them as
// tools of the agent, and each request repeats the responses before it in the form that the API requires.
func TestClientTools(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		s := llmtest.New(t, kind)
		s.Reply(paints, clears(kind))
		stage := agenttest.NewStage(t.Context())
		var open []int
		ids := map[string]bool{}
		stage.Answer = func(r event.Request) event.Answer {
			open = append(open, len(stage.Turn().Requests))
			ids[r.ID] = true
			if r.Kind != event.RequestInput || !json.Valid(r.Data) {
				t.Errorf("request %+v", r)
			}
			return answerPage(r)
		}
		if err := stage.Run(made(t, kind, s.URL, nil), withTools("go")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int{2, 1, 1}, open); diff != "" || len(ids) != 3 {
			t.Errorf("open requests when each was answered: %s; ids %v", diff, ids)
		}
		turn := stage.Turn()
		if got, want := stage.Visible(), "Let me see.\n\n"+s.Text(); got != want || turn.Outcome != event.Completed {
			t.Errorf("viewers see %q, want %q; %+v", got, want, turn)
		}
		if diff := cmp.Diff(&event.Usage{Model: llmtest.Model, Input: 36, Output: 21}, turn.Usage); diff != "" {
			t.Errorf("usage of all requests: %s", diff)
		}
		starts := 0
		for _, e := range stage.Events() {
			if e.Type == event.MessageStart {
				starts++
			}
			if e.Type == event.PartStart && e.Body.Kind == event.KindTool {
				t.Errorf("a call is shown as a tool: %+v", e.Body)
			}
		}
		if starts != 2 {
			t.Errorf("%d messages; a response with calls only needs none", starts)
		}
		calls := s.Calls()
		if len(calls) != 3 {
			t.Fatalf("%d requests", len(calls))
		}
		keys := map[string]bool{}
		for i, c := range calls {
			keys[c.Header.Get("Idempotency-Key")] = true
			if diff := cmp.Diff(toolBodies[kind][i], newMessages(kind, i, c.Body)); diff != "" {
				t.Errorf("request %d (-want +got):\n%s", i+1, diff)
			}
		}
		if len(keys) != 3 {
			t.Errorf("idempotency keys: %v", keys)
		}
	})
}

// newMessages returns what is compared of a request: the tools of the first one, and the new messages of the others.
func newMessages(kind string, i int, body object) any {
	if i == 0 {
		return body["tools"]
	}
	key := map[string]string{"responses": "input", "gemini": "contents"}[kind]
	if key == "" {
		key = "messages"
	}
	messages := body[key].(list)
	if i == 1 {
		return messages[1:]
	}
	return messages[len(messages)-2:]
}

// Schemas of pageTools.
var (
	paintSchema = object{"type": "object", "properties": object{"color": object{"type": "string"}}, "required": list{"color"}}
	emptySchema = object{"type": "object", "properties": object{}}
	titleSchema = object{"type": "object", "properties": object{}, "required": list{}}
)

// functions are pageTools as Chat Completions and Ollama get them.
var functions = list{
	object{"type": "function", "function": object{"name": "paint", "description": "Paints the page.", "parameters": paintSchema}},
	object{"type": "function", "function": object{"name": "clear", "parameters": emptySchema}},
	object{"type": "function", "function": object{"name": "title", "parameters": titleSchema}},
}

// refusal is the result of the call that the client refuses.
const refusal = "Error: the client refused the call: not now"

// toolBodies are the compared parts of the requests of TestClientTools.
var toolBodies = map[string][3]list{
	"anthropic": {
		{
			object{"name": "paint", "description": "Paints the page.", "input_schema": paintSchema},
			object{"name": "clear", "input_schema": emptySchema},
			object{"name": "title", "input_schema": titleSchema},
		},
		{
			object{"role": "assistant", "content": list{
				object{"type": "thinking", "thinking": "hm", "signature": "sig"},
				object{"type": "text", "text": "Let me see."},
				object{"type": "tool_use", "id": "call_a", "name": "paint", "input": object{"color": "red"}},
				object{"type": "tool_use", "id": "call_b", "name": "paint", "input": object{"color": "blue"}},
			}},
			object{"role": "user", "content": list{
				object{"type": "tool_result", "tool_use_id": "call_a", "content": `{"painted":1}`},
				object{"type": "tool_result", "tool_use_id": "call_b", "content": "Error: no paint", "is_error": true},
			}},
		},
		{
			object{"role": "assistant", "content": list{object{"type": "tool_use", "id": "call_c", "name": "clear", "input": object{}}}},
			object{"role": "user", "content": list{object{"type": "tool_result", "tool_use_id": "call_c", "content": refusal, "is_error": true}}},
		},
	},
	"openai": {
		functions,
		{
			object{"role": "assistant", "content": "Let me see.", "reasoning_content": "hm", "tool_calls": list{
				object{"id": "call_a", "type": "function", "function": object{"name": "paint", "arguments": `{"color":"red"}`}},
				object{"id": "call_b", "type": "function", "function": object{"name": "paint", "arguments": `{"color":"blue"}`}},
			}},
			object{"role": "tool", "tool_call_id": "call_a", "content": `{"painted":1}`},
			object{"role": "tool", "tool_call_id": "call_b", "content": "Error: no paint"},
		},
		{
			object{"role": "assistant", "content": nil, "tool_calls": list{
				object{"id": "call_c", "type": "function", "function": object{"name": "clear", "arguments": "{}"}},
			}},
			object{"role": "tool", "tool_call_id": "call_c", "content": refusal},
		},
	},
	"responses": {
		{
			object{"type": "function", "name": "paint", "description": "Paints the page.", "parameters": paintSchema, "strict": false},
			object{"type": "function", "name": "clear", "parameters": emptySchema, "strict": false},
			object{"type": "function", "name": "title", "parameters": titleSchema, "strict": false},
		},
		{
			object{"type": "reasoning", "id": "rs_1", "summary": list{object{"type": "summary_text", "text": "hm"}}, "encrypted_content": "secret"},
			object{"role": "assistant", "phase": "commentary", "content": texts("output_text", "Let me see.")},
			object{"type": "function_call", "call_id": "call_a", "name": "paint", "arguments": `{"color":"red"}`},
			object{"type": "function_call", "call_id": "call_b", "name": "paint", "arguments": `{"color":"blue"}`},
			object{"type": "function_call_output", "call_id": "call_a", "output": `{"painted":1}`},
			object{"type": "function_call_output", "call_id": "call_b", "output": "Error: no paint"},
		},
		{
			object{"type": "function_call", "call_id": "call_c", "name": "clear", "arguments": "{}"},
			object{"type": "function_call_output", "call_id": "call_c", "output": refusal},
		},
	},
	"gemini": {
		{object{"functionDeclarations": list{
			object{"name": "paint", "description": "Paints the page.", "parametersJsonSchema": paintSchema},
			object{"name": "clear"},
			object{"name": "title"},
		}}},
		{
			object{"role": "model", "parts": list{
				object{"text": "Let me see."},
				object{"functionCall": object{"name": "paint", "args": object{"color": "red"}, "id": "call_a"}, "thoughtSignature": "sig"},
				object{"functionCall": object{"name": "paint", "args": object{"color": "blue"}, "id": "call_b"}},
			}},
			object{"role": "user", "parts": list{
				object{"functionResponse": object{"id": "call_a", "name": "paint", "response": object{"output": object{"painted": 1.0}}}},
				object{"functionResponse": object{"id": "call_b", "name": "paint", "response": object{"error": "Error: no paint"}}},
			}},
		},
		{
			object{"role": "model", "parts": list{object{"functionCall": object{"name": "clear", "args": object{}}, "thoughtSignature": "sig"}}},
			object{"role": "user", "parts": list{object{"functionResponse": object{"name": "clear", "response": object{"error": refusal}}}}},
		},
	},
	"ollama": {
		functions,
		{
			object{"role": "assistant", "content": "Let me see.", "thinking": "hm", "tool_calls": list{
				object{"id": "call_a", "function": object{"name": "paint", "arguments": object{"color": "red"}}},
				object{"id": "call_b", "function": object{"name": "paint", "arguments": object{"color": "blue"}}},
			}},
			object{"role": "tool", "tool_name": "paint", "tool_call_id": "call_a", "content": `{"painted":1}`},
			object{"role": "tool", "tool_name": "paint", "tool_call_id": "call_b", "content": "Error: no paint"},
		},
		{
			object{"role": "assistant", "content": "", "tool_calls": list{object{"function": object{"name": "clear", "arguments": object{}}}}},
			object{"role": "tool", "tool_name": "clear", "content": refusal},
		},
	},
}

// A response of the Responses API that isn't stored continues its reasoning only if the request asks for it in encrypted form. Models
// without reasoning refuse that.
func TestEncryptedReasoning(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	for thinking, want := range map[string]any{"high": list{"reasoning.encrypted_content"}, "none": nil, "": nil} {
		s := llmtest.New(t, "responses")
		options := map[string]string{}
		if thinking != "" {
			options["thinking"] = thinking
		}
		if err := agenttest.NewStage(t.Context()).Run(made(t, "responses", s.URL, options), withTools("go")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.Calls()[0].Body["include"]); diff != "" {
			t.Errorf("thinking %q: %s", thinking, diff)
		}
	}
}

// A call of an unknown function, or with arguments that aren't an object, gets an error as its result. The client does not get the call.
func TestInvalidCalls(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		calls := []llmtest.Call{{ID: "call_a", Name: "erase", Arguments: `{"all":true}`}, {ID: "call_b", Name: "clear", Arguments: `{}`}}
		want := []string{`the tool \"erase\" does not exist`}
		if kind != "gemini" && kind != "ollama" { // their arguments are JSON, not a text with JSON
			calls = append(calls, llmtest.Call{ID: "call_c", Name: "paint", Arguments: `{"color":"re`})
			want = append(want, "not a complete JSON object")
		}
		s := llmtest.New(t, kind)
		s.Reply(llmtest.Answer{Calls: calls})
		stage := agenttest.NewStage(t.Context())
		var asked []string
		stage.Answer = func(r event.Request) event.Answer {
			asked = append(asked, r.Tool)
			return event.Answer{Text: "done"}
		}
		if err := stage.Run(made(t, kind, s.URL, nil), withTools("go")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"clear"}, asked); diff != "" || !strings.HasSuffix(stage.Visible(), s.Text()) {
			t.Errorf("asked for: %s; viewers see %q", diff, stage.Visible())
		}
		b, err := json.Marshal(s.Calls()[1].Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(string(b), text) {
				t.Errorf("the request lacks %q:\n%s", text, b)
			}
		}
	})
}

// A turn whose model never stops calling tools fails.
func TestTooManyRounds(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		s := llmtest.New(t, kind)
		s.Reply(slices.Repeat([]llmtest.Answer{clears(kind)}, maxRounds+9)...)
		stage := agenttest.NewStage(t.Context())
		asked := 0
		stage.Answer = func(event.Request) event.Answer {
			asked++
			return event.Answer{Text: "done"}
		}
		if err := stage.Run(made(t, kind, s.URL, nil), withTools("go")); err != nil {
			t.Fatal(err)
		}
		turn := stage.Turn()
		if turn.Outcome != event.Failed || turn.Error == nil || turn.Error.Code != codeRounds || asked != maxRounds || turn.Usage.Input != 12*(maxRounds+1) {
			t.Errorf("%s, %+v, asked %d times, usage %+v", turn.Outcome, turn.Error, asked, turn.Usage)
		}
	})
}

// blockedLog is a log whose requests stay unanswered until their context ends.
type blockedLog struct {
	log
	asked chan event.Request
}

func (w *blockedLog) Wait(ctx context.Context, r event.Request) (event.Answer, error) {
	w.asked <- r
	<-ctx.Done()
	return event.Answer{}, context.Cause(ctx)
}

// A turn that is stopped while the client runs a tool ends at once. The response has ended, so a background response isn't cancelled.
func TestStopWhileClientRunsTool(t *testing.T) {
	run := func(t *testing.T, kind string, options map[string]string) {
		s := llmtest.New(t, kind)
		s.Reply(paints)
		a := made(t, kind, s.URL, options)
		ctx, cancel := context.WithCancelCause(t.Context())
		w := &blockedLog{asked: make(chan event.Request, 1)}
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx, withTools("go"), agent.NewEmitter(ctx, w)) }()
		<-w.asked
		cancel(agent.ErrTurnOver)
		if err := <-done; !errors.Is(err, agent.ErrTurnOver) {
			t.Error(err)
		}
		if stopper, ok := a.(agent.Stopper); ok {
			if err := stopper.Stop(t.Context(), withTools("go")); err != nil {
				t.Error(err)
			}
		}
		if len(s.Calls()) != 1 || len(s.Cancelled()) > 0 {
			t.Errorf("%d requests, cancelled %q", len(s.Calls()), s.Cancelled())
		}
	}
	each(t, func(t *testing.T, kind string) { run(t, kind, nil) })
	t.Run("background", func(t *testing.T) {
		t.Setenv(keyEnv, llmtest.Key)
		run(t, "responses", map[string]string{"background": "true"})
	})
}

// The request with the results is repeated like any other, and its failure after the first content fails the turn.
func TestFaultsAfterCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		fault llmtest.Fault
		code  string
		calls int
	}{
		"at once":       {llmtest.Fault{Kind: llmtest.Close}, "", 3},
		"overloaded":    {llmtest.Fault{Kind: llmtest.Status, Status: 503, Says: "api_error", Message: "busy"}, "", 3},
		"after a piece": {llmtest.Fault{Kind: llmtest.Close, After: 1}, codeCutShort, 2},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, kind string) {
				synctest.Test(t, func(t *testing.T) {
					s, pipe := llmtest.NewPiped(t, kind)
					s.Reply(paints)
					s.Say("one ", "two")
					a := made(t, kind, s.URL, nil)
					calls := timed(a, pipe, time.Now())
					stage := agenttest.NewStage(t.Context())
					asked := 0
					stage.Answer = func(r event.Request) event.Answer {
						if asked++; asked == 1 {
							s.Fail(tt.fault)
						}
						return answerPage(r)
					}
					err := stage.Run(a, withTools("go"))
					code, want := "", "Let me see.\n\none two"
					if shown := (*agent.Error)(nil); errors.As(err, &shown) {
						code, want = shown.Code, "Let me see.\n\none "
					}
					if code != tt.code || stage.Visible() != want || len(*calls) != tt.calls || asked != 2 {
						t.Errorf("%v; viewers see %q; %d requests, asked %d times", err, stage.Visible(), len(*calls), asked)
					}
				})
			})
		})
	}
}

// Without tools of the client, a call of the model is shown as before, and the turn ends.
func TestCallsWithoutTools(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		s := llmtest.New(t, kind)
		s.Reply(paints)
		stage := agenttest.NewStage(t.Context())
		if err := stage.Run(made(t, kind, s.URL, nil), question("go")); err != nil {
			t.Fatal(err)
		}
		tools := 0
		for _, e := range stage.Events() {
			if e.Type == event.PartStart && e.Body.Kind == event.KindTool {
				tools++
			}
		}
		if turn := stage.Turn(); turn.Outcome != event.Completed || tools != 2 || len(s.Calls()) != 1 || s.Calls()[0].Body["tools"] != nil {
			t.Errorf("%s, %d tools, %d requests", turn.Outcome, tools, len(s.Calls()))
		}
	})
}

// A name that the provider refuses is an error that names it. Servers at other addresses have their own rules.
func TestToolNames(t *testing.T) {
	for _, tt := range []struct {
		kind, name string
		isOK       bool
	}{
		{"openai", "a-b_1", true},
		{"openai", "a.b", false},
		{"responses", strings.Repeat("a", 65), false},
		{"anthropic", strings.Repeat("a", 65), true},
		{"anthropic", "größe", false},
		{"gemini", "ns:a.b-c", true},
		{"gemini", "1a", false},
		{"ollama", "größe", true},
	} {
		for _, p := range providers {
			if p.kind != tt.kind {
				continue
			}
			for address, isOK := range map[string]bool{"": tt.isOK, "http://127.0.0.1:1": true} {
				a, err := newAgent(*p.api, config{Model: "m", BaseURL: address})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(a.Close)
				err = a.checkTools([]agent.ClientTool{{Name: "fine"}, {Name: tt.name}})
				if shown := (*agent.Error)(nil); (err == nil) != isOK || err != nil && (!errors.As(err, &shown) || shown.Code != codeRefused || !strings.Contains(shown.Message, fmt.Sprintf("%q", tt.name))) {
					t.Errorf("%s at %q: %q: %v", tt.kind, address, tt.name, err)
				}
			}
		}
	}
}
