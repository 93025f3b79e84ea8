// One prompt: updates go to the decoder, requests for permission to the person, and a stop to the agent.

package acp

import (
	"cmp"
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

// turn is one prompt and the agent's response to it. run and the methods that it calls use the turn from one goroutine; ask
// starts further ones.
type turn struct {
	peer    *peer
	session string
	emitter *agent.Emitter
	grace   time.Duration
	dialect dialect.Dialect
	dec     dialect.Decoder // guarded by the emitter's lock, because the emitter closes it from other goroutines

	hasEnded  bool           // the agent's output has ended the turn
	request   *event.Request // the question in the current line, if any
	questions sync.WaitGroup // the goroutines of ask
}

// run sends the prompt and handles the session's lines until the agent answers the prompt, the turn is stopped
// or the process ends. It returns after all permission requests of the turn are answered, because they use the
// emitter.
//
// If the process ends, lines that it sent before are handled first: the last of them may be the answer to the
// prompt. Output above [agent.MaxStream] bytes, or that can't be decoded, ends the turn and abandons the
// session.
func (t *turn) run(ctx context.Context, p promptParams) error {
	lines := t.peer.turns.Begin(t.session)
	defer t.peer.turns.End(t.session, lines)
	t.peer.Aside.Refill()
	t.emitter.CloseOnEnd(t.dec)
	if b, err := json.Marshal(p); err == nil {
		t.emitter.CaptureSent(b)
	}
	id, err := t.peer.request(ctx, "session/prompt", p, lines)
	if err != nil {
		return t.peer.requestError("", err)
	}
	defer t.peer.drop(id)
	// Questions end with the turn: cancel makes ask answer them as cancelled, and Wait ensures that these answers are sent.
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
			case l = <-lines.Lines(): // sent before the process ended
			default:
				return t.peer.Cause()
			}
		}
		t.emitter.CaptureReceived(l.raw)
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

// handle decodes a line and emits its events. If the line is a permission request, it starts asking for an answer; open limits
// how long that question stays open.
func (t *turn) handle(open context.Context, l line) error {
	t.request = nil
	f, advances := dialect.Frame{Data: l.raw}, false
	decode := func() ([]event.Event, json.RawMessage, error) {
		ops, err := t.dec.Decode(f)
		advances = err == nil && t.dialect.Advances(f, ops)
		return slices.DeleteFunc(ops, t.intercept), nil, err
	}
	err := t.emitter.WithLargeFrame(len(l.raw), func() error { return t.emitter.Decode(decode) })
	if errors.Is(err, agent.ErrTurnOver) && t.hasEnded {
		return nil
	}
	if advances {
		t.emitter.ReportProgress()
	}
	if err == nil && t.request != nil {
		t.ask(open, l, *t.request)
	}
	return err
}

// intercept is called for each decoded event and reports whether to remove it. Questions are removed because
// [agent.Emitter.Ask] emits them itself, with an id to answer.
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

// ask asks the readers for a permission and sends the answer to the agent, in a goroutine because the agent may continue
// meanwhile. If open is done first, the answer is "cancelled", which the protocol demands for every open request of a cancelled
// turn.
func (t *turn) ask(open context.Context, l line, q event.Request) {
	t.questions.Go(func() {
		choice := outcome{Outcome: "cancelled"}
		if a, err := t.emitter.Ask(open, q); err == nil {
			choice = choose(l.Params, a)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(open), farewell)
		defer cancel()
		if err := t.peer.send(ctx, toAgent{ID: l.ID, Result: permissionResult{choice}}); err != nil {
			t.emitter.Log().Warn("answer not delivered to the agent", "error", err)
		}
	})
}

// choose maps an answer to one of the agent's options: by the name or id that the reader chose, else by the first option whose
// kind approves or denies. An answer that fits no option cancels the request.
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
	// The decision itself comes first: a reader may have chosen an option by its name, such as "Allow for this session", which
	// isn't a decision that Leat knows.
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

// kinds lists for each decision the option kinds that carry it out, the narrowest first: permission for one call is preferred
// to permission forever.
var kinds = map[event.Decision][]string{
	event.Approve: {"allow_once", "allow_always"},
	event.Deny:    {"reject_once", "reject_always"},
}

// sendCancel tells the agent that the turn was stopped. It doesn't wait for the agent's reaction.
func (t *turn) sendCancel() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	err := t.peer.send(ctx, toAgent{Method: "session/cancel", Params: map[string]string{"sessionId": t.session}})
	if errors.Is(err, process.ErrEnded) {
		return nil
	}
	return err
}

// giveUp ends a turn whose output can't be processed. The agent may continue to send such output, so the session is abandoned,
// and cause is returned as the turn's error.
func (t *turn) giveUp(ctx context.Context, cause error) error {
	t.forget(ctx)
	if err := t.sendCancel(); err != nil {
		t.emitter.Log().Warn("session/cancel not delivered to the agent", "error", err)
	}
	return cause
}

// stop cancels a turn that was ended from outside and waits until the agent answers the prompt, at most for the grace period.
// Until then, updates are dropped and permission requests are cancelled. It returns the cause of the end.
func (t *turn) stop(ctx context.Context, lines *process.Listener[line]) error {
	cause := cmp.Or(context.Cause(ctx), agent.ErrTurnOver) // the emitter refused an event because the turn has ended; ctx is about to be cancelled
	if err := t.sendCancel(); err != nil {
		return errors.Join(cause, err)
	}
	timer := time.NewTimer(t.grace)
	defer timer.Stop()
	for {
		select {
		case l := <-lines.Lines():
			switch {
			case l.Method == "":
				return cause // the response to the prompt
			case l.ID != nil:
				t.ask(ctx, l, event.Request{}) // ctx is done, so this answers "cancelled" at once
			}
		case <-t.peer.Done():
			return cause
		case <-timer.C:
			t.forget(ctx)
			return cause
		}
	}
}

// forget abandons the session: the next turn opens a new one, because the agent may still send output of this turn to the old
// one.
func (t *turn) forget(ctx context.Context) {
	t.peer.learn(t.session, false)
	if err := t.emitter.KeepSession(context.WithoutCancel(ctx), nil); err != nil && !errors.Is(err, agent.ErrNoSession) && !errors.Is(err, agent.ErrTurnOver) {
		t.emitter.Log().Warn("abandoned session not removed from the conversation", "error", err)
	}
}
