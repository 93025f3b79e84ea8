// Run and Resume: the life of one turn, from its message to its end, over as many connections as that takes.

package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

const (
	// sendLimit is the time from the start of a turn within which the gateway must have accepted its message.
	sendLimit = 60 * time.Second
	// returnLimit is how long a gateway may stay away while it has a turn.
	returnLimit = 5 * time.Minute
	// idleCheck is how long a turn may be silent before its runs are looked up.
	idleCheck = 30 * time.Second
	// unsureCheck is the interval between look-ups while the state of a run is unknown.
	unsureCheck = 2 * time.Second
	// restartGrace is how long a gateway may take after a restart to continue its runs. A run that is missing for longer is lost.
	restartGrace = 30 * time.Second
	// completeLimit is the time for reading the history and the files of a run before its end is shown.
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

// resume restores the state that was stored with the last commit.
func (t *turn) resume(state json.RawMessage) error {
	if err := json.Unmarshal(state, &t.st); err != nil {
		return fmt.Errorf("openclaw: stored state: %w", err)
	}
	if len(t.st.Decoder) > 0 {
		return t.dec.Restore(t.st.Decoder)
	}
	return nil
}

// drive connects, registers the turn and follows it until it ends. The session's key is stored before the turn is registered, and so
// before anything is sent: after a crash, the next turn of the conversation finds the same session.
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

// sustain follows a registered turn over as many connections as it takes. It ends with the turn, or when the gateway has been
// away for too long: sendLimit before the message is sent, returnLimit after it, and restartGrace if only the history of an
// ended run is missing. In every case it answers waiting Steer calls, unregisters the turn and waits for its tasks.
func (a *gatewayAgent) sustain(ctx context.Context, t *turn, conn *connection, began time.Time) (err error) {
	inner, cancel := context.WithCancel(ctx)
	defer func() {
		// The order matters: no Steer call may be queued after its answers, tasks end with inner, and unregister needs their result.
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
			limit = restartGrace // the answer is there; only additions from the history are missing
		}
		if limit <= 0 {
			_, reason := conn.closeReason()
			return &agent.Error{Code: codeRestarted, Message: call.WithCause("OpenClaw doesn't answer", reason), Detail: reason.Error(), Retryable: true}
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

// connectionError returns the error of a turn whose connection was lost and did not come back. After the message was sent, it
// says that the gateway went away, so that the turn counts as unfinished.
func (t *turn) connectionError(err error) error {
	var refusalErr *refusal
	if !t.isSent() || errors.As(err, &refusalErr) {
		return agentError(err)
	}
	return &agent.Error{Code: codeRestarted, Message: call.WithCause("OpenClaw did not come back", err), Detail: err.Error(), Retryable: true}
}

// onWait returns a callback for awaitConnection. Viewers see the phase once. Each reason becomes the emitter's trouble, which
// is the error that a turn fails with if it stays silent.
func (t *turn) onWait(ctx context.Context, phase string, failure func(error) error) func(error) {
	hasWaited := false
	return func(reason error) {
		if !hasWaited {
			t.showPhase(ctx, phase)
			hasWaited = true
		}
		var e *agent.Error
		if reason != nil && errors.As(failure(reason), &e) {
			t.emitter.Trouble(e) // after the phase: progress clears the trouble
		}
	}
}

// abortRuns stops the turn's runs upstream if err is codeFlood. Otherwise the gateway would continue to produce text
// that is never shown.
func (t *turn) abortRuns(ctx context.Context, conn *connection, err error) {
	var a *agent.Error
	if !errors.As(err, &a) || a.Code != codeFlood {
		return
	}
	for _, r := range t.openRuns() {
		if err := conn.call(ctx, "chat.abort", map[string]string{"sessionKey": t.session, "runId": r.ID}, nil); err != nil {
			t.emitter.Log().Warn("could not stop a run that exceeded the size limit", "run", r.ID, "error", err)
		}
	}
}

// runError converts an error of a turn to the error that Run returns: the cause if ctx is done, errors of the decoder and the log
// unchanged, and an *agent.Error for everything else.
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

// isSent reports whether the gateway may have any of the turn's messages.
func (t *turn) isSent() bool {
	return slices.ContainsFunc(t.st.Runs, func(r *run) bool { return r.IsSent })
}

// follow runs the turn over one connection. It returns nil if the turn has ended or the connection is lost; the caller
// distinguishes them by isEnded. On a connection after the first, it reads the history before it handles queued frames, because
// frames that were missed precede them. Messages that are not sent yet are sent at the start of each round, also those that Steer
// has added. While the state of a run is unknown, frames don't restart the timer: a run that sends without a pause would
// otherwise postpone the look-up forever.
func (t *turn) follow(ctx context.Context, conn *connection) error {
	// The decoder needs nothing of the handshake but the protocol, and the rest must not be captured.
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
	// The timer restarts with every item, so it fires only after silence; see the exception for unsure below.
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
				continue // frames must not postpone the look-up
			}
		case <-check.C:
			if err := t.lookUp(ctx, conn); err != nil {
				return ignoreLost(err)
			}
		case <-conn.closed:
			return ignoreLost(t.handleQueued(ctx, conn)) // frames that arrived before the connection was lost
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		check.Reset(t.checkInterval())
	}
	return nil
}

// helloFrame returns the frame that tells a decoder the protocol version. The gateway's real hello is not captured, because it
// may contain a device token.
func helloFrame(protocol int) []byte {
	return fmt.Appendf(nil, `{"type":"res","id":"connect","ok":true,"payload":{"type":"hello-ok","protocol":%d}}`, protocol)
}

// ignoreLost returns nil if err is the loss of the connection, which the caller handles by waiting for the next one.
func ignoreLost(err error) error {
	if errors.Is(err, errLost) {
		return nil
	}
	return err
}

// checkInterval returns how long the turn may be silent before its runs are looked up.
func (t *turn) checkInterval() time.Duration {
	if t.unsure {
		return unsureCheck
	}
	return idleCheck
}

// handleQueued handles all queued items. If the connection is lost meanwhile, the unhandled items return to the queue and wait
// for the next connection.
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

// handle handles one item. Before some frames it reads the history, so that missed text and tools are shown first. Where the item
// must not get lost with the connection, it is put back into the batch, and the next connection handles it.
func (t *turn) handle(ctx context.Context, conn *connection, i item) error {
	switch i.kind {
	case itemFrame:
		r := t.findRun(i.run.Run)
		switch {
		case r != nil && !r.IsOver && i.run.isEnd():
			return t.finishRun(ctx, conn, r, i)
		case r != nil && conn.protocol() >= numberedProtocol && r.isStale(&i):
			return nil // the next snapshot has the whole text, and the decoder recognizes it
		case r != nil && r.lacksTools(conn) && i.startsText():
			// Only the history has the tools between the last text and this one.
			r.IsLive = true
			if err := t.lookUp(ctx, conn); err != nil || t.isEnded || r.IsOver {
				return err
			}
			if i.outdated() {
				return nil // the history or the next snapshot has it
			}
		case r != nil && r.mayLackText && i.run.startsTool():
			// Now the history contains the text before the tool; it has to be shown first.
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

// refuseSteers answers the Steer calls among items: their messages are not sent.
func (t *turn) refuseSteers(items []item) {
	for _, i := range items {
		if i.kind == itemSteer {
			i.steer.answer(false)
		}
	}
}
