package call

import (
	"context"
	"errors"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/base/retry"
)

const (
	// retryLimit bounds the time from the first failure to the last call.
	retryLimit = 60 * time.Second
	// maxCalls bounds the calls of a turn whose agent says nothing of when to come back.
	maxCalls = 5
)

// repeat is the schedule of calls that are repeated.
var repeat = retry.Schedule{Initial: 500 * time.Millisecond, Max: retryLimit}

// repeats says when a turn's next call is due.
type repeats struct {
	begin  time.Time // of the first failure
	pauses retry.Backoff
	calls  int
}

func newRepeats() *repeats { return &repeats{pauses: retry.Backoff{Schedule: repeat}} }

// next returns the pause before the next call, and whether there is to be one.
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

// Repeat calls attempt until it returns no [*Failure] that may be repeated, or for as long as retries may go on. Readers see
// the phase "retrying". What it returns is for the agent's Run to return.
func Repeat(ctx context.Context, emitter *agent.Emitter, attempt func() error) error {
	r := newRepeats()
	for {
		err := attempt()
		var failed *Failure
		if !errors.As(err, &failed) {
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
		emitter.Log().Info("agent failed; it is called again", "error", failed.Error(), "in", wait.String())
		if err := emitter.Phase("retrying"); err != nil {
			return err
		}
		emitter.Trouble(failed.AgentError()) // after the phase, which is progress
		if err := retry.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}
