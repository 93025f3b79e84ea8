package discord

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// maxWindows is how many limits are remembered before those that are over are forgotten. A window is needed for some seconds only,
// but there is one for each channel and route.
const maxWindows = 1000

// limiter knows how many requests the server allows, from the headers of its answers. The limit of a route is shared by the routes of
// its bucket, and is separate for each major parameter, such as a channel. The names of buckets are opaque. Until the first answer of
// a route has named its bucket, the route counts by itself.
type limiter struct {
	mu      sync.Mutex
	global  time.Time         // no request before
	buckets map[string]string // by route
	windows map[string]window // by bucket and major parameter
}

// window is the state of one limit. It ends at reset, after which the number of requests is full again but not known yet.
type window struct {
	remaining int
	reset     time.Time
}

// key returns the name of an endpoint's limit. mu must be locked.
func (l *limiter) key(e endpoint) string {
	bucket, ok := l.buckets[e.route()]
	if !ok {
		bucket = e.route()
	}
	return bucket + "/" + e.major
}

// take counts a request. If none is allowed, it returns the time until one is, and whether that holds for all requests. Of two
// requests at once, both may be counted before either is answered, which is why the count is lowered here and not by update only.
func (l *limiter) take(e endpoint) (wait time.Duration, isGlobal bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := time.Now()
	if at.Before(l.global) && !e.isInteraction() {
		return l.global.Sub(at), true
	}
	key := l.key(e)
	w, ok := l.windows[key]
	switch {
	case !ok:
	case !at.Before(w.reset):
		delete(l.windows, key)
	case w.remaining <= 0:
		return w.reset.Sub(at), false
	default:
		w.remaining--
		l.windows[key] = w
	}
	return 0, false
}

// update records what an answer says about limits. A penalty replaces the window, because the server knows about requests of other
// processes with the same token.
func (l *limiter) update(e endpoint, header http.Header, failed apiError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := time.Now()
	if bucket := header.Get("X-RateLimit-Bucket"); bucket != "" {
		l.buckets[e.route()] = bucket
	}
	if len(l.windows) >= maxWindows {
		for key, w := range l.windows {
			if !at.Before(w.reset) {
				delete(l.windows, key)
			}
		}
	}
	remaining, err := strconv.Atoi(header.Get("X-RateLimit-Remaining"))
	after, afterErr := strconv.ParseFloat(header.Get("X-RateLimit-Reset-After"), 64)
	switch {
	case failed.Status == http.StatusTooManyRequests && failed.Global:
		l.global = at.Add(failed.RetryAfter)
	case failed.Status == http.StatusTooManyRequests:
		l.windows[l.key(e)] = window{reset: at.Add(failed.RetryAfter)}
	case err == nil && afterErr == nil:
		l.windows[l.key(e)] = window{remaining: remaining, reset: at.Add(time.Duration(after * float64(time.Second)))}
	}
}
