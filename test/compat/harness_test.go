package compat

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	leat "github.com/leat-dev/leat/internal/server/compat"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

const secret = "a-token"

type agentFunc func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (f agentFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}

func steps(all ...error) error { return errors.Join(all...) }

// The answers of two agents; node/sdk.test.js expects the same texts.
const thought = "hm, let me see"

var said = map[string]string{"thinker": "Hello, wörld 🌍.\n\nIt is noon.", "player": "On it.\n\nNow playing"}

// agents are what the clients speak with. Each step is seen by readers before the next.
var agents = gateway.Agents{
	"thinker": {Agent: agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		seen := func(err error) error { return errors.Join(err, out.Flush()) }
		err := steps(seen(out.Reasoning("hm, ")), seen(out.Reasoning("let me see")), seen(out.Text("Hello, ")), seen(out.Text("wörld 🌍.")))
		if err != nil {
			return err
		}
		tool, err := out.Tool("clock", "call-1")
		if err != nil {
			return err
		}
		if err := steps(tool.Input("{}"), tool.Output("noon"), tool.Done(), seen(out.Text("It is noon."))); err != nil {
			return err
		}
		return out.End(event.Completed, "", &event.Usage{Input: 7, Output: 5})
	})},
	"player": {Agent: agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		seen := func(err error) error { return errors.Join(err, out.Flush()) }
		return steps(seen(out.Text("On it.")), seen(out.Status("Looking...", dialect.Replace)), seen(out.Status("Now playing", dialect.Replace)))
	})},
	"failing": {Agent: agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		if err := steps(out.Text("so far"), out.Flush()); err != nil {
			return err
		}
		return &agent.Error{Code: "overloaded_error", Message: "the model is busy"}
	})},
	"limited": {Agent: agentFunc(func(_ context.Context, _ agent.Input, _ *agent.Emitter) error {
		return &agent.Error{Code: "rate_limit_error", Message: "too many tokens a minute"}
	})},
}

// perMinute is the quota of a user, in messages a minute. Most tests send as the operator, who has no quota.
const perMinute = 1

// harness is a gateway that serves its model APIs on a socket.
type harness struct {
	gw  *gateway.Gateway
	url string
}

func serve(t *testing.T) *harness {
	t.Helper()
	j := memory.New()
	gw, err := gateway.New(gateway.Config{Journal: j, Agents: agents, DefaultAgent: "thinker", Dialects: all.Registry(), Settings: gateway.Settings{Drain: time.Millisecond}, Quotas: gateway.Quotas{User: quota.Limits{Messages: perMinute}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Token: secret})
	leat.Register(srv, gw)
	eliza.Register(srv, gw, eliza.Options{})
	ts := httptest.NewServer(srv)
	t.Cleanup(func() {
		srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		ts.Close()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return &harness{gw, ts.URL}
}

// visible is the text of an answer's turn in the transcript of its conversation.
func (h *harness) visible(t *testing.T, res *http.Response) (text string) {
	t.Helper()
	id, turn := res.Header.Get("Leat-Conversation"), res.Header.Get("Leat-Turn")
	if err := h.gw.ViewTranscript(t.Context(), gateway.Principal{Admin: true}, id, func(tr *transcript.Transcript) bool {
		text = tr.Visible(turn)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return text
}
