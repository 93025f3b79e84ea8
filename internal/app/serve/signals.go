package serve

import (
	"context"
	"slices"
	"sync"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/eliza"
	"github.com/leat-dev/leat/internal/server/elizaws"
	"github.com/leat-dev/leat/internal/service/signals"
)

// signalling reports what agents do while they work: to the gateway-wide log of signals, and to the clients that
// follow the default agent's state.
//
// Its tasks run on their own context, which ignores the end of the program's: signals of the last turns are still
// logged during a shutdown. close ends them.
type signalling struct {
	log       *signals.Log
	agent     *status.Agent
	turns     *status.Turns
	updates   eliza.Updates
	proactive *eliza.Proactive
	hub       *hub.Hub

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// newSignalling opens the log of signals and begins to write it. The log runs before the gateway, so that signals of
// agents that start early are not lost.
func (a *App) newSignalling(ctx context.Context) (*signalling, error) {
	log := a.log.With("part", "signals")
	kind := ""
	for _, s := range a.cfg.Agents {
		if s.Name == a.cfg.DefaultAgent {
			kind = s.Kind
		}
	}
	s := &signalling{log: signals.New(a.journal, log), agent: status.NewAgent(a.cfg.DefaultAgent, kind)}
	if err := s.log.Open(ctx); err != nil {
		return nil, err
	}
	s.turns, s.proactive = status.NewTurns(s.log), eliza.NewProactive(log)
	s.agent.Begin()
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.tasks.Go(func() { s.log.Run(s.ctx) })
	return s, nil
}

// watch subscribes to the gateway's events, and restores the last activity and errors of agents in the overview from
// the stored signals. The gateway asks Admit before each turn: while the default agent is paused or stopped, its
// turns are refused.
func (s *signalling) watch(cfg *gateway.Config, o *status.Overview) {
	past, _ := s.log.After(0)
	o.Recall(past)
	cfg.Watchers = append(cfg.Watchers, s.turns, s.agent, &s.updates, s.proactive, o)
	cfg.Admit = s.agent.Admit
}

// register adds the live surface, whose clients get the hub's frames and may request a restart.
func (s *signalling) register(cfg *config.Config, srv *server.Server, gw *gateway.Gateway, h *hub.Hub, restart func() error) {
	s.hub = h
	s.updates.Send = h.Send
	elizaws.Register(srv, gw, elizaws.Options{
		Signals: s.log, Hub: h, Agent: s.agent, QueryToken: cfg.Eliza.QueryToken, Restart: restart,
	})
}

// start begins to watch the agents. register must have been called.
func (s *signalling) start(o *status.Overview, gw *gateway.Gateway) {
	s.tasks.Go(func() { o.Run(s.ctx) })
	s.tasks.Go(func() { s.proactive.Run(s.ctx, gw, s.hub.Send) })
	s.tasks.Go(func() { s.agent.Watch(s.ctx, gw.Healthy) })
}

// pend returns a function that reports why a restart is needed. From then on the status names the reasons; clients get a frame when they
// change. The function must not be called concurrently.
func (s *signalling) pend(h *hub.Hub) func(reasons []string) {
	var reported []string
	return func(reasons []string) {
		if slices.Equal(reported, reasons) {
			return
		}
		reported = slices.Clone(reasons)
		s.agent.Pend(reasons...)
		if len(reasons) > 0 {
			h.Send(elizaws.RestartRequired(reasons))
		}
	}
}

// tell logs a signal that an agent sent outside its turns. Invalid signals are dropped.
func (s *signalling) tell(x agent.Signal) {
	signal := signals.Signal{
		Type: x.Type, Stream: x.Stream, RunID: x.RunID, Seq: x.Seq, SessionKey: x.SessionKey, AgentID: x.AgentID,
		Conversation: x.Conversation, Payload: x.Payload,
	}
	if signal.Check() == nil {
		s.log.Offer(signal)
	}
}

// close stops the tasks and writes the signals that are still buffered.
func (s *signalling) close() {
	s.cancel()
	s.tasks.Wait()
}
