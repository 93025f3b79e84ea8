package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

const (
	// sendLimit bounds the time from a turn's start until the gateway has its message.
	sendLimit = 60 * time.Second
	// returnLimit is how long a gateway that has the turn may stay away.
	returnLimit = 5 * time.Minute
	// idleCheck is how long nothing may come for a turn until it is looked up whether its runs still run.
	idleCheck = 30 * time.Second
	// unsureCheck is how often it is looked up what became of a run that the gateway does not know.
	unsureCheck = 2 * time.Second
	// grace is how long a gateway that was started anew may take to go on with what it was doing.
	grace = 30 * time.Second
	// settleLimit bounds what is looked up before a run's end is shown.
	settleLimit = 20 * time.Second
)

// Run implements [agent.Agent].
func (a *Agent) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	t := a.newTurn(in, out)
	t.st.Runs = []*run{{ID: t.firstRun()}}
	return a.drive(ctx, t)
}

// Resume implements [agent.Resumer].
func (a *Agent) Resume(ctx context.Context, in agent.Input, state json.RawMessage, out *agent.Emitter) error {
	t := a.newTurn(in, out)
	if len(state) == 0 {
		t.st.Runs = []*run{{ID: t.firstRun()}} // nothing was sent
		return a.drive(ctx, t)
	}
	if err := t.resume(state); err != nil {
		return err
	}
	return a.drive(ctx, t)
}

// resume restores what was stored with the last commit.
func (t *turn) resume(state json.RawMessage) error {
	if err := json.Unmarshal(state, &t.st); err != nil {
		return fmt.Errorf("openclaw: stored state: %w", err)
	}
	if len(t.st.Decoder) > 0 {
		return t.dec.Restore(t.st.Decoder)
	}
	return nil
}

// drive runs the turn over as many connections as it takes.
func (a *Agent) drive(ctx context.Context, t *turn) error {
	a.begin()
	began := time.Now()
	t.heard = began
	l, err := a.await(ctx, sendLimit, t.waits(ctx, "connecting", shown))
	if err != nil {
		return a.failed(ctx, err)
	}
	if t.session, err = a.session(t.in, l.hello); err != nil {
		return err
	}
	if err := keep(ctx, t.out, t.session); err != nil {
		return err
	}
	if err := a.register(ctx, t, func() { t.phase(ctx, "waiting") }); err != nil {
		return err
	}
	return a.sustain(ctx, t, l, began)
}

// sustain follows a turn that was registered until it ends.
func (a *Agent) sustain(ctx context.Context, t *turn, l *link, began time.Time) (err error) {
	inner, cancel := context.WithCancel(ctx)
	defer func() {
		t.refuse(t.close())
		cancel()
		t.tasks.Wait()
		a.unregister(t, !t.ended && ctx.Err() != nil)
		var e *agent.Error
		if t.lost || errors.As(err, &e) && e.Code == codeRestarted {
			t.unfinished()
		}
	}()
	t.out.OnEnd(t.held)
	for {
		if err := t.follow(inner, l); err != nil || t.ended {
			t.abandon(ctx, l, err)
			return a.failed(ctx, err)
		}
		t.unsure = true
		wait, limit := "reconnecting", returnLimit-time.Since(t.heard)
		if !t.sent() {
			wait, limit = "connecting", sendLimit-time.Since(began)
		}
		if len(t.ends) > 0 {
			limit = grace // only what the history adds is missing
		}
		if limit <= 0 {
			_, why := l.why()
			return &agent.Error{Code: codeRestarted, Message: call.WithCause("OpenClaw does not answer", why), Detail: why.Error(), Retryable: true}
		}
		if l, err = a.await(ctx, limit, t.waits(ctx, wait, t.away)); err != nil {
			if ctx.Err() == nil {
				if ferr := t.showRest(); ferr != nil || t.ended {
					return a.failed(ctx, ferr)
				}
			}
			if ctx.Err() == nil && !errors.Is(err, ErrClosed) {
				err = t.away(err)
			}
			return a.failed(ctx, err)
		}
	}
}

// away is the failure of a turn whose connection was lost and did not come back.
func (t *turn) away(err error) error {
	var no *refusal
	if !t.sent() || errors.As(err, &no) {
		return shown(err)
	}
	return &agent.Error{Code: codeRestarted, Message: call.WithCause("OpenClaw did not come back", err), Detail: err.Error(), Retryable: true}
}

// waits returns what is done while the turn waits for a connection: readers see the phase, and each reason is noted as the trouble that
// a silent turn fails with.
func (t *turn) waits(ctx context.Context, phase string, failure func(error) error) func(error) {
	seen := false
	return func(why error) {
		if !seen {
			t.phase(ctx, phase)
			seen = true
		}
		var e *agent.Error
		if why != nil && errors.As(failure(why), &e) {
			t.out.Trouble(e) // after the phase, which is progress
		}
	}
}

