package telegram

import (
	"cmp"
	"net/http"
	"time"
)

// Fault is something that goes wrong with one request: the first that matches.
type Fault struct {
	Method string // empty matches every method but getUpdates
	Skip   int    // how many matching requests pass before
	// Before closes the connection before the request takes effect, and After when it has. Both leave it unanswered.
	Before, After bool
	// Status answers with this status and Description, without an effect.
	Status      int
	Description string
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

// failure returns the refusal that a fault makes. Without a description it is the one that the real API gives for the status.
func (f *Fault) failure() *failure {
	description := f.Description
	var parameters map[string]any
	if f.RetryAfter > 0 {
		seconds := int(f.RetryAfter / time.Second)
		parameters = map[string]any{"retry_after": seconds}
		if description == "" {
			return tooMany(seconds)
		}
	}
	description = cmp.Or(description, http.StatusText(f.Status))
	return &failure{f.Status, description, parameters}
}
