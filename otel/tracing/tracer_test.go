package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/otel/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type agentFunc func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (f agentFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}

const secret = "what was said"

// traced sends a message with ctx, runs its turn and returns the spans.
func traced(t *testing.T, ctx context.Context, run agentFunc) tracetest.SpanStubs {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	p := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	gw, err := gateway.New(gateway.Config{
		Journal: memory.New(), Agents: gateway.Agents{"a": {Agent: run, Kind: "func"}}, DefaultAgent: "a", Hooks: gateway.Hooks{Tracer: tracing.New(p)}, Settings: gateway.Settings{Drain: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin := gateway.Principal{Admin: true}
	if _, _, err := gw.Create(t.Context(), admin, gateway.CreateOptions{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	ack, err := gw.Do(ctx, admin, "c", gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: secret}})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Shutdown(context.Background()); err != nil { // it waits for the end of the turn
		t.Fatal(err)
	}
	spans := exporter.GetSpans()
	for _, s := range spans {
		if strings.Contains(fmt.Sprint(s.Name, s.Attributes, s.Events, s.Status), secret) {
			t.Errorf("a span holds text: %+v", s)
		}
	}
	if root := find(t, spans, "leat.turn"); value(root, "leat.turn").AsString() != ack.Turn || value(root, "leat.conversation").AsString() != "c" {
		t.Errorf("root %v", root.Attributes)
	}
	return spans
}

func find(t *testing.T, all tracetest.SpanStubs, name string) tracetest.SpanStub {
	t.Helper()
	i := slices.IndexFunc(all, func(s tracetest.SpanStub) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no span %s", name)
	}
	return all[i]
}

func value(s tracetest.SpanStub, key attribute.Key) attribute.Value {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value
		}
	}
	return attribute.Value{}
}

// A turn continues the trace of the client, and requests of the agent continue the trace of the turn.
func TestTurn(t *testing.T) {
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	upstream := ""
	all := traced(t, agent.WithTraceParent(t.Context(), "00-"+trace+"-"+span+"-01"), func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		upstream = agent.TraceParent(ctx)
		for range 100 {
			if err := errors.Join(out.Text(secret), out.Flush()); err != nil {
				return err
			}
		}
		return out.End(event.Completed, "", &event.Usage{Model: "m-1", Input: 7, Output: 9})
	})
	root, up := find(t, all, "leat.turn"), find(t, all, "leat.upstream")
	if root.Parent.SpanID().String() != span || !root.Parent.IsRemote() {
		t.Errorf("the root's parent is %v", root.Parent)
	}
	if want := fmt.Sprintf("00-%s-%s-01", trace, up.SpanContext.SpanID()); upstream != want {
		t.Errorf("the agent sends %q on, want %q", upstream, want)
	}
	commits := 0
	for _, s := range all {
		if s.SpanContext.TraceID().String() != trace {
			t.Errorf("%s is of the trace %v", s.Name, s.SpanContext.TraceID())
		}
		if s.Name != "leat.turn" && s.Parent.SpanID() != root.SpanContext.SpanID() {
			t.Errorf("%s is not below the turn", s.Name)
		}
		if s.EndTime.Before(s.StartTime) || s.StartTime.Before(root.StartTime) && s.Name != "leat.commit" || s.EndTime.After(root.EndTime) {
			t.Errorf("%s: %v to %v, the turn %v to %v", s.Name, s.StartTime, s.EndTime, root.StartTime, root.EndTime)
		}
		if s.Name == "leat.commit" {
			commits++
		}
	}
	find(t, all, "leat.first_text")
	if n := value(root, "leat.commits").AsInt64(); n < 100 || commits < 16 || commits > 32 {
		t.Errorf("%d commits, %d spans of them", n, commits)
	}
	if value(root, "gen_ai.usage.output_tokens").AsInt64() != 9 || value(root, "gen_ai.response.model").AsString() != "m-1" || value(root, "leat.outcome").AsString() != "completed" {
		t.Errorf("root %v", root.Attributes)
	}
	if root.Status.Code != codes.Unset {
		t.Errorf("status %v", root.Status)
	}
}

// The span of a failed turn has the status error and the code of the error.
func TestFailure(t *testing.T) {
	all := traced(t, t.Context(), func(context.Context, agent.Input, *agent.Emitter) error { return errors.New(secret) })
	root := find(t, all, "leat.turn")
	if root.Parent.IsValid() || root.Status.Code != codes.Error || value(root, "error.type").AsString() != "agent_error" {
		t.Errorf("parent %v, status %v, %v", root.Parent, root.Status, root.Attributes)
	}
	if find(t, all, "leat.upstream").EndTime.IsZero() {
		t.Error("the upstream's span does not end")
	}
}

// Without a tracer the agent still gets the trace context of the client.
func TestNoTracer(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	got := make(chan string, 1)
	gw, err := gateway.New(gateway.Config{Journal: memory.New(), DefaultAgent: "a", Agents: gateway.Agents{"a": {Agent: agentFunc(
		func(ctx context.Context, _ agent.Input, _ *agent.Emitter) error {
			got <- agent.TraceParent(ctx)
			return nil
		})}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin := gateway.Principal{Admin: true}
	if _, _, err := gw.Create(t.Context(), admin, gateway.CreateOptions{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	c := gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "x"}}
	if _, err := gw.Do(agent.WithTraceParent(t.Context(), parent), admin, "c", c); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != parent {
		t.Errorf("the agent gets %q", s)
	}
	if err := gw.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}