// abandon stops the runs of a turn that said too much: nobody listens any more.
func (t *turn) abandon(ctx context.Context, l *link, err error) {
	var a *agent.Error
	if !errors.As(err, &a) || a.Code != codeFlood {
		return
	}
	for _, r := range t.open() {
		if err := l.call(ctx, "chat.abort", map[string]string{"sessionKey": t.session, "runId": r.ID}, nil); err != nil {
			t.out.Log().Warn("a run that said too much could not be stopped", "run", r.ID, "error", err)
		}
	}
}

// failed is what Run returns.
func (a *Agent) failed(ctx context.Context, err error) error {
	var bad *dialect.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &bad), errors.Is(err, agent.ErrTurnOver), errors.Is(err, event.ErrInvalid):
		return err
	}
	return shown(err)
}

// sent reports whether the gateway may have any of the turn's messages.
func (t *turn) sent() bool {
	for _, r := range t.st.Runs {
		if r.Sent {
			return true
		}
	}
	return false
}

// follow runs the turn over one connection. It returns nil where the turn has ended, or the connection.
func (t *turn) follow(ctx context.Context, l *link) error {
	// The protocol is all that the decoder has to know of a handshake, and all of it that may be kept.
	hello := greeting(l.protocol())
	t.out.Received(hello)
	if err := t.decode(hello); err != nil {
		return err
	}
	if t.sent() {
		if err := t.lookUp(ctx, l); err != nil || t.ended {
			return lostIsNone(err)
		}
		for _, r := range t.open() {
			r.blind = r.Sent
		}
		t.approvals(ctx, l)
	}
	check := time.NewTimer(t.patience())
	defer check.Stop()
	for !t.ended {
		for _, r := range t.open() {
			if !r.Sent {
				if err := t.send(ctx, l, r); err != nil {
					return lostIsNone(err)
				}
			}
		}
		select {
		case <-t.wake:
			unsure := t.unsure
			if err := t.work(ctx, l); err != nil {
				return lostIsNone(err)
			}
			if unsure && t.unsure {
				continue // frames don't put off the check
			}
		case <-check.C:
			if err := t.lookUp(ctx, l); err != nil {
				return lostIsNone(err)
			}
		case <-l.done:
			return lostIsNone(t.work(ctx, l)) // it said that before
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		check.Reset(t.patience())
	}
	return nil
}

// greeting is the frame that tells a decoder the protocol.
func greeting(protocol int) []byte {
	return fmt.Appendf(nil, `{"type":"res","id":"connect","ok":true,"payload":{"type":"hello-ok","protocol":%d}}`, protocol)
}

// lostIsNone takes the loss of the connection out of what went wrong.
func lostIsNone(err error) error {
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

// patience is when to look up next what becomes of the runs.
func (t *turn) patience() time.Duration {
	if t.unsure {
		return unsureCheck
	}
	return idleCheck
}

// work takes what waits.
func (t *turn) work(ctx context.Context, l *link) error {
	t.batch = t.take()
	for len(t.batch) > 0 {
		i := t.batch[0]
		t.batch = t.batch[1:]
		err := t.handle(ctx, l, i)
		if errors.Is(err, errLost) && !t.ended {
			t.putBack(t.batch)
			return err
		}
		if err != nil || t.ended {
			t.refuse(t.batch)
			return err
		}
	}
	if t.curious {
		return t.lookUp(ctx, l)
	}
	return nil
}

// handle takes one item.
func (t *turn) handle(ctx context.Context, l *link, i item) error {
	switch i.kind {
	case itemFrame:
		r := t.find(i.run.Run)
		switch {
		case r != nil && !r.Over && i.run.over():
			return t.finish(ctx, l, r, i)
		case r != nil && l.protocol() >= numbered && r.late(&i):
			return nil // the next snapshot has the whole text, which the decoder recognizes
		case r != nil && r.deaf(l) && i.newText():
			// The tools between the texts are in the history only.
			r.Live = true
			if err := t.lookUp(ctx, l); err != nil || t.ended || r.Over {
				return err
			}
			if i.outdated() {
				return nil // the next snapshot repeats it
			}
		case r != nil && r.blind && i.run.startsTool():
			// By now the history has the text before the tool, which has to stand before it.
			err := t.lookUp(ctx, l)
			if errors.Is(err, errLost) {
				t.batch = append([]item{i}, t.batch...)
			}
			if err != nil || t.ended || r.Over {
				return err
			}
			r.blind = false
		}
		if r != nil && (i.run.says() || i.run.State == "delta") {
			if err := t.beforeFirst(ctx, l, r); err != nil {
				t.batch = append([]item{i}, t.batch...)
				return err
			}
		}
		return t.frame(i)
	case itemGap:
		return t.lookUp(ctx, l)
	case itemAsk:
		t.ask(ctx, i.approval)
	case itemResolved:
		return t.resolved(i.approval)
	case itemSteer:
		return t.follows(ctx, l, i.steer)
	}
	return nil
}

// refuse tells those who wait for an answer that there will be none.
func (t *turn) refuse(items []item) {
	for _, i := range items {
		if i.kind == itemSteer {
			i.steer.answer(false)
		}
	}
}
