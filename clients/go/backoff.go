package leat

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	// minBackoff is the first wait: a gateway that restarts is back within a second.
	minBackoff = 250 * time.Millisecond
	// maxBackoff is the longest: what a person still takes for "soon".
	maxBackoff = 10 * time.Second
)

// backoff waits longer after each failure. The zero value is ready to use.
type backoff struct{ next time.Duration }

// after returns how long to wait before the next try: at least as long as the gateway asks, and by chance a little longer,
// so that clients that were cut at the same time don't come back at the same time.
func (b *backoff) after(err error) time.Duration {
	if b.next == 0 {
		b.next = minBackoff
	}
	d := b.next
	b.next = min(2*b.next, maxBackoff)
	var e *Error
	if errors.As(err, &e) {
		d = max(d, e.RetryAfter)
	}
	return d + rand.N(d/2)
}

func (b *backoff) reset() { b.next = 0 }

// sleep waits, or returns the context's error.
func (b *backoff) sleep(ctx context.Context, err error) error { return sleep(ctx, b.after(err)) }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
