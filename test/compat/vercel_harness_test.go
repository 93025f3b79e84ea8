package compat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/app/outputs"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/streams"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// gates let a test decide when an agent continues: an agent waits for a gate, and the test opens it.
type gates struct {
	mu   sync.Mutex
	open map[string]chan struct{}
}

func (g *gates) of(name string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[name] == nil {
		g.open[name] = make(chan struct{})
	}
	return g.open[name]
}

// wait returns when the gate is open.
func (g *gates) wait(ctx context.Context, name string) error {
	select {
	case <-g.of(name):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ServeHTTP opens the gate that the path names.
func (g *gates) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	gate := g.of(strings.TrimPrefix(r.URL.Path, "/"))
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-gate:
	default:
		close(gate)
	}
	w.WriteHeader(http.StatusNoContent)
}

// pieces are what the agent long writes; node/vercel-chat.js has the same text.
func pieces() []string {
	var all []string
	for i := range 200 {
		all = append(all, "word"+strings.Repeat("ö", i%7)+" ", "🌍\n")
	}
	return all
}

// chatAgents are what the clients of the AI SDK speak with.
func chatAgents(g *gates) gateway.Agents {
	agents := map[string]agentFunc{
		"plain": func(_ context.Context, in agent.Input, out *agent.Emitter) error {
			return out.Text("re: " + in.Message.Text)
		},
		"long": func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
			for i, piece := range pieces() {
				if i == 40 {
					if err := g.wait(ctx, in.Message.Text); err != nil {
						return err
					}
				}
				if err := errors.Join(out.Text(piece), out.Flush()); err != nil {
					return err
				}
			}
			return g.wait(ctx, in.Message.Text+"-end")
		},
		"thinker": func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
			return steps(out.Reasoning("hm, "), out.Flush(), out.Reasoning("let me see"), out.Text("It is "), out.Flush(), out.Text("noon."))
		},
		"tools": func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
			clock, err := out.Tool("clock", "c1")
			if err != nil {
				return err
			}
			shell, err := out.Tool("shell", "c2")
			if err != nil {
				return err
			}
			return steps(clock.Input(`{"zone":`), out.Flush(), shell.Input(`{"command":"ls"}`), clock.Input(`"UTC"}`), out.Flush(), shell.Output("a\n"), out.Flush(), clock.Output("noon"),
				clock.Done(), shell.Output("b\n"), shell.Done(), out.Flush(), out.Text("Done."))
		},
		"failing": func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
			if err := steps(out.Text("so far"), out.Flush()); err != nil {
				return err
			}
			return &agent.Error{Code: "overloaded_error", Message: "The model is busy."}
		},
		"status": func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
			return steps(out.Text("On it."), out.Flush(), out.Status("Looking...", dialect.Replace), out.Flush(), out.Status("Now playing", dialect.Replace))
		},
		"approval": func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
			ops := []event.Event{
				{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}},
				{Type: event.PartStart, Message: "m", Part: "t", Body: &event.Body{Kind: event.KindText}},
				{Type: event.PartAppend, Message: "m", Part: "t", Text: "I need to look. "},
				{Type: event.PartStart, Message: "m", Part: "c", Body: &event.Body{Kind: event.KindTool, Name: "shell", Call: "c"}},
				{Type: event.PartAppend, Message: "m", Part: "c", Field: event.Input, Text: `{"command":"ls"}`},
			}
			if err := out.Emit(ops, nil); err != nil {
				return err
			}
			a, err := out.Ask(ctx, event.Request{ID: "ask-1", Kind: event.RequestApproval, Tool: "shell", Part: "p2", Prompt: "Run ls?"})
			if err != nil {
				return err
			}
			state, text := event.PartDone, "There is one file."
			if a.Decision != event.Approve {
				state, text = event.PartDenied, "Then I can't tell."
			}
			return out.Emit([]event.Event{
				{Type: event.PartAppend, Message: "m", Part: "c", Field: event.Output, Text: "file"},
				{Type: event.PartUpdate, Message: "m", Part: "c", Body: &event.Body{State: state}},
				{Type: event.PartEnd, Message: "m", Part: "c"},
				{Type: event.PartAppend, Message: "m", Part: "t", Text: text},
			}, nil)
		},
		"approvals": func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
			if err := out.Text("Two things. "); err != nil {
				return err
			}
			answers, failures := make(chan string, 2), make(chan error, 2)
			for _, id := range []string{"one", "two"} {
				go func() {
					a, err := out.Ask(ctx, event.Request{ID: id, Kind: event.RequestApproval, Tool: "shell", Prompt: id + "?"})
					failures <- err
					answers <- id + " " + string(a.Decision)
				}()
			}
			if err := steps(<-failures, <-failures); err != nil {
				return err
			}
			all := []string{<-answers, <-answers}
			slices.Sort(all)
			return out.Text(strings.Join(all, ", "))
		},
		"files": func(_ context.Context, in agent.Input, out *agent.Emitter) error {
			for _, p := range in.Message.Parts {
				if p.Media == nil {
					continue
				}
				if err := out.Media(*p.Media); err != nil {
					return err
				}
			}
			return out.Data([]byte(`{"chart":[1,2]}`))
		},
		"client-tool": func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
			if err := out.Text("Where are you? "); err != nil {
				return err
			}
			a, err := out.Ask(ctx, event.Request{ID: "where-1", Kind: event.RequestInput, Tool: "getLocation", Data: []byte(`{"precise":true}`)})
			if err != nil {
				return err
			}
			return out.Text("You are at " + a.Text + ".")
		},
		// offered calls the first tool that the client offers.
		"offered": func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
			if len(in.Tools) == 0 {
				return out.Text("There are no tools.")
			}
			tool := in.Tools[0]
			if err := out.Text(fmt.Sprintf("%s, %s, %s: ", tool.Name, tool.Description, tool.Parameters)); err != nil {
				return err
			}
			a, err := out.Ask(ctx, event.Request{ID: "call-1", Kind: event.RequestInput, Tool: tool.Name, Data: []byte(`{"precise":true}`)})
			if err != nil {
				return err
			}
			return out.Text(a.Text + ".")
		},
		"replacing": func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
			op := func(kind event.Type, text string) error {
				return steps(out.Emit([]event.Event{{Type: kind, Message: "m", Part: "t", Text: text}}, nil), out.Flush())
			}
			return steps(out.Emit([]event.Event{
				{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}},
				{Type: event.PartStart, Message: "m", Part: "t", Body: &event.Body{Kind: event.KindText}},
			}, nil), op(event.PartAppend, "It is nine."), op(event.PartReplace, "It is "), op(event.PartReplace, "It is ten."))
		},
	}
	known := gateway.Agents{}
	for name, a := range agents {
		known[name] = gateway.Agent{Agent: a}
	}
	return known
}

