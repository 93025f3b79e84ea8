package servertest

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Listener is an in-memory network.
type Listener struct {
	conns     chan net.Conn
	closed    chan struct{}
	closeOnce sync.Once
}

var _ net.Listener = (*Listener)(nil)

// Listen returns a listener that only its Dial method reaches.
func Listen() *Listener { return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Dial connects to the listener.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- conn{server}:
		return conn{client}, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Client returns an HTTP client that connects to the listener, whatever the URL's host is.
func (l *Listener) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx) },
	}}
}

// Accept waits for the next connection. It implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial.
func (l *Listener) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	return nil
}

// Addr returns a loopback address.
func (l *Listener) Addr() net.Addr { return addr }

var addr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 31337}

type conn struct{ net.Conn }

func (conn) LocalAddr() net.Addr  { return addr }
func (conn) RemoteAddr() net.Addr { return addr }
