package discord

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// RoundTrip implements [http.RoundTripper]: it answers without a socket, so that tests can run in a testing/synctest bubble. A
// connection to the gateway is a pipe.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return s.upgrade(memory.Received(r))
	}
	return memory.RoundTrip(s, r)
}

// upgrade answers a request for a WebSocket. The body of the response is the bot's end of a pipe.
func (s *Server) upgrade(r *http.Request) (*http.Response, error) {
	botEnd, serverEnd := memory.Pipe()
	w := &hijacker{ResponseRecorder: httptest.NewRecorder(), conn: serverEnd, upgraded: make(chan struct{})}
	end := make(chan struct{})
	go func() { // ends with the connection
		defer close(end)
		s.ServeHTTP(w, r)
	}()
	select {
	case <-w.upgraded:
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: w.Header().Clone(), Body: botEnd, Request: r}, nil
	case <-end:
	}
	select {
	case <-w.upgraded: // the connection was accepted and has ended at once
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: w.Header().Clone(), Body: botEnd, Request: r}, nil
	default:
		return w.Result(), nil
	}
}

// hijacker is a response whose connection is a pipe.
type hijacker struct {
	*httptest.ResponseRecorder
	conn     net.Conn
	upgraded chan struct{} // closed when the connection was taken over
}

// Hijack implements [http.Hijacker].
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	close(h.upgraded)
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}