// serveChats serves the chats of the AI SDK and AG-UI on a socket. url is that of the gateway, control that of the gates.
func serveChats(t *testing.T) (url, control string) {
	t.Helper()
	h, control := startChats(t)
	return h.url, control
}

// startChats is serveChats with the gateway itself.
func startChats(t *testing.T) (h *harness, control string) {
	t.Helper()
	g := &gates{open: map[string]chan struct{}{}}
	gateServer := httptest.NewServer(g)
	t.Cleanup(gateServer.Close)
	return serveAgents(t, chatAgents(g)), gateServer.URL
}

// serveAgents serves all outputs of a gateway with some agents.
func serveAgents(t *testing.T, agents gateway.Agents) *harness {
	t.Helper()
	j := memory.New()
	gw, err := gateway.New(gateway.Config{Journal: j, Agents: agents, DefaultAgent: "plain", Dialects: all.Registry(), Settings: gateway.Settings{Drain: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Token: secret, Heartbeat: 50 * time.Millisecond, AllowedOrigins: []string{"*"}})
	var opt outputs.Options
	opt.DurableStreams.Wait, opt.DurableStreams.Store = time.Second, streams.New(gw, j, slog.New(slog.DiscardHandler))
	for _, o := range outputs.List(opt) {
		o.Register(srv, gw)
	}
	native.Register(srv, gw)
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

// runClient runs a test of a client, a program in a folder, with a separate gateway.
func runClient(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	url, control := serveChats(t)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "LEAT_URL="+url, "LEAT_TOKEN="+secret, "LEAT_GATES="+control)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// runPython runs a program of the folder python. LEAT_COMPAT_PYTHON is the interpreter of an environment with its requirements.
func runPython(t *testing.T, program string) {
	t.Helper()
	python := os.Getenv("LEAT_COMPAT_PYTHON")
	if python == "" {
		t.Skip("SKIPPED: LEAT_COMPAT_PYTHON is not set; run pip install -r test/compat/python/requirements.txt in a virtual environment, and set it to the environment's python")
	}
	runClient(t, "python", python, program)
}
