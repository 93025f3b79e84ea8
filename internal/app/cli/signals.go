package cli

import (
	"context"
	"log/slog"
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
	"github.com/leat-dev/leat/internal/store/journal"
)

// signalling is what tells of the agents while they work: the log of signals, and the default agent's state.
type signalling struct {
	log   *signals.Log
	agent *status.Agent
	turns *status.Turns
	// updates tells of conversations once register has said where to.
	updates eliza.Updates
	said    *eliza.Proactive
	restart func() error // set before the server serves

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// newSignalling opens the log of signals.
func newSignalling(ctx context.Context, cfg *config.Config, j journal.Journal, log *slog.Logger) (*signalling, error) {
	kind := ""
	for _, s := range cfg.Agents {
		if s.Name == cfg.DefaultAgent {
			kind = s.Kind
		}
	}
	s := &signalling{log: signals.New(j, log), agent: status.NewAgent(cfg.DefaultAgent, kind)}
	if err := s.log.Open(ctx); err != nil {
		return nil, err
	}
	s.turns, s.said = status.NewTurns(s.log), eliza.NewProactive(log)
	s.agent.Begin()
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.tasks.Go(func() { s.log.Run(s.ctx) })
	return s, nil
}

// watch has the gateway tell of its turns, and ask whether the default agent takes any.
func (s *signalling) watch(cfg *gateway.Config, o *status.Overview) {
	before, _ := s.log.After(0)
	o.Recall(before)
	s.tasks.Go(func() { o.Run(s.ctx) })
	cfg.Watchers = append(cfg.Watchers, s.turns, s.agent, &s.updates, s.said, o)
	cfg.Admit = s.agent.Admit
}

// register adds the live surface and returns the hub to which live frames are sent.
func (s *signalling) register(cfg *config.Config, srv *server.Server, gw *gateway.Gateway) *hub.Hub {
	h := hub.New(gw)
	s.updates.Send = h.Send
	s.tasks.Go(func() { s.said.Run(s.ctx, gw, h.Send) })
	s.tasks.Go(func() { s.agent.Watch(s.ctx, gw.Healthy) })
	elizaws.Register(srv, gw, elizaws.Options{
		Signals: s.log, Hub: h, Agent: s.agent, QueryToken: cfg.Eliza.QueryToken, Restart: func() error { return s.restart() },
	})
	return h
}

// pend returns what tells why a restart is needed: the status does from then on, and a frame when there is a new reason.
func (s *signalling) pend(h *hub.Hub) func(reasons []string) {
	var told []string
	return func(reasons []string) {
		if slices.Equal(told, reasons) {
			return
		}
		told = slices.Clone(reasons)
		s.agent.Pend(reasons...)
		if len(reasons) > 0 {
			h.Send(elizaws.RestartRequired(reasons))
		}
	}
}

// tell logs what an agent tells beside its turns.
func (s *signalling) tell(x agent.Signal) {
	signal := signals.Signal{
		Type: x.Type, Stream: x.Stream, RunID: x.RunID, Seq: x.Seq, SessionKey: x.SessionKey, AgentID: x.AgentID,
		Conversation: x.Conversation, Payload: x.Payload,
	}
	if signal.Check() == nil {
		s.log.Offer(signal)
	}
}

// close writes what still waits.
func (s *signalling) close() {
	s.cancel()
	s.tasks.Wait()
}
