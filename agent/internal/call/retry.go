package call

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
)

const (
	// retryLimit bounds the time from the first failure to the last call.
	retryLimit = 60 * time.Second
	// maxCalls bounds the calls of a turn whose agent says nothing of when to come back.
	maxCalls = 5
	// firstWait is the pause before the second call; each further one is twice as long.
	firstWait = 500 * time.Millisecond
)

// retry says when a turn's next call is due.
type retry struct {
	begin time.Time // of the first failure
	wait  time.Duration
	calls int
}

func newRetry() *retry { return &retry{wait: firstWait} }

// next returns the pause before the next call, and whether there is to be one.
func (r *retry) next(f *Failure) (time.Duration, bool) {
	if !f.Retry {
		return 0, false
	}
	now := time.Now()
	if r.begin.IsZero() {
		r.begin = now
	}
	r.calls++
	wait := r.wait
	if f.Hint > 0 {
		wait = f.Hint
	} else {
		if r.calls >= maxCalls {
			return 0, false
		}
		r.wait *= 2
	}
	return wait, now.Add(wait).Sub(r.begin) <= retryLimit
}

// Sleep waits for d, or returns the cause of ctx once that is done.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// RetryAfter reads a Retry-After, in seconds or as a date.
func RetryAfter(h string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(strings.TrimSpace(h), 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(h); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// Repeat calls attempt until it returns no [*Failure] that may be repeated, or for as long as retries may go on. Readers see
// the phase "retrying". What it returns is for the agent's Run to return.
func Repeat(ctx context.Context, out *agent.Emitter, attempt func() error) error {
	r := newRetry()
	for {
		err := attempt()
		var failed *Failure
		if !errors.As(err, &failed) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if failed.Fresh {
			r = newRetry()
		}
		wait, again := r.next(failed)
		if !again {
			return failed.Shown()
		}
		out.Log().Info("agent failed; it is called again", "error", failed.Error(), "in", wait.String())
		if err := out.Phase("retrying"); err != nil {
			return err
		}
		out.Trouble(failed.Shown()) // after the phase, which is progress
		if err := Sleep(ctx, wait); err != nil {
			return err
		}
	}
}
