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
	"github.com/leat-dev/leat/internal/service/capture"
)

// sink is a run as its emitter uses it. A separate type keeps the methods that agents may call apart from those of
// the runner.
type sink run

var (
	_ agent.Sink          = (*sink)(nil)
	_ agent.LateSink      = (*sink)(nil)
	_ agent.TroubleSink   = (*sink)(nil)
	_ agent.SessionSink   = (*sink)(nil)
	_ agent.FileSink      = (*sink)(nil)
	_ agent.WorkspaceSink = (*sink)(nil)
)

// Emit implements [agent.Sink]. After a detach it returns ErrTurnOver without counting the operations as late,
// because they aren't lost.
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
// next turn continues the session. The session must be JSON of at most [agent.MaxSession] bytes; nil deletes it. It
// is durable when KeepSession returns nil.
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

var (
	_ agent.RawSink  = (*sink)(nil)
	_ agent.BodySink = (*sink)(nil)
)

// Raw implements [agent.RawSink].
func (s *sink) Raw(isSent bool, data []byte) { s.capture.Raw(isSent, data) }

// Body implements [agent.BodySink].
func (s *sink) Body(name string) { s.capture.SetDialect(name, true) }

// Messages implements [agent.BodySink].
func (s *sink) Messages(name string) { s.capture.SetDialect(name, false) }

// forgetRaw deletes the captured bytes of the conversation's turns, because requests to agents contain the removed
// messages. A failure isn't returned, since the command that removed the messages has succeeded.
func (w *writer) forgetRaw(ctx context.Context) {
	captures := w.core.cfg.Raw
	if err := captures.Forget(context.WithoutCancel(ctx), w.id); err != nil {
		w.log.Error("captured bytes of turns not deleted; they are deleted when they expire", "error", err)
	}
}

// masking is a log handler that masks secrets in what an agent logs about a turn, such as the output of programs and
// addresses. Secrets are those of the agent's configuration. A text that contains one in another form, such as
// encoded, isn't recognized.
type masking struct {
	slog.Handler
	secrets []string
}

// Handle implements [slog.Handler].
func (m masking) Handle(ctx context.Context, r slog.Record) error {
	masked := slog.NewRecord(r.Time, r.Level, capture.Mask(m.secrets, r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		masked.AddAttrs(m.attr(a))
		return true
	})
	return m.Handler.Handle(ctx, masked)
}

// WithAttrs implements [slog.Handler].
func (m masking) WithAttrs(attrs []slog.Attr) slog.Handler {
	masked := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		masked[i] = m.attr(a)
	}
	return masking{m.Handler.WithAttrs(masked), m.secrets}
}

// WithGroup implements [slog.Handler].
func (m masking) WithGroup(name string) slog.Handler {
	return masking{m.Handler.WithGroup(name), m.secrets}
}

// attr masks an attribute that is text, or that is logged as text.
func (m masking) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, capture.Mask(m.secrets, v.String()))
	case slog.KindGroup:
		group := make([]any, 0, len(v.Group()))
		for _, member := range v.Group() {
			group = append(group, m.attr(member))
		}
		return slog.Group(a.Key, group...)
	case slog.KindAny:
		return slog.String(a.Key, capture.Mask(m.secrets, fmt.Sprint(v.Any())))
	}
	return a
}
