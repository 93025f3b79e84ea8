package feishu

import (
	"net/http"
	"strconv"
	"time"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// Fault is something that goes wrong with one request: the first that matches.
type Fault struct {
	Route string // one of the Route constants; empty matches all that concern a chat
	Skip  int    // how many matching requests pass before
	// Before closes the connection before the request takes effect, and After when it has. Both leave it unanswered.
	Before, After bool
	// Status answers with this status and an error of this Code, without an effect.
	Status int
	Code   int
	// RetryAfter is the penalty of a 429, in whole seconds. It is for all requests of the app.
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

// take returns the fault that a request meets, or nil. mu must be locked.
func (s *Server) take(c *call) *Fault {
	concernsChat := c.chat != ""
	match := func(f *Fault) (skip *int, ok bool) {
		return &f.Skip, f.Route == c.route || f.Route == "" && concernsChat
	}
	if f := memory.TakeFault(&s.faults, match); f != nil {
		return f
	}
	if s.opt.Chaos != nil && concernsChat {
		return s.opt.Chaos(c.route, c.chat)
	}
	return nil
}

// failure returns the answer that a fault gives.
func (f *Fault) failure() *failure {
	failed := &failure{status: f.Status, code: f.Code, message: http.StatusText(f.Status)}
	if f.RetryAfter > 0 {
		failed.reset = strconv.Itoa(int(f.RetryAfter / time.Second))
	}
	return failed
}
