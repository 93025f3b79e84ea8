package webhook

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// retryFirst is the wait after the first failed try; each further one doubles it.
	retryFirst = time.Second
	// retryMost bounds the wait for a delivery that its receiver refuses; some tries come in 24 hours even so.
	retryMost = time.Hour
	// awayMost bounds the wait for a receiver that can't be reached: asking is cheap, and all of its deliveries wait.
	awayMost = time.Minute
)

// backoff returns how long to wait after so many failures in a row, at least 1: twice as long each time, up to most, and
// up to a half of it less, so that what failed together does not come back together.
func backoff(failures int, most time.Duration) time.Duration {
	d := most
	if n := failures - 1; n < 32 {
		d = min(most, retryFirst<<max(n, 0))
	}
	return d/2 + rand.N(d/2+1)
}

// retryAfter reads the header of that name, in seconds or as a date; 0 where there is none that can be read, or one in the past.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}
