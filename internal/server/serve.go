package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
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
				return errors.Join(fmt.Errorf("%w: %s", errOpen, l.Addr()), closeAll(listeners))
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

// closeAll closes the listeners of a server that refuses to serve them.
func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
