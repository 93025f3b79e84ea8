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
	restartGrace = 30 * time.Second
	// settleLimit bounds what is looked up before a run's end is shown.
	completeLimit = 20 * time.Second
)

// Run implements [agent.Agent].
func (a *gatewayAgent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	t := a.newTurn(in, emitter)
	t.st.Runs = []*run{{ID: t.firstRun()}}
	return a.drive(ctx, t)
}

// Resume implements [agent.Resumer].
func (a *gatewayAgent) Resume(ctx context.Context, in agent.Input, state json.RawMessage, emitter *agent.Emitter) error {
	t := a.newTurn(in, emitter)
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
func (a *gatewayAgent) drive(ctx context.Context, t *turn) error {
	a.ensureStarted()
	began := time.Now()
	t.lastHeard = began
	conn, err := a.awaitConnection(ctx, sendLimit, t.onWait(ctx, "connecting", agentError))
	if err != nil {
		return a.runError(ctx, err)
	}
	if t.session, err = a.sessionKey(t.in, conn.hello); err != nil {
		return err
	}
	if err := storeSession(ctx, t.emitter, t.session); err != nil {
		return err
	}
	if err := a.register(ctx, t, func() { t.showPhase(ctx, "waiting") }); err != nil {
		return err
	}
	return a.sustain(ctx, t, conn, began)
}

// sustain follows a turn that was registered until it ends.
func (a *gatewayAgent) sustain(ctx context.Context, t *turn, conn *connection, began time.Time) (err error) {
	inner, cancel := context.WithCancel(ctx)
	defer func() {
		t.refuseSteers(t.close())
		cancel()
		t.tasks.Wait()
		a.unregister(t, !t.isEnded && ctx.Err() != nil)
		var e *agent.Error
		if t.hasLostRun || errors.As(err, &e) && e.Code == codeRestarted {
			t.unfinished()
		}
	}()
	t.emitter.OnEnd(t.flushDecoder)
	for {
		if err := t.follow(inner, conn); err != nil || t.isEnded {
			t.abortRuns(ctx, conn, err)
			return a.runError(ctx, err)
		}
		t.unsure = true
		wait, limit := "reconnecting", returnLimit-time.Since(t.lastHeard)
		if !t.isSent() {
			wait, limit = "connecting", sendLimit-time.Since(began)
		}
		if len(t.lateEnds) > 0 {
			limit = restartGrace // only what the history adds is missing
		}
		if limit <= 0 {
			_, reason := conn.closeReason()
			return &agent.Error{Code: codeRestarted, Message: call.WithCause("OpenClaw does not answer", reason), Detail: reason.Error(), Retryable: true}
		}
		if conn, err = a.awaitConnection(ctx, limit, t.onWait(ctx, wait, t.connectionError)); err != nil {
			if ctx.Err() == nil {
				if ferr := t.showQueued(); ferr != nil || t.isEnded {
					return a.runError(ctx, ferr)
				}
			}
			if ctx.Err() == nil && !errors.Is(err, errClosed) {
				err = t.connectionError(err)
			}
			return a.runError(ctx, err)
		}
	}
}

// away is the failure of a turn whose connection was lost and did not come back.
func (t *turn) connectionError(err error) error {
	var refusalErr *refusal
	if !t.isSent() || errors.As(err, &refusalErr) {
		return agentError(err)
	}
	return &agent.Error{Code: codeRestarted, Message: call.WithCause("OpenClaw did not come back", err), Detail: err.Error(), Retryable: true}
}

// waits returns what is done while the turn waits for a connection: readers see the phase, and each reason is noted as the trouble that
// a silent turn fails with.
func (t *turn) onWait(ctx context.Context, phase string, failure func(error) error) func(error) {
	hasWaited := false
	return func(reason error) {
		if !hasWaited {
			t.showPhase(ctx, phase)
			hasWaited = true
		}
		var e *agent.Error
		if reason != nil && errors.As(failure(reason), &e) {
			t.emitter.Trouble(e) // after the phase, which is progress
		}
	}
}

// abandon stops the runs of a turn that said too much: nobody listens any more.
func (t *turn) abortRuns(ctx context.Context, conn *connection, err error) {
	var a *agent.Error
	if !errors.As(err, &a) || a.Code != codeFlood {
		return
	}
	for _, r := range t.openRuns() {
		if err := conn.call(ctx, "chat.abort", map[string]string{"sessionKey": t.session, "runId": r.ID}, nil); err != nil {
			t.emitter.Log().Warn("a run that said too much could not be stopped", "run", r.ID, "error", err)
		}
	}
}

// failed is what Run returns.
func (a *gatewayAgent) runError(ctx context.Context, err error) error {
	var bad *dialect.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &bad), errors.Is(err, agent.ErrTurnOver), errors.Is(err, event.ErrInvalid):
		return err
	}
	return agentError(err)
}

