package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// remoteWriter is a turnWriter at the other end of a connection: every argument, result and error crosses it as JSON.
type remoteWriter struct {
	t *testing.T

	mu       sync.Mutex
	calls    []string
	mapped   []event.Event
	session  json.RawMessage
	state    json.RawMessage
	ended    *event.Body
	returned chan runReport
}

// cross returns what arrives at the other end of the connection.
func cross[T any](t *testing.T, v T) (out T) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Errorf("%T has no JSON form: %v", v, err)
		return out
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Errorf("%T: %v", v, err)
	}
	return out
}

// crossError returns an error as it arrives: as one of the sentinels, or as a text.
func crossError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrTurnOver):
		return ErrTurnOver
	}
	return errors.New(err.Error())
}

func (w *remoteWriter) call(ctx context.Context, name, turn string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, name)
	if turn != "turn-1" {
		w.t.Errorf("%s of turn %q", name, turn)
	}
	if w.ended != nil && name != "Returned" {
		return crossError(ErrTurnOver)
	}
	return crossError(ctx.Err())
}

func (w *remoteWriter) Emit(ctx context.Context, e emission) error {
	e = cross(w.t, e)
	if err := w.call(ctx, "Emit", e.Turn); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mapped = append(w.mapped, e.Ops...)
	if e.State != nil {
		w.state = e.State
	}
	return nil
}

func (w *remoteWriter) Flush(ctx context.Context, turn string) error {
	return w.call(ctx, "Flush", cross(w.t, turn))
}

func (w *remoteWriter) Ask(ctx context.Context, turn string, req event.Request) (event.Answer, error) {
	req = cross(w.t, req)
	err := w.call(ctx, "Ask", turn)
	return cross(w.t, event.Answer{ID: req.ID, Decision: event.Approve}), err
}

func (w *remoteWriter) Activity(ctx context.Context, turn string) (activity, error) {
	return cross(w.t, activity{IsWaiting: true, AnsweredAt: 1}), w.call(ctx, "Activity", turn)
}

func (w *remoteWriter) SetSession(ctx context.Context, turn string, session json.RawMessage) error {
	w.mu.Lock()
	w.session = cross(w.t, session)
	w.mu.Unlock()
	return w.call(ctx, "SetSession", turn)
}

func (w *remoteWriter) SetPushed(ctx context.Context, turn string, state json.RawMessage) error {
	cross(w.t, state)
	return w.call(ctx, "SetPushed", turn)
}

func (w *remoteWriter) SetDelivered(ctx context.Context, turn string, a event.Answer) error {
	cross(w.t, a)
	return w.call(ctx, "SetDelivered", turn)
}

func (w *remoteWriter) End(ctx context.Context, turn string, end event.Body) error {
	end = cross(w.t, end)
	err := w.call(ctx, "End", turn)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.ended = &end
	}
	return err
}

func (w *remoteWriter) Returned(ctx context.Context, turn string, report runReport) error {
	w.returned <- cross(w.t, report)
	return w.call(ctx, "Returned", turn)
}

// talkingAgent uses every method that a run offers to an agent.
type talkingAgent struct {
	input  agent.Input
	answer event.Answer
	told   chan event.Answer
}

func (a *talkingAgent) Run(ctx context.Context, in agent.Input, out *agent.Emitter) (err error) {
	a.input = in
	if err := out.Text("Hello"); err != nil {
		return err
	}
	if a.answer, err = out.Ask(ctx, event.Request{ID: "q1", Kind: event.RequestApproval, Prompt: "May I?"}); err != nil {
		return err
	}
	if err := out.KeepSession(ctx, json.RawMessage(`{"id":"s1"}`)); err != nil {
		return err
	}
	<-a.told
	if err := out.Emit(nil, json.RawMessage(`{"at":2}`)); err != nil {
		return err
	}
	return out.Flush()
}

func (a *talkingAgent) Answer(_ context.Context, _ agent.Input, answer event.Answer) error {
	a.told <- answer
	return nil
}

// A run works if everything that it exchanges with its writer crosses a connection.
func TestRunWorksOverAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(Config{Journal: memory.New()})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := &remoteWriter{t: t, returned: make(chan runReport, 1)}
		a := &talkingAgent{told: make(chan event.Answer, 1)}
		r := newRun(t.Context(), g.core, runConfig{link: w, conversation: "c", turn: "turn-1", name: "a", agent: Agent{Agent: a}, TurnFiles: noFiles{}})
		in := agent.Input{Conversation: "c", Turn: "turn-1", Key: "turn-1", Message: agent.Message{ID: "m1", Text: "go"}}
		r.Start(cross(t, runStart{Mode: startRun, Input: in}))
		synctest.Wait()
		r.Answer(cross(t, event.Answer{ID: "q2", Decision: event.Deny}))
		report := <-w.returned
		synctest.Wait()
		if a.input.Message.Text != "go" || a.answer.ID != "q1" || a.answer.Decision != event.Approve {
			t.Errorf("the agent got %+v and %+v", a.input, a.answer)
		}
		if report.LateOps != 0 || report.Foreign {
			t.Errorf("reported %+v", report)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.ended == nil || w.ended.Outcome != event.Completed || string(w.session) != `{"id":"s1"}` || string(w.state) != `{"at":2}` {
			t.Errorf("ended %+v, session %s, state %s", w.ended, w.session, w.state)
		}
		if len(w.mapped) == 0 {
			t.Error("no operation arrived")
		}
		want := map[string]bool{"Emit": true, "Ask": true, "SetSession": true, "SetDelivered": true, "Flush": true, "End": true, "Returned": true}
		for _, call := range w.calls {
			delete(want, call)
		}
		if len(want) > 0 {
			t.Errorf("not called: %v; called: %v", want, w.calls)
		}
		if err := g.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// An agent that emits after its writer has ended the turn is refused, and what it emitted is reported.
func TestRunIsFencedOverAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(Config{Journal: memory.New()})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := &remoteWriter{t: t, returned: make(chan runReport, 1)}
		var late error
		a := runFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
			<-ctx.Done()
			late = out.Text("too late")
			return context.Cause(ctx)
		})
		r := newRun(t.Context(), g.core, runConfig{link: w, conversation: "c", turn: "turn-1", name: "a", agent: Agent{Agent: a}, TurnFiles: noFiles{}})
		r.Start(cross(t, runStart{Mode: startRun, Input: agent.Input{Turn: "turn-1"}}))
		synctest.Wait()
		cross(t, r.Stop())
		report := <-w.returned
		if !errors.Is(late, agent.ErrTurnOver) || report.LateOps == 0 || !report.Foreign {
			t.Errorf("late: %v, reported %+v", late, report)
		}
		if err := g.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

type runFunc func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (f runFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}
