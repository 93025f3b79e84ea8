package inprocess_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/cexll/agentsdk-go/pkg/api"
	"github.com/cexll/agentsdk-go/pkg/model"
	"github.com/cexll/agentsdk-go/pkg/tool"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agentsdk/inprocess"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/event"
)

// stub is a model with scripted answers, one for each call. The last one is repeated.
type stub struct {
	mu      sync.Mutex
	answers []func(ctx context.Context, req model.Request) (*model.Response, error)
	calls   []model.Request
}

func (s *stub) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	s.mu.Lock()
	n := min(len(s.calls), len(s.answers)-1)
	s.calls = append(s.calls, req)
	s.mu.Unlock()
	return s.answers[n](ctx, req)
}

func (s *stub) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := s.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: r})
}

func text(words string) func(context.Context, model.Request) (*model.Response, error) {
	return func(context.Context, model.Request) (*model.Response, error) {
		return &model.Response{Message: model.Message{Role: "assistant", Content: words}, StopReason: "end_turn"}, nil
	}
}

func calls(words string, tools ...model.ToolCall) func(context.Context, model.Request) (*model.Response, error) {
	return func(context.Context, model.Request) (*model.Response, error) {
		return &model.Response{Message: model.Message{Role: "assistant", Content: words, ToolCalls: tools}, StopReason: "tool_use"}, nil
	}
}

// search is a tool that finds three, or fails.
type search struct{}

func (search) Name() string             { return "Search" }
func (search) Description() string      { return "finds" }
func (search) Schema() *tool.JSONSchema { return nil }
func (search) Execute(_ context.Context, params map[string]any) (*tool.ToolResult, error) {
	if params["query"] == "boom" {
		return nil, errors.New("disk on fire")
	}
	return &tool.ToolResult{Success: true, Output: "3 hits"}, nil
}

// tail is a tool that prints while it runs.
type tail struct{ search }

func (tail) Name() string { return "Tail" }
func (tail) StreamExecute(_ context.Context, _ map[string]any, emit func(string, bool)) (*tool.ToolResult, error) {
	emit("line 1\n", false)
	emit("warn\n", true)
	return &tool.ToolResult{Success: true, Output: "line 1\nwarn\n"}, nil
}

// runtime is a real one, with a stub for its model.
func runtime(t *testing.T, m *stub, iterations int) *api.Runtime {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	r, err := api.New(t.Context(), api.Options{ProjectRoot: dir, Model: m, Tools: []tool.Tool{search{}, tail{}}, MaxIterations: iterations})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil { // which hangs where events were not drained
			t.Error(err)
		}
	})
	return r
}

func run(t *testing.T, m *stub, iterations int) (*agenttest.Stage, error) {
	t.Helper()
	s := agenttest.NewStage(t.Context())
	return s, s.Run(newAgent(t, m, iterations), input)
}