// sent reports whether the gateway may have any of the turn's messages.
func (t *turn) isSent() bool {
	for _, r := range t.st.Runs {
		if r.IsSent {
			return true
		}
	}
	return false
}

// follow runs the turn over one connection. It returns nil where the turn has ended, or the connection.
func (t *turn) follow(ctx context.Context, conn *connection) error {
	// The protocol is all that the decoder has to know of a handshake, and all of it that may be kept.
	hello := helloFrame(conn.protocol())
	t.emitter.CaptureReceived(hello)
	if err := t.decode(hello); err != nil {
		return err
	}
	if t.isSent() {
		if err := t.lookUp(ctx, conn); err != nil || t.isEnded {
			return ignoreLost(err)
		}
		for _, r := range t.openRuns() {
			r.mayLackText = r.IsSent
		}
		t.askPending(ctx, conn)
	}
	check := time.NewTimer(t.checkInterval())
	defer check.Stop()
	for !t.isEnded {
		for _, r := range t.openRuns() {
			if !r.IsSent {
				if err := t.send(ctx, conn, r); err != nil {
					return ignoreLost(err)
				}
			}
		}
		select {
		case <-t.wake:
			unsure := t.unsure
			if err := t.handleQueued(ctx, conn); err != nil {
				return ignoreLost(err)
			}
			if unsure && t.unsure {
				continue // frames don't put off the check
			}
		case <-check.C:
			if err := t.lookUp(ctx, conn); err != nil {
				return ignoreLost(err)
			}
		case <-conn.closed:
			return ignoreLost(t.handleQueued(ctx, conn)) // it said that before
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		check.Reset(t.checkInterval())
	}
	return nil
}

// greeting is the frame that tells a decoder the protocol.
func helloFrame(protocol int) []byte {
	return fmt.Appendf(nil, `{"type":"res","id":"connect","ok":true,"payload":{"type":"hello-ok","protocol":%d}}`, protocol)
}

// lostIsNone takes the loss of the connection out of what went wrong.
func ignoreLost(err error) error {
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

// patience is when to look up next what becomes of the runs.
func (t *turn) checkInterval() time.Duration {
	if t.unsure {
		return unsureCheck
	}
	return idleCheck
}

// work takes what waits.
func (t *turn) handleQueued(ctx context.Context, conn *connection) error {
	t.batch = t.take()
	for len(t.batch) > 0 {
		i := t.batch[0]
		t.batch = t.batch[1:]
		err := t.handle(ctx, conn, i)
		if errors.Is(err, errLost) && !t.isEnded {
			t.putBack(t.batch)
			return err
		}
		if err != nil || t.isEnded {
			t.refuseSteers(t.batch)
			return err
		}
	}
	if t.historyDue {
		return t.lookUp(ctx, conn)
	}
	return nil
}

// handle takes one item.
func (t *turn) handle(ctx context.Context, conn *connection, i item) error {
	switch i.kind {
	case itemFrame:
		r := t.findRun(i.run.Run)
		switch {
		case r != nil && !r.IsOver && i.run.isEnd():
			return t.finishRun(ctx, conn, r, i)
		case r != nil && conn.protocol() >= numberedProtocol && r.isStale(&i):
			return nil // the next snapshot has the whole text, which the decoder recognizes
		case r != nil && r.lacksTools(conn) && i.startsText():
			// The tools between the texts are in the history only.
			r.IsLive = true
			if err := t.lookUp(ctx, conn); err != nil || t.isEnded || r.IsOver {
				return err
			}
			if i.outdated() {
				return nil // the next snapshot repeats it
			}
		case r != nil && r.mayLackText && i.run.startsTool():
			// By now the history has the text before the tool, which has to stand before it.
			err := t.lookUp(ctx, conn)
			if errors.Is(err, errLost) {
				t.batch = append([]item{i}, t.batch...)
			}
			if err != nil || t.isEnded || r.IsOver {
				return err
			}
			r.mayLackText = false
		}
		if r != nil && (i.run.isContent() || i.run.State == "delta") {
			if err := t.beforeFirst(ctx, conn, r); err != nil {
				t.batch = append([]item{i}, t.batch...)
				return err
			}
		}
		return t.handleFrame(i)
	case itemGap:
		return t.lookUp(ctx, conn)
	case itemAsk:
		t.ask(ctx, i.approval)
	case itemResolved:
		return t.closeApproval(i.approval)
	case itemSteer:
		return t.steer(ctx, conn, i.steer)
	}
	return nil
}

// refuse tells those who wait for an answer that there will be none.
func (t *turn) refuseSteers(items []item) {
	for _, i := range items {
		if i.kind == itemSteer {
			i.steer.answer(false)
		}
	}
}
