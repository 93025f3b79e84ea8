package server_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// The kernel buffers only a little for a reader that stalls, because buffered bytes can't be merged with later events. The test
// uses real sockets, since it tests the kernel's behaviour.
func TestAStalledReaderHoldsLittleInTheKernel(t *testing.T) {
	const most = 128 << 10 // bytes; without the bound it is some megabytes
	taken := make(chan int, 1)
	s := server.New(server.Options{Stall: 200 * time.Millisecond})
	s.Handle(server.Route{Method: "GET", Pattern: "/stream", Access: server.Public, Stream: true, Handler: func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		st, err := s.OpenStream(w, r, 200, server.EventStream)
		n, piece := 0, make([]byte, 4<<10)
		for err == nil && n < 64<<20 {
			if err = st.Write(piece); err == nil {
				n += len(piece)
			}
		}
		taken <- n
		return nil
	}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var serr error
		if err := c.Control(func(fd uintptr) { serr = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) }); err != nil {
			return err
		}
		return serr
	}}
	c, err := d.DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil); err != nil {
		t.Fatal(err)
	}
	if n := <-taken; n > most {
		t.Errorf("the kernel took %d bytes for a reader that reads nothing; want at most %d", n, most)
	} else {
		t.Logf("the kernel took %d bytes", n)
	}
	_ = c.Close()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
