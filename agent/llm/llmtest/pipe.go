package llmtest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Pipe is an in-memory network with one server. Unlike with sockets, goroutines that wait for it are durably
// blocked in the sense of testing/synctest, so that the fake clock can advance. It is the server's listener,
// and Dial is for the agent's HTTP transport.
//
// All methods are safe for concurrent use. Create the Pipe inside the bubble of the test, because its channels
// belong to that bubble.
type Pipe struct {
	conns     chan net.Conn
	closing   chan struct{}
	closeOnce sync.Once

	mu       sync.Mutex
	refusals int // number of connections to refuse
}

// NewPiped starts a server of a kind behind a pipe. It ends with the test. The agent's HTTP transport must use
// Pipe.Dial; the host of URL has no meaning.
func NewPiped(t testing.TB, kind string) (*Server, *Pipe) {
	t.Helper()
	s := newServer(t, kind)
	p := &Pipe{conns: make(chan net.Conn), closing: make(chan struct{})}
	s.http = &httptest.Server{Listener: p, Config: &http.Server{Handler: http.HandlerFunc(s.serve)}}
	s.http.Start()
	t.Cleanup(s.http.Close)
	s.URL = s.http.URL + s.api.base
	return s, p
}

// Refuse makes the next n connections fail with an error that isn't a system error, so the agent can't name its
// cause.
func (p *Pipe) Refuse(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusals = n
}

var errRefused = errors.New("connection refused")

// Dial connects to the server, whatever the address is. It blocks until the server accepts the connection, ctx
// is done, or the pipe is closed.
func (p *Pipe) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	down := p.refusals > 0
	p.refusals--
	p.mu.Unlock()
	if down {
		return nil, errRefused
	}
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closing:
		return nil, errRefused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener]. It returns [net.ErrClosed] after Close, which ends the HTTP server without
// an error.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closing:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener]. It may be called several times. Connections that are open stay open; the
// HTTP server closes them.
func (p *Pipe) Close() error {
	p.closeOnce.Do(func() { close(p.closing) })
	return nil
}

// Addr implements [net.Listener]. The HTTP test server builds its URL from the address.
func (p *Pipe) Addr() net.Addr { return addr{} }

// addr is the address of a Pipe. Its name ends in .test, so a request that misses the Pipe can't reach a real
// host.
type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "provider.test" }
