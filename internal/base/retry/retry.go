package retry

import (
	"context"
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
