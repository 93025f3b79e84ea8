package retry

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Sleep waits for d. If ctx is done first, it returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// After parses the value of a Retry-After header, which is a number of seconds or a date, of a response received at receivedAt.
// It returns 0 if the value is empty, malformed or in the past. The result has no upper limit.
func After(header string, receivedAt time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(receivedAt))
}

// Schedule is the sequence of waits between attempts that keep failing.
type Schedule struct {
	// Initial is the wait after the first failure.
	Initial time.Duration
	// Max limits the wait. It must be set.
	Max time.Duration
	// Growth multiplies the wait with each further failure. If it is 0, the wait doubles.
	Growth float64
	// Jitter shortens each wait at random, by less than half, so that clients that failed together don't return together. It only
	// ever subtracts, so the schedule is an upper limit.
	Jitter bool
	// ProbeAfter is the number of failures after which every wait is Probe, which may exceed Max. If it is 0, the waits never become probes.
	ProbeAfter int
	Probe      time.Duration
}

// Wait returns the wait after that many failures in a row, counted from 1.
func (s Schedule) Wait(failures int) time.Duration {
	wait := s.Max
	growth := cmp.Or(s.Growth, 2)
	if exponential := float64(s.Initial) * math.Pow(growth, float64(max(failures-1, 0))); exponential < float64(s.Max) {
		wait = time.Duration(exponential)
	}
	if s.ProbeAfter > 0 && failures > s.ProbeAfter {
		wait = s.Probe
	}
	if half := wait / 2; s.Jitter && half > 0 {
		wait -= rand.N(half)
	}
	return wait
}

// Backoff counts failures in a row against a schedule. It isn't safe for concurrent use.
type Backoff struct {
	Schedule
	failures int
}

// Next counts a failure and returns the wait before the next attempt.
func (b *Backoff) Next() time.Duration {
	b.failures++
	return b.Wait(b.failures)
}

// Reset forgets the failures, after an attempt that succeeded.
func (b *Backoff) Reset() { b.failures = 0 }
