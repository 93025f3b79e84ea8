package whatsapp

import (
	"cmp"
	"net/http"
	"time"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// Fault is something that goes wrong with one request: the first that matches.
type Fault struct {
	Route string // one of the Route constants; empty matches all of them
	Skip  int    // how many matching requests pass before
	// Before closes the connection before the request takes effect, and After when it has. Both leave it unanswered.
	Before, After bool
	// Status answers with this status and an error of this Code and Message, without an effect.
	Status  int
	Code    int
	Message string
	// Limit makes the platform refuse all messages to the person for this time, with the code 131056. It doesn't say how long, so a bot
	// has to try again, but one that tries within 5 s of a refusal violates the rules.
	Limit time.Duration
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
func (s *Server) take(route, chat string) *Fault {
	match := func(f *Fault) (skip *int, ok bool) { return &f.Skip, f.Route == "" || f.Route == route }
	if f := memory.TakeFault(&s.faults, match); f != nil {
		return f
	}
	if s.opt.Chaos != nil {
		return s.opt.Chaos(route, chat)
	}
	return nil
}

// failure returns the answer that a fault gives.
func (f *Fault) failure() *failure {
	if f.Limit > 0 {
		return pairLimit()
	}
	message := cmp.Or(f.Message, http.StatusText(f.Status))
	return &failure{status: f.Status, code: f.Code, message: message}
}
