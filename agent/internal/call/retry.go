package call

import (
	"context"
	"errors"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/base/retry"
)

const (
	// retryLimit is the maximum time from the first failure to the last attempt.
	retryLimit = 60 * time.Second
	// maxCalls is the maximum number of attempts of a turn if the upstream doesn't say when to retry.
	maxCalls = 5
)

// repeat is the schedule of retries without a hint from the upstream.
var repeat = retry.Schedule{Initial: 500 * time.Millisecond, Max: retryLimit}

// repeats counts the attempts of a turn and computes when the next one is due.
type repeats struct {
	begin  time.Time // of the first failure
	pauses retry.Backoff
	calls  int
}

func newRepeats() *repeats { return &repeats{pauses: retry.Backoff{Schedule: repeat}} }

// next returns the pause before the next attempt, and false if the limits allow none. A hint from the upstream
// replaces the schedule and the limit on the number of attempts, but not the limit on the time: a turn doesn't
// wait ten minutes because an upstream asks for it.
func (r *repeats) next(f *Failure) (time.Duration, bool) {
	if !f.Retry {
		return 0, false
	}
	callTime := time.Now()
	if r.begin.IsZero() {
		r.begin = callTime
	}
	r.calls++
	wait := f.Hint
	if wait <= 0 {
		if r.calls >= maxCalls {
			return 0, false
		}
		wait = r.pauses.Next()
	}
	return wait, callTime.Add(wait).Sub(r.begin) <= retryLimit
}

// Repeat calls attempt until it returns nil or an error that isn't a [*Failure] with Retry set, at most
// [maxCalls] times and for [retryLimit]. During the pauses viewers see the phase "retrying". If the turn then
// fails for its silence, it fails with the error of the last attempt. The agent's Run returns the result of
// Repeat unchanged: it is the context's cause if the turn has ended.
//
// A Failure with ResetRetries resets the count and the time, so a long turn may survive several broken
// connections.
func Repeat(ctx context.Context, emitter *agent.Emitter, attempt func() error) error {
	r := newRepeats()
	for {
		err := attempt()
		failed, ok := errors.AsType[*Failure](err)
		if !ok {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if failed.ResetRetries {
			r = newRepeats()
		}
		wait, ok := r.next(failed)
		if !ok {
			return failed.AgentError()
		}
		emitter.Log().Info("agent failed; the request will be retried", "error", failed.Error(), "in", wait.String())
		if err := emitter.Phase("retrying"); err != nil {
			return err
		}
		emitter.Trouble(failed.AgentError()) // after Phase, which is progress and clears the error
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}
