package matrix

import (
	"cmp"
	"net/http"
	"time"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// Fault is something that goes wrong with one request: the first that matches.
type Fault struct {
	// Route is the kind of the request: send, redact, join, upload, download, typing, receipt, members, event, relations, whoami,
	// account. Empty matches all but syncs.
	Route string
	Skip  int // how many matching requests pass before
	// Before closes the connection before the request takes effect, and After when it has. Both leave it unanswered.
	Before, After bool
	// Status answers with this status, Code and Text, without an effect. Code is that of Matrix, such as M_FORBIDDEN.
	Status     int
	Code, Text string
	// RetryAfter is the penalty of a 429.
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

// failure returns the refusal that a fault makes.
func (f *Fault) failure() *failure {
	if f.Status == http.StatusTooManyRequests {
		return tooMany(f.RetryAfter)
	}
	code, text := f.Code, f.Text
	code = cmp.Or(code, "M_UNKNOWN")
	text = cmp.Or(text, http.StatusText(f.Status))
	return refuse(f.Status, code, "%s", text)
}

// RoundTrip implements [http.RoundTripper]: it answers without a socket, so that tests can run in a testing/synctest bubble.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) { return memory.RoundTrip(s, r) }
