package compat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/llm"
	"github.com/leat-dev/leat/agent/llm/llmtest"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/event"
)

// The requests of the agents in package llm have the types of the official clients for Python, also those with tools of a client, calls
// and results.
func TestRequestsPython(t *testing.T) {
	t.Setenv("LEAT_TEST_KEY", llmtest.Key)
	requests := map[string][]map[string]any{}
	for kind, options := range map[string]string{"anthropic": "", "openai": "", "responses": "false", "gemini": "", "ollama": ""} {
		requests[kind] = toolRequests(t, kind, options)
	}
	requests["responses"] = append(requests["responses"], toolRequests(t, "responses", "true")...)
	b, err := json.Marshal(requests)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "requests.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LEAT_REQUESTS", path)
	runPython(t, "model_requests.py")
}

// toolRequests returns the requests of a turn in which the model calls tools of the client twice.
func toolRequests(t *testing.T, kind, background string) []map[string]any {
	t.Helper()
	s := llmtest.New(t, kind)
	thought := "hm"
	if kind == "openai" {
		thought = "" // the API of OpenAI itself has no reasoning in messages
	}
	s.Reply(
		llmtest.Answer{Thought: thought, Text: "Let me see.", Calls: []llmtest.Call{{ID: "call_a", Name: "paint", Arguments: `{"color":"red"}`}, {ID: "call_b", Name: "clear", Arguments: `{}`}}},
		llmtest.Answer{Calls: []llmtest.Call{{ID: "call_c", Name: "clear", Arguments: `{}`}}},
	)
	spec := agent.Spec{Name: kind, Kind: kind, Target: llmtest.Model, Options: map[string]string{"base_url": s.URL, "token_env": "LEAT_TEST_KEY"}}
	if background != "" {
		spec.Options["background"] = background
	}
	a, err := agent.Kinds(llm.Kinds(all.Registry())).Make(spec)
	if err != nil {
		t.Fatal(err)
	}
	stage := agenttest.NewStage(t.Context())
	stage.Answer = func(r event.Request) event.Answer {
		if r.Tool == "clear" {
			return event.Answer{Decision: event.Deny}
		}
		return event.Answer{Text: `{"painted":1}`}
	}
	in := agent.Input{Conversation: "c", Key: "key", Message: agent.Message{ID: "m", Role: event.User, Text: "go"}, Tools: []agent.ClientTool{
		{Name: "paint", Description: "Paints the page.", Parameters: json.RawMessage(`{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`)},
		{Name: "clear"},
	}}
	if err := stage.Run(a, in); err != nil {
		t.Fatal(err)
	}
	var bodies []map[string]any
	for _, c := range s.Calls() {
		bodies = append(bodies, c.Body)
	}
	if len(bodies) != 3 {
		t.Fatalf("%s: %d requests", kind, len(bodies))
	}
	return bodies
}
