package discord

import (
	"net/http"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// RoundTrip implements [http.RoundTripper]: it answers without a socket, so that tests can run in a testing/synctest bubble.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) { return memory.RoundTrip(s, r) }