func newAgent(t *testing.T, m *stub, iterations int) *inprocess.Agent {
	t.Helper()
	a, err := inprocess.New(runtime(t, m, iterations), "")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var input = agent.Input{Conversation: "c", Turn: "turn", Message: agent.Message{ID: "m", Role: event.User, Text: "hello"}}

func TestText(t *testing.T) {
	m := &stub{answers: []func(context.Context, model.Request) (*model.Response, error){text("Hé 👋🏽!"), text("Again.")}}
	a := newAgent(t, m, 0)
	for _, want := range []string{"Hé 👋🏽!", "Again."} {
		s := agenttest.NewStage(t.Context())
		if err := s.Run(a, input); err != nil || s.Turn().Outcome != event.Completed || s.Visible() != want {
			t.Errorf("%v, the turn is %s, readers see %q", err, s.Turn().Outcome, s.Visible())
		}
	}
	// The second turn uses the same session, so the model gets the first turn too.
	last := m.calls[len(m.calls)-1].Messages
	said := ""
	for _, msg := range last {
		said += msg.Role + ":" + msg.TextContent() + "\n"
	}
	if !strings.Contains(said, "assistant:Hé 👋🏽!") {
		t.Errorf("the model got\n%s", said)
	}
}

func TestTools(t *testing.T) {
	m := &stub{answers: []func(context.Context, model.Request) (*model.Response, error){
		calls("Look.",
			model.ToolCall{ID: "t1", Name: "Search", Arguments: map[string]any{"query": "café"}},
			model.ToolCall{ID: "t2", Name: "Search", Arguments: map[string]any{"query": "boom"}},
			model.ToolCall{ID: "t3", Name: "Tail"},
			model.ToolCall{ID: "t4", Name: "Nope"}),
		text("Done."),
	}}
	s, err := run(t, m, 0)
	if err != nil || s.Turn().Outcome != event.Completed || s.Visible() != "Look.\n\nDone." {
		t.Errorf("%v, the turn is %s, readers see %q", err, s.Turn().Outcome, s.Visible())
	}
	type result struct {
		state               event.PartState
		output, stderr, why string
	}
	got := map[string]result{}
	calls := map[string]string{} // by part
	for _, e := range s.Events() {
		b := e.Get()
		if e.Type == event.PartStart && b.Kind == event.KindTool {
			calls[e.Part] = b.Call
		}
		r := got[calls[e.Part]]
		switch {
		case calls[e.Part] == "":
			continue
		case e.Type == event.PartUpdate:
			if b.State != "" {
				r.state = b.State
			}
			if b.Error != nil {
				r.why = b.Error.Message
			}
		case e.Type == event.PartAppend && e.Field == event.Output:
			r.output += e.Text
		case e.Type == event.PartReplace && e.Field == event.Output:
			r.output = e.Text
		case e.Type == event.PartAppend && e.Field == event.Stderr:
			r.stderr += e.Text
		}
		got[calls[e.Part]] = r
	}
	for call, want := range map[string]result{
		"t1": {event.PartDone, "3 hits", "", ""},
		"t2": {event.PartFailed, "Tool execution failed: disk on fire", "", "disk on fire"},
		"t3": {event.PartDone, "line 1\n", "warn\n", ""},
		"t4": {event.PartFailed, "Tool execution failed: tool Nope not found", "", "tool Nope not found"},
	} {
		if got[call] != want {
			t.Errorf("%s came to %+v, want %+v", call, got[call], want)
		}
	}
}

func TestError(t *testing.T) {
	m := &stub{answers: []func(context.Context, model.Request) (*model.Response, error){
		calls("Step", model.ToolCall{ID: "t1", Name: "Search", Arguments: map[string]any{"query": "q"}}),
		func(context.Context, model.Request) (*model.Response, error) {
			return nil, errors.New("529 overloaded")
		},
	}}
	s, err := run(t, m, 0)
	if turn := s.Turn(); err != nil || turn.Outcome != event.Failed || turn.Error.Message != "529 overloaded" || s.Visible() != "Step" {
		t.Errorf("%v, the turn is %s, %v, readers see %q", err, turn.Outcome, turn.Error, s.Visible())
	}
}

func TestLimit(t *testing.T) {
	m := &stub{answers: []func(context.Context, model.Request) (*model.Response, error){
		calls("x", model.ToolCall{ID: "t1", Name: "Search", Arguments: map[string]any{"query": "q"}}),
	}}
	s, err := run(t, m, 2)
	if turn := s.Turn(); err != nil || turn.Outcome != event.Failed || turn.Error.Code != "max_iterations" {
		t.Errorf("%v, the turn is %s, %v", err, turn.Outcome, turn.Error)
	}
}

func TestCancel(t *testing.T) {
	asked := make(chan struct{})
	m := &stub{answers: []func(context.Context, model.Request) (*model.Response, error){
		calls("Before.", model.ToolCall{ID: "t1", Name: "Search", Arguments: map[string]any{"query": "q"}}),
		func(ctx context.Context, _ model.Request) (*model.Response, error) {
			close(asked)
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}}
	a := newAgent(t, m, 0)
	s := agenttest.NewStage(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(a, input) }()
	<-asked
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("Run returned nothing after the stop")
	}
	if o := s.Turn().Outcome; o != event.Cancelled {
		t.Errorf("the turn is %s", o)
	}
}

func TestEmpty(t *testing.T) {
	a := newAgent(t, &stub{answers: []func(context.Context, model.Request) (*model.Response, error){text("")}}, 0)
	in := input
	in.Message.Text = ""
	if err := agenttest.NewStage(t.Context()).Run(a, in); err == nil || !strings.Contains(err.Error(), "prompt is empty") {
		t.Errorf("got %v", err)
	}
}

func TestSession(t *testing.T) {
	if _, err := inprocess.New(nil, "{you}"); err == nil {
		t.Error("a template with an unknown name is taken")
	}
}
