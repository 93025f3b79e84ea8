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
	"time"
)

// Serve answers the connections of listeners until ctx ends, and closes the listeners. Then it tells the streams to end,
// lets requests finish for a few seconds, and returns nil when every connection is closed. It is called once.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	hs := &http.Server{
		Handler: s, MaxHeaderBytes: MaxHeader, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		ErrorLog:  slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		Protocols: new(http.Protocols),
	}
	if s.opt.TLS != nil {
		hs.TLSConfig = s.opt.TLS.Clone()
	}
	hs.Protocols.SetHTTP1(true)
	hs.Protocols.SetHTTP2(true)
	hs.Protocols.SetUnencryptedHTTP2(true) // for a proxy in front that multiplexes
	if !s.TokenNeeded() {
		for _, l := range listeners {
			if !loopbackAddr(l.Addr()) {
				return errors.Join(fmt.Errorf("%w: %s", ErrOpen, l.Addr()), closeAll(listeners))
			}
		}
	}
	var open atomic.Int64
	failed := make(chan error, len(listeners))
	var serving sync.WaitGroup
	for _, l := range listeners {
		limited := &limitListener{Listener: l, open: &open, max: int64(s.opt.MaxConnections), log: s.log, metrics: s.opt.Metrics}
		serve := func() error { return hs.Serve(limited) }
		if s.opt.TLS != nil && l.Addr().Network() != "unix" {
			limited.mute = true
			serve = func() error { return hs.ServeTLS(limited, "", "") }
		}
		serving.Go(func() {
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
	serving.Wait()
	s.open.Wait() // sockets are not the http.Server's any more
	return err
}

func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// limitListener turns connections away above a bound. They get an answer, because one that waits unseen in the kernel's
// queue looks like a gateway that hangs.
type limitListener struct {
	net.Listener
	open *atomic.Int64
	max  int64
	log  *slog.Logger
	mute bool // the client expects TLS: an answer without it says nothing

	metrics *Metrics
}

var fullAnswer = func() []byte {
	const body = `{"error":"too many connections","reason":"busy"}` + "\n"
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\n"+
		"Content-Type: application/json; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}()

func (l *limitListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.max {
			if err := limitUnsent(c); err != nil {
				l.log.Debug("connection keeps the system's send buffer", "err", err) // it works as well, with more memory
			}
			l.metrics.connections.Inc()
			return &limitedConn{Conn: c, l: l}, nil
		}
		l.open.Add(-1)
		l.metrics.refused.WithLabelValues("full").Inc()
		l.log.Warn("connection refused: too many are open", "max", l.max, "remote", c.RemoteAddr().String())
		// It fits the empty send buffer, so this does not wait. The client may be gone: nobody to tell.
		if !l.mute {
			_ = c.SetDeadline(time.Now().Add(time.Second))
			_, _ = c.Write(fullAnswer)
		}
		_ = c.Close()
	}
}

type limitedConn struct {
	net.Conn
	l    *limitListener
	once sync.Once
}

func (c *limitedConn) Close() error {
	c.once.Do(func() {
		c.l.open.Add(-1)
		c.l.metrics.connections.Dec()
	})
	return c.Conn.Close()
}
