package slack

import (
	"net/http"
	"strconv"
	"time"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// Fault is something that goes wrong with one request: the first that matches.
type Fault struct {
	Method string // empty matches every method
	Skip   int    // how many matching requests pass before
	// Before closes the connection before the request takes effect, and After when it has. Both leave it unanswered.
	Before, After bool
	// Error answers with this error, as the API refuses requests: with status 200. Without an Error, Status answers as something
	// on the way to the API does. Neither has an effect.
	Error  string
	Status int
	// RetryAfter is the penalty of a 429, in whole seconds.
	RetryAfter time.Duration
	// Release, if set, delays the request until it is closed.
	Release <-chan struct{}
}

// Fail adds a fault.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// fault returns the fault that a request meets, or nil. mu must be locked.
func (s *Server) fault(method, channel string) *Fault {
	match := func(f *Fault) (skip *int, ok bool) { return &f.Skip, f.Method == "" || f.Method == method }
	if f := memory.TakeFault(&s.faults, match); f != nil {
		return f
	}
	if s.opt.Chaos != nil {
		return s.opt.Chaos(method, channel)
	}
	return nil
}

// answer returns the answer to a request that meets the fault, or nil if the request works.
func (f *Fault) answer() *answer {
	switch {
	case f.RetryAfter > 0:
		return limited(int(f.RetryAfter / time.Second))
	case f.Error != "":
		return refuse(f.Error)
	case f.Status != 0:
		return &answer{status: f.Status, page: http.StatusText(f.Status)}
	}
	return nil
}

// limited returns the answer to a request that is too early.
func limited(seconds int) *answer {
	a := refuse("ratelimited")
	a.status, a.retryAfter = http.StatusTooManyRequests, strconv.Itoa(seconds)
	return a
}
