package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// sink is a run as its emitter uses it.
type sink run

var (
	_ agent.Sink          = (*sink)(nil)
	_ agent.LateSink      = (*sink)(nil)
	_ agent.TroubleSink   = (*sink)(nil)
	_ agent.SessionSink   = (*sink)(nil)
	_ agent.FileSink      = (*sink)(nil)
	_ agent.WorkspaceSink = (*sink)(nil)
)

// Emit implements [agent.Sink].
func (s *sink) Emit(ctx context.Context, ops []event.Event, state json.RawMessage) error {
	r := (*run)(s)
	if errors.Is(context.Cause(r.ctx), errDetached) {
		return agent.ErrTurnOver // the next run emits it again
	}
	if r.isOver() {
		s.CountLate(len(ops))
		return agent.ErrTurnOver
	}
	if len(ops) > 0 { // a state alone is no progress
		r.touch()
	}
	ops, err := storeMedia(ctx, ops, s.TurnFiles)
	if err != nil {
		return err
	}
	e := emission{Turn: s.turn, Ops: slices.Clone(ops), State: slices.Clone(state), At: nowMillis()} // the caller may change its slices
	if err := s.link.Emit(ctx, e); err != nil {
		if r.isOver() || errors.Is(err, ErrTurnOver) {
			return agent.ErrTurnOver
		}
		return err
	}
	return nil
}

// Flush implements [agent.Sink].
func (s *sink) Flush(ctx context.Context) error { return s.link.Flush(ctx, s.turn) }

// ReportProgress implements [agent.Sink].
func (s *sink) ReportProgress() { (*run)(s).touch() }

// Wait implements [agent.Sink]. A request that a resumed agent asks again is not shown a second time.
func (s *sink) Wait(ctx context.Context, req event.Request) (event.Answer, error) {
	if req.ID == "" {
		req.ID = newID()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()
	a, err := s.link.Ask(ctx, s.turn, req)
	switch {
	case err == nil:
		(*run)(s).touch()
		return a, nil
	case ctx.Err() != nil:
		return a, context.Cause(ctx)
	case errors.Is(err, ErrTurnOver):
		return a, agent.ErrTurnOver
	}
	return a, err
}

// KeepSession implements [agent.SessionSink]. It works until the agent has returned, even after the turn was stopped, because the
// next turn continues the session.
func (s *sink) KeepSession(ctx context.Context, session json.RawMessage) error {
	switch {
	case len(session) > agent.MaxSession:
		return fmt.Errorf("gateway: session of %d bytes, at most %d", len(session), agent.MaxSession)
	case session != nil && !json.Valid(session):
		return errors.New("gateway: the session is not JSON")
	}
	session = slices.Clone(session) // the caller may change it
	if err := s.link.SetSession(ctx, s.turn, session); errors.Is(err, ErrTurnOver) {
		return agent.ErrTurnOver
	} else if err != nil {
		return err
	}
	s.mu.Lock()
	s.input.Session = session
	s.mu.Unlock()
	return nil
}

// Log returns the turn's logger, see [agent.Emitter.Log]. It masks secrets.
func (s *sink) Log() *slog.Logger {
	return slog.New(masking{s.log.Handler(), s.agent.Secrets}).With("turn", s.turn, "agent", s.name)
}

// CountLate implements [agent.LateSink].
func (s *sink) CountLate(n int) {
	s.lateOps.Add(int64(n))
	s.metrics.LateOps.Add(float64(n))
}

// Trouble implements [agent.TroubleSink].
func (s *sink) Trouble(e *agent.Error) { s.trouble.Store(e) }

var _ agent.FailureSink = (*sink)(nil)

// Failed implements [agent.FailureSink].
func (s *sink) Failed(e *agent.Error) { (*run)(s).explain(e) }
