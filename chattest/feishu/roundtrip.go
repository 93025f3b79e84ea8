package feishu

import (
	"net/http"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// RoundTrip implements [http.RoundTripper]: it answers without a socket, so that tests can run in a testing/synctest bubble.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) { return memory.RoundTrip(s, r) }

// Handler returns a transport whose requests a handler answers, without sockets.
func Handler(h http.Handler) http.RoundTripper { return handler{h} }

type handler struct{ http.Handler }

func (h handler) RoundTrip(r *http.Request) (*http.Response, error) { return memory.RoundTrip(h, r) }
