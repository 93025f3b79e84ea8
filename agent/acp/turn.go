package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/process"
)

// turn is one prompt and what the agent says to it.
type turn struct {
	peer    *peer
	session string
	emitter *agent.Emitter
	grace   time.Duration
	dialect dialect.Dialect

	// Guarded by the emitter's lock.
	dec    dialect.Decoder
	closed bool

	hasEnded  bool
	request   *event.Request // by the line at hand
	questions sync.WaitGroup
}

func (t *turn) run(ctx context.Context, p promptParams) error {
	lines := t.peer.turns.Begin(t.session)
	defer t.peer.turns.End(t.session, lines)
	t.peer.Aside.Refill()
	t.emitter.OnEnd(t.flush)
	if b, err := json.Marshal(p); err == nil {
		t.emitter.Sent(b)
	}
	id, err := t.peer.request(ctx, "session/prompt", p, lines)
	if err != nil {
		return t.peer.requestError("", err)
	}
	defer t.peer.drop(id)
	// Questions are open no longer than the turn.
	open, cancel := context.WithCancel(ctx)
	defer t.questions.Wait()
	defer cancel()
	for size := 0; ; {
		var l line
		select {
		case l = <-lines.Lines():
		case <-ctx.Done():
			cancel()
			return t.stop(ctx, lines)
		case <-t.peer.Done():
			select {
			case l = <-lines.Lines(): // it said that before
			default:
				return t.peer.Cause()
			}
		}
		t.emitter.Received(l.raw)
		if size += len(l.raw); size > agent.MaxStream {
			return t.giveUp(ctx, &agent.Error{Code: codeTooLarge, Message: agent.ErrTooLarge.Error()})
		}
		switch err := t.handle(open, l); {
		case err == nil && t.hasEnded:
			return nil
		case errors.Is(err, agent.ErrTurnOver):
			cancel()
			return t.stop(ctx, lines)
		case err != nil:
			return t.giveUp(ctx, err)
		}
	}
}

// hear hands a line to the readers.
func (t *turn) handle(open context.Context, l line) error {
	t.request = nil
	f, advances := dialect.Frame{Data: l.raw}, false
	decode := func() ([]event.Event, json.RawMessage, error) {
		ops, err := t.dec.Decode(f)
		advances = err == nil && t.dialect.Advances(f, ops)
		return slices.DeleteFunc(ops, t.intercept), nil, err
	}
	err := t.emitter.Large(len(l.raw), func() error { return t.emitter.Decode(decode) })
	if errors.Is(err, agent.ErrTurnOver) && t.hasEnded {
		return nil
	}
	if advances {
		t.emitter.Alive()
	}
	if err == nil && t.request != nil {
		t.ask(open, l, *t.request)
	}
	return err
}

// take looks at an operation, and reports whether it is a question.
func (t *turn) intercept(e event.Event) bool {
	switch e.Type {
	case event.TurnWait:
		t.request = e.Get().Request
		return true
	case event.TurnEnd:
		t.hasEnded = true
	}
	return false
}

// held releases what the decoder holds back when the turn ends. The emitter's lock is held.
func (t *turn) flush() []event.Event {
	if t.closed {
		return nil
	}
	t.closed = true
	ops, _ := t.dec.Close() // that the agent was not at its end is no news: the turn has ended before it
	return ops
}

// ask asks for a permission, while the agent may say more.
func (t *turn) ask(open context.Context, l line, q event.Request) {
	t.questions.Go(func() {
		choice := outcome{Outcome: "cancelled"}
		if a, err := t.emitter.Ask(open, q); err == nil {
			choice = choose(l.Params, a)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(open), farewell)
		defer cancel()
		if err := t.peer.send(ctx, toAgent{ID: l.ID, Result: permissionResult{choice}}); err != nil {
			t.emitter.Log().Warn("an answer does not reach the agent", "error", err)
		}
	})
}

// choose finds the option that a person's answer means: by its name, by its id, or by whether it allows.
func choose(params json.RawMessage, a event.Answer) outcome {
	var p struct {
		Options []struct {
			ID   string `json:"optionId"`
			Name string `json:"name"`
			Kind string `json:"kind"`
		} `json:"options"`
	}
	if json.Unmarshal(params, &p) != nil {
		return outcome{Outcome: "cancelled"}
	}
	for _, accepted := range [][]string{{string(a.Decision)}, kinds[a.Decision]} {
		for _, want := range accepted {
			for _, o := range p.Options {
				if want != "" && (o.Name == want || o.ID == want || len(accepted) > 1 && o.Kind == want) {
					return outcome{Outcome: "selected", Option: o.ID}
				}
			}
		}
	}
	return outcome{Outcome: "cancelled"}
}

// kinds are the kinds of options that a decision means, the narrower first.
var kinds = map[event.Decision][]string{
	event.Approve: {"allow_once", "allow_always"},
	event.Deny:    {"reject_once", "reject_always"},
}

// tellStop tells the agent that its turn is over.
func (t *turn) tellStop() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	err := t.peer.send(ctx, toAgent{Method: "session/cancel", Params: map[string]string{"sessionId": t.session}})
	if errors.Is(err, process.ErrEnded) {
		return nil
	}
	return err
}

// giveUp ends a turn whose agent goes on with what can't be taken. Its session is not spoken to again.
func (t *turn) giveUp(ctx context.Context, cause error) error {
	t.forget(ctx)
	if err := t.tellStop(); err != nil {
		t.emitter.Log().Warn("the agent can't be told to stop", "error", err)
	}
	return cause
}

// stop ends a turn that somebody else has ended: the agent is told, and has a moment to answer its prompt.
func (t *turn) stop(ctx context.Context, lines *process.Listener[line]) error {
	cause := context.Cause(ctx)
	if cause == nil {
		cause = agent.ErrTurnOver // its end is about to be told
	}
	if err := t.tellStop(); err != nil {
		return errors.Join(cause, err)
	}
	timer := time.NewTimer(t.grace)
	defer timer.Stop()
	for {
		select {
		case l := <-lines.Lines():
			switch {
			case l.Method == "":
				return cause // the answer to the prompt
			case l.ID != nil:
				t.ask(ctx, l, event.Request{}) // which is answered at once, as cancelled
			}
		case <-t.peer.Done():
			return cause
		case <-timer.C:
			t.forget(ctx)
			return cause
		}
	}
}

// forget has the next turn begin a session of its own: in this one the agent may yet speak of the turn that is over.
func (t *turn) forget(ctx context.Context) {
	t.peer.learn(t.session, false)
	if err := t.emitter.KeepSession(context.WithoutCancel(ctx), nil); err != nil && !errors.Is(err, agent.ErrNoSession) && !errors.Is(err, agent.ErrTurnOver) {
		t.emitter.Log().Warn("the session of an agent that does not stop is not forgotten", "error", err)
	}
}
