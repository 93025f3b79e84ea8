package http_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
)

// Check accepts any response, and fails only without one.
func TestCheck(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	a := newAgent(t, s.URL, "").(agent.Checker)
	if err := a.Check(t.Context()); err != nil {
		t.Error(err)
	}
	s.Close()
	if err := a.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "doesn't respond") {
		t.Errorf("no server: %v", err)
	}
}

// The request continues the trace of the turn.
func TestTraceParent(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	got := make(chan string, 2)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Traceparent")
		fmt.Fprintln(w, `{"type":"done"}`)
	})
	for _, want := range []string{parent, ""} {
		ctx := t.Context()
		if want != "" {
			ctx = agent.WithTraceParent(ctx, want)
		}
		if err := agenttest.NewStage(ctx).Run(newAgent(t, url, ""), input); err != nil {
			t.Fatal(err)
		}
		if header := <-got; header != want {
			t.Errorf("the agent got %q, want %q", header, want)
		}
	}
}
