package leat

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"
)

const (
	// minBackoff is the first wait: a gateway that restarts is back within a second.
	minBackoff = 500 * time.Millisecond
	// growth is by how much each wait is longer than the one before.
	growth = 1.5
	// maxBackoff is the longest wait of a client that hurries: what a person still takes for "soon".
	maxBackoff = 10 * time.Second
	// hurried is how many waits there are before the client only probes, and probe how long it waits then.
	hurried = 15
	probe   = 30 * time.Second
	// lasting is how long a connection has to last to count as a good one, even if nothing came but heartbeats.
	lasting = 10 * time.Second
)

// backoff waits longer after each failure. The zero value is ready to use.
type backoff struct{ failures int }

// late reports whether the gateway asks to wait for longer than a person takes for "soon".
func asksLongWait(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.RetryAfter > maxBackoff
}

// after returns how long to wait before the next try. The wait is up to a half shorter at random, so that clients that were
// disconnected at the same time don't come back at the same time. If the gateway asks for a longer one, within maxBackoff, it is that, and
// up to a half longer for the same reason.
func (b *backoff) after(err error) time.Duration {
	d := min(time.Duration(float64(minBackoff)*math.Pow(growth, float64(b.failures))), maxBackoff)
	if b.failures++; b.failures > hurried {
		d = probe
	}
	d -= rand.N(d / 2)
	var e *Error
	if errors.As(err, &e) {
		if retryAfter := min(e.RetryAfter, maxBackoff); retryAfter > 0 {
			d = max(d, retryAfter+rand.N(retryAfter/2+1))
		}
	}
	return d
}

func (b *backoff) reset() { b.failures = 0 }

// sleep waits, or returns the context's error.
func (b *backoff) sleep(ctx context.Context, err error) error { return sleep(ctx, b.after(err), nil) }

// sleep waits until the time is over or something comes from hurry, or returns the context's error.
func sleep(ctx context.Context, d time.Duration, hurry <-chan struct{}) error {
	if d <= 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-hurry:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
