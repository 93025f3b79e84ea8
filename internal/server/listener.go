package server

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// limitListener turns connections away that find no room. They get an answer, because one that waits unseen in the kernel's
// queue looks like a gateway that hangs.
type limitListener struct {
	net.Listener
	all  *connections
	mute bool        // the client expects TLS: an answer without it says nothing
	out  atomic.Bool // the process is out of files, and that is logged
}

var fullAnswer = func() []byte {
	const body = `{"error":"too many connections","reason":"busy"}` + "\n"
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\n"+
		"Content-Type: application/json; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}()

func (l *limitListener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			if (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && !l.out.Swap(true) {
				l.all.log.Error("connections wait: no more files can be opened; raise the limit on open files", "error", err)
			}
			return nil, err // net/http tries again in a moment
		}
		l.out.Store(false)
		if c := l.all.admit(nc); c != nil {
			if err := limitUnsent(nc); err != nil {
				l.all.log.Debug("connection keeps the system's send buffer", "error", err) // it works as well, with more memory
			}
			return c, nil
		}
		// It fits the empty send buffer, so this does not wait. The client may be gone: nobody to tell.
		if !l.mute {
			_ = nc.SetDeadline(time.Now().Add(time.Second))
			_, _ = nc.Write(fullAnswer)
		}
		_ = nc.Close()
	}
}
