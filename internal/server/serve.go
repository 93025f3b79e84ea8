package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Serve serves the listeners until ctx ends, and closes them. Then it ends the streams, lets requests finish for a few seconds,
// and returns nil when every connection is closed. Call it once.
//
// The order of the shutdown matters: first the streams end, as they would otherwise use up the whole
// shutdownTimeout; then the http.Server waits for requests; then sockets, which it doesn't know after the
// upgrade. If one listener fails, all are stopped and its error is returned.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	hs := &http.Server{
		Handler: s, MaxHeaderBytes: MaxHeader, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		ErrorLog:  slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		Protocols: new(http.Protocols), ConnContext: withConn, ConnState: s.conns.state,
	}
	if s.opt.TLS != nil {
		hs.TLSConfig = s.opt.TLS.Clone()
	}
	hs.Protocols.SetHTTP1(true)
	hs.Protocols.SetHTTP2(true)
	hs.Protocols.SetUnencryptedHTTP2(true) // for proxies that multiplex
	if !s.TokenNeeded() {
		for _, l := range listeners {
			if !loopbackAddr(l.Addr()) {
				return errors.Join(fmt.Errorf("%w: %s", errOpen, l.Addr()), CloseListeners(listeners))
			}
		}
	}
	failed := make(chan error, len(listeners))
	var servers sync.WaitGroup
	for _, l := range listeners {
		limited := &limitListener{Listener: l, connections: s.conns}
		serve := func() error { return hs.Serve(limited) }
		if s.opt.TLS != nil && l.Addr().Network() != "unix" {
			limited.mute = true
			serve = func() error { return hs.ServeTLS(limited, "", "") }
		}
		servers.Go(func() {
			if err := serve(); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("server: serve %s: %w", l.Addr(), err)
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.Close()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if serr := hs.Shutdown(last); serr != nil {
		err = errors.Join(err, hs.Close())
	}
	servers.Wait()
	s.streams.open.Wait() // the http.Server does not wait for sockets
	return err
}

// CloseListeners closes all listeners, also after an error, and joins the errors.
func CloseListeners(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// limitListener refuses connections above the limit. They get a response, because a connection that waits in the kernel's queue
// looks like a gateway that hangs.
type limitListener struct {
	net.Listener
	connections *connections
	mute        bool        // the client expects TLS, so a plain response would be noise
	isExhausted atomic.Bool // the process is out of file descriptors, and this was logged
}

var fullAnswer = func() []byte {
	const body = `{"error":"too many connections","reason":"busy"}` + "\n"
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\n"+
		"Content-Type: application/json; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}()

// Accept returns the next connection that the limits allow. Others are answered with 503 and closed here, without a goroutine. If
// the process has no file descriptors left, that is logged once until a connection is accepted again.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			if (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && !l.isExhausted.Swap(true) {
				l.connections.log.Error("new connections wait: the process is out of file descriptors; raise its limit on open files", "error", err)
			}
			return nil, err // net/http retries shortly
		}
		l.isExhausted.Store(false)
		if c := l.connections.admit(nc); c != nil {
			if err := limitUnsent(nc); err != nil {
				l.connections.log.Debug("connection keeps the system's send buffer", "error", err) // works too, with more memory
			}
			return c, nil
		}
		// The response fits into the empty send buffer, so this does not block. Best effort: the client may be gone.
		if !l.mute {
			_ = nc.SetDeadline(time.Now().Add(time.Second))
			_, _ = nc.Write(fullAnswer)
		}
		_ = nc.Close()
	}
}
