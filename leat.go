package leat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/app/outputs"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/inspection"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/server/ui"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

// Options configure a [Gateway].
type Options struct {
	// Agents answer the turns, by name. At least one is needed.
	Agents map[string]agent.Agent
	// DefaultAgent answers messages that name no agent. If it is empty, there must be exactly one agent.
	DefaultAgent string
	// Dir is the folder of the durable log; only one gateway can use it at a time. If Dir is empty, the log is in memory and is lost
	// when the gateway is closed.
	Dir string
	// Token is the access token that clients must send. If it is empty, everyone who can connect may do everything, so listen on
	// loopback only.
	Token string
	// Log receives what happens. If Log is nil, nothing is logged.
	Log *slog.Logger
}

// Gateway is a running gateway. Its methods may be called by several goroutines at once.
type Gateway struct {
	gateway *gateway.Gateway
	server  *server.Server
	journal io.Closer
}

// store is what a gateway needs of its journal.
type store interface {
	gateway.Journal
	inspection.Journal
	io.Closer
}

// Start opens the log and starts a gateway. It resumes or ends the turns that were running when the log was last closed. The context
// limits the start only. Close the gateway when it is no longer needed.
func Start(ctx context.Context, opt Options) (*Gateway, error) {
	if opt.DefaultAgent == "" && len(opt.Agents) == 1 {
		for name := range opt.Agents {
			opt.DefaultAgent = name
		}
	}
	if opt.Agents[opt.DefaultAgent] == nil {
		return nil, fmt.Errorf("leat: the default agent %q is not one of the agents", opt.DefaultAgent)
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	var j store = memory.New()
	if opt.Dir != "" {
		file, err := sqlite.Open(sqlite.Options{Dir: opt.Dir, Logger: opt.Log})
		if err != nil {
			return nil, fmt.Errorf("leat: open %s: %w", opt.Dir, err)
		}
		j = file
	}
	agents := gateway.Agents{}
	for name, a := range opt.Agents {
		agents[name] = gateway.Agent{Agent: a}
	}
	turns := push.NewTurns(push.Config{Journal: j, Log: opt.Log})
	gw, err := gateway.New(gateway.Config{Journal: j, Agents: agents, DefaultAgent: opt.DefaultAgent, Log: opt.Log, Titles: true, Pusher: turns})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("leat: %w", err), j.Close())
	}
	if err := gw.Start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("leat: start: %w", err), gw.Shutdown(ctx), j.Close())
	}
	pushes := push.NewService(turns, gw)
	srv := server.New(server.Options{Token: opt.Token, Producer: pushes.TurnOf, Log: opt.Log})
	native.Register(srv, gw)
	native.RegisterInspection(srv, inspection.New(gw, inspection.Config{Journal: j, Agents: agents, Log: opt.Log}))
	native.RegisterIngest(srv, gw, pushes)
	eliza.Register(srv, gw, eliza.Options{})
	for _, o := range outputs.List(outputs.Options{}) {
		// Options has no setting for how long a client of Durable Streams waits.
		if o.Default && o.Name != outputs.DurableStreams {
			o.Register(srv, gw)
		}
	}
	ui.Register(srv, nil)
	return &Gateway{gw, srv, j}, nil
}

// Handler returns the HTTP handler of the gateway: Leat's protocol, the API of Eliza's clients, the APIs of
// OpenAI (with Responses and conversations) and Anthropic under /v1, that of the AI SDK under /api/chat,
// A2A under /a2a, AG-UI under /agui, LangGraph's under /langgraph, Letta's under /letta, and the page.
func (g *Gateway) Handler() http.Handler { return g.server }

// Serve answers requests on the listener until the context is done, and closes the listener.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	if err := g.server.Serve(ctx, l); err != nil {
		return fmt.Errorf("leat: serve: %w", err)
	}
	return nil
}

// Close waits for running turns until the context is done, interrupts those that are left, disconnects all readers and closes the log.
func (g *Gateway) Close(ctx context.Context) error {
	err := g.gateway.Shutdown(ctx)
	g.server.Close()
	if err := errors.Join(err, g.journal.Close()); err != nil {
		return fmt.Errorf("leat: close: %w", err)
	}
	return nil
}
