package server

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

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
