package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
)

// sink is a run as its emitter sees it.
type sink run

func (s *sink) Emit(ctx context.Context, ops []event.Event, state json.RawMessage) error {
	r := (*run)(s)
	if errors.Is(context.Cause(r.ctx), errDetached) {
		return agent.ErrTurnOver // the next run has it to say
	}
	if r.isOver.Load() {
		s.Late(len(ops))
		return agent.ErrTurnOver
	}
	if len(ops) > 0 { // a state alone is no progress
		r.touch()
	}
	ops, err := storeMedia(ctx, ops, s.files)
	if err != nil {
		return err
	}
	bytes := 64
	for i := range ops {
		bytes += len(ops[i].Text)
	}
	at := now()
	// The slices are the caller's; the job runs later.
	ops = append([]event.Event(nil), ops...)
	if state != nil {
		state = append(json.RawMessage(nil), state...)
	}
	err = r.writer.feedIn(ctx, bytes, func(t *tx) error { return r.emit(t, ops, state, at) })
	if err != nil && r.isOver.Load() {
		return agent.ErrTurnOver
	}
	return err
}

func (r *run) emit(t *tx, ops []event.Event, state json.RawMessage, at int64) error {
	if r.isOver.Load() {
		(*sink)(r).Late(len(ops))
		return agent.ErrTurnOver
	}
	before := r.mapper.Dropped
	events, err := r.mapper.Map(ops, at)
	if n := r.mapper.Dropped - before; n > 0 {
		r.writer.g.cfg.Metrics.dropped.WithLabelValues(r.name).Add(float64(n))
	}
	if err != nil {
		r.writer.log.Warn("operation does not apply", "turn", r.id, "agent", r.name, "error", err)
		// Ends the turn from a job of its own: this one may share its commit with others.
		r.writer.post(func(t *tx) error {
			r.end(t, &event.Body{Outcome: event.Failed, Error: &event.Error{Code: codeStream, Message: err.Error()}})
			return nil
		})
		return err
	}
	r.add(t, events)
	if state != nil && r.isOver.Load() {
		// Where the stream stood at its end: a producer that missed the last acknowledgement may still ask.
		t.set(journalkey.TurnState(r.id), state, now()+r.writer.g.cfg.KeyLife.Milliseconds())
	} else if state != nil {
		t.set(journalkey.TurnState(r.id), state, 0)
		if n := r.mapper.Keys(); n != r.keys {
			r.keys = n
			keys, err := r.mapper.State()
			if err != nil {
				return fmt.Errorf("state of keys: %w", err)
			}
			t.set(journalkey.TurnMapper(r.id), keys, 0)
		}
	}
	return nil
}

func (s *sink) Flush(ctx context.Context) error {
	return (*run)(s).writer.await(ctx, false, func(*tx) error { return nil })
}

// Log is the turn's logger, see [agent.Emitter.Log]. It hides secrets.
func (s *sink) Log() *slog.Logger {
	return slog.New(masking{s.writer.log.Handler(), s.agent.Secrets}).With("turn", s.id, "agent", s.name)
}

// Late implements [agent.LateSink].
func (s *sink) Late(n int) {
	s.lateOps.Add(int64(n))
	s.writer.g.cfg.Metrics.Late.Add(float64(n))
}

// report logs what its agent said that nobody has seen. It runs in the writer, once Run has returned. Agents say a few things more
// after somebody else has ended their turn, so that is no warning.
func (r *run) report(foreign bool) {
	late, dropped := r.lateOps.Load(), r.mapper.Dropped
	if late == 0 && dropped == 0 {
		return
	}
	level := slog.LevelWarn
	if foreign && dropped == 0 {
		level = slog.LevelInfo
	}
	r.writer.log.Log(context.Background(), level, "operations of the turn were dropped", "turn", r.id, "agent", r.name, "after_end", late, "without_effect", dropped)
}

func (s *sink) Alive() { (*run)(s).touch() }

// Trouble implements [agent.TroubleSink].
func (s *sink) Trouble(e *agent.Error) { s.trouble.Store(e) }

// Wait asks a person. A request that is known already, since the agent was resumed, is not asked again.
func (s *sink) Wait(ctx context.Context, req event.Request) (event.Answer, error) {
	r := (*run)(s)
	if req.ID == "" {
		req.ID = newID()
	}
	// A dialect may have opened the request before, so that its answer may come at any time: first the ear, then the look.
	ch := make(chan event.Answer, 1)
	r.mu.Lock()
	r.answers[req.ID] = ch
	r.mu.Unlock()
	if v, err := r.writer.g.journal.Get(ctx, journalkey.Answer(r.id, req.ID)); err == nil {
		var a event.Answer
		if err := json.Unmarshal(v, &a); err != nil {
			return a, fmt.Errorf("stored answer: %w", err)
		}
		return a, nil
	} else if !errors.Is(err, journal.ErrNotFound) {
		return event.Answer{}, fmt.Errorf("look for answer: %w", err)
	}
	err := r.writer.await(ctx, false, func(t *tx) error {
		if r.isOver.Load() {
			return agent.ErrTurnOver
		}
		if r.requests[req.ID] || r.answered[req.ID] {
			return nil
		}
		e := event.Event{Type: event.TurnWait, Turn: r.id, Body: &event.Body{Request: &req}}
		if err := e.Validate(); err != nil {
			return err
		}
		r.add(t, []event.Event{e})
		return nil
	})
	if err != nil {
		return event.Answer{}, err
	}
	select {
	case a := <-ch:
		return a, nil
	case <-ctx.Done():
		return event.Answer{}, context.Cause(ctx)
	case <-r.ctx.Done():
		return event.Answer{}, context.Cause(r.ctx)
	}
}
