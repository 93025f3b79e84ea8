package leat

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"
)

const (
	// minBackoff is the first wait. A restarting gateway is available again within a second.
	minBackoff = 500 * time.Millisecond
	// growth is the factor between consecutive waits.
	growth = 1.5
	// maxBackoff is the longest wait in the first phase, while a user may be watching.
	maxBackoff = 10 * time.Second
	// hurried is the number of waits in the first phase. Each later wait is probe.
	hurried = 15
	probe   = 30 * time.Second
	// lasting is the duration after which a connection counts as successful, even if it delivered only heartbeats.
	lasting = 10 * time.Second
)

// backoff computes waits that grow with each failure. The zero value is ready to use.
type backoff struct{ failures int }

// asksLongWait reports whether the gateway asks for a wait longer than maxBackoff, so that the call should fail instead of waiting.
func asksLongWait(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.RetryAfter > maxBackoff
}

// after returns the wait before the next attempt. A random part of up to half is subtracted, so that clients that were disconnected at the
// same time don't reconnect at the same time. If the gateway asks for a longer wait, within maxBackoff, that wait is used, extended by a
// random part for the same reason.
func (b *backoff) after(err error) time.Duration {
	d := min(time.Duration(float64(minBackoff)*math.Pow(growth, float64(b.failures))), maxBackoff)
	if b.failures++; b.failures > hurried {
		d = probe
	}
	d -= rand.N(d / 2)
	if e, ok := errors.AsType[*Error](err); ok {
		if retryAfter := min(e.RetryAfter, maxBackoff); retryAfter > 0 {
			d = max(d, retryAfter+rand.N(retryAfter/2+1))
		}
	}
	return d
}

func (b *backoff) reset() { b.failures = 0 }

// sleep waits for d, or returns the context's error.
func (b *backoff) sleep(ctx context.Context, err error) error { return sleep(ctx, b.after(err), nil) }

// sleep waits for d or until it receives from hurry, or returns the context's error.
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

// reconnector connects again after each disconnect that may pass.
type reconnector struct {
	client *Client
	// silence is the error of a connection on which nothing arrived. The time of silence was wait enough.
	silence      error
	onDisconnect func(err error, next time.Duration)
	hurry        <-chan struct{}
	wait         backoff
}

// run calls connect until a callback returns an error, ctx ends, or the gateway returns an error that a retry can't solve. connect reads
// one connection to its end and never returns a nil error. isAccepted is true if the gateway accepted the token. A second refusal in a
// row is final.
func (r *reconnector) run(ctx context.Context, connect func() (isAccepted bool, err error)) error {
	isRenewed := false // the token, after a refusal
	for {
		start := time.Now()
		isAccepted, err := connect()
		if isAccepted {
			isRenewed = false
			if time.Since(start) >= lasting {
				r.wait.reset()
			}
		}
		var callbackErr *ownError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &callbackErr) && errors.Is(callbackErr.error, ErrStop):
			return nil
		case errors.As(err, &callbackErr):
			return callbackErr.error
		case r.client.renews(err) && !isRenewed:
			isRenewed = true
		case !temporary(err):
			return err
		}
		d := r.wait.after(err)
		if errors.Is(err, r.silence) {
			d = 0 // Retry-After has already been waited for
		}
		if r.onDisconnect != nil {
			r.onDisconnect(err, d)
		}
		if err := sleep(ctx, d, r.hurry); err != nil {
			return err
		}
	}
}
