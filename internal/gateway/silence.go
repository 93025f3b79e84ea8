// The limit on silence: an agent that shows no progress for too long fails its turn. Waiting for a person doesn't count, and an
// agent may be asked whether it is alive first.

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/agent"
)

const (
	// probeLimit is how long an agent's Probe of a silent turn may take.
	probeLimit = 10 * time.Second
	// activityLimit is how long the writer may take to report the turn's activity.
	activityLimit = 10 * time.Second
)

// touch notes progress of the agent. A failed attempt before it is not the reason for a later silence.
func (r *run) touch() {
	r.lastSign.Store(nowMillis())
	r.trouble.Store(nil)
}

// startSilence starts the limit on silence, which ends the turn when its agent shows no progress for too long. It doesn't count
// while a tool runs or a user is asked.
func (r *run) startSilence() {
	limit := cmp.Or(r.agent.Silence, DefaultSilence)
	if limit < 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silence = time.AfterFunc(limit, func() { r.checkSilence(limit) })
}

// stopSilence ends the limit on silence.
func (r *run) stopSilence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.silence != nil {
		r.silence.Stop()
		r.silence = nil
	}
}

// resetSilence checks for silence again after d, unless the agent has returned.
func (r *run) resetSilence(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.silence != nil {
		r.silence.Reset(d)
	}
}

// checkSilence ends the turn if the agent has shown no progress for the limit, unless its upstream confirms that it still works.
func (r *run) checkSilence(limit time.Duration) {
	if r.isOver() {
		return
	}
	waits, answeredAt := r.activity()
	if waits {
		r.touch()
	}
	last := max(r.lastSign.Load(), answeredAt)
	if remaining := limit - time.Duration(nowMillis()-last)*time.Millisecond; remaining > 0 {
		r.resetSilence(remaining)
		return
	}
	p, ok := r.agent.Agent.(agent.Prober)
	if !ok || r.isPushed.Load() {
		r.fail(r.silenceError(limit))
		return
	}
	r.core.tasks.Go(func() { r.probe(p, limit) }) // the run itself is a task until it returns, so none is added too late
}

// activity returns whether the turn waits for a tool or a user, and when a user answered last. If the writer doesn't answer,
// the turn counts as waiting, and another check follows.
func (r *run) activity() (waits bool, answeredAt int64) {
	ctx, cancel := context.WithTimeout(r.ctx, activityLimit)
	defer cancel()
	a, err := r.link.Activity(ctx, r.turn)
	if err != nil {
		return !errors.Is(err, ErrTurnOver), 0
	}
	return a.IsWaiting, a.AnsweredAt
}

// probe asks the upstream whether it still works on the silent turn, and fails the turn if it doesn't.
func (r *run) probe(p agent.Prober, limit time.Duration) {
	before := r.lastSign.Load()
	ctx, cancel := context.WithTimeout(r.ctx, probeLimit)
	defer cancel()
	err := p.Probe(ctx, r.currentInput())
	var agentErr *agent.Error
	switch {
	case r.ctx.Err() != nil: // the turn has ended, or is detached for the next start
	case err == nil:
		r.touch()
		r.resetSilence(limit)
	case r.lastSign.Load() != before:
		r.resetSilence(limit)
	case errors.As(err, &agentErr):
		r.fail(agentErr)
	default:
		r.log.Info("upstream of a silent turn not reached", "turn", r.turn, "agent", r.name, "error", err)
		r.fail(r.silenceError(limit))
	}
}

// silenceError returns the error with which a silent turn fails: that of the agent's last attempt, if the agent has reported one.
func (r *run) silenceError(limit time.Duration) *agent.Error {
	if e := r.trouble.Load(); e != nil {
		return e
	}
	return &agent.Error{Code: codeSilence, Message: fmt.Sprintf("the agent sent nothing for %v", limit), Retryable: true}
}
