//go:build !goroutines

package outgoing_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/server/internal/netpoll"
	"github.com/leat-dev/leat/internal/server/internal/outgoing"
)

type socketOwner struct {
	t            *testing.T
	ready, ended chan struct{}
}

func (o socketOwner) OnEvents(e netpoll.Events) {
	if e&netpoll.Closed != 0 {
		o.ended <- struct{}{}
	}
}

func (o socketOwner) OnReady() { o.ready <- struct{}{} }

func (o socketOwner) OnFailed(err error) { o.t.Error(err) }

// Frames arrive whole over real connections whose reader is slow, and the end of the client is reported.
func TestSockets(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
		t.Run(network, func(t *testing.T) {
			l, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			client, err := net.Dial(network, l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			server, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if err := server.(interface{ SetWriteBuffer(int) error }).SetWriteBuffer(16 << 10); err != nil {
				t.Fatal(err)
			}
			var poller netpoll.Poller
			ready, ended := make(chan struct{}, 1), make(chan struct{}, 100)
			c, err := outgoing.New(outgoing.Config{
				Conn: server, Poller: &poller, Stall: time.Minute, Owner: socketOwner{t, ready, ended},
			})
			if err != nil {
				t.Fatal(err)
			}
			frame := bytes.Repeat([]byte("0123456789"), 10_000)
			got := make(chan []byte, 1)
			go func() {
				var all []byte
				b := make([]byte, 256<<10)
				for len(all) < 21*len(frame) {
					time.Sleep(time.Millisecond)
					n, err := client.Read(b)
					all = append(all, b[:n]...)
					if err != nil {
						break
					}
				}
				got <- all
			}()
			waits := 0
			for i := 0; i < 20; {
				state, err := c.TryWrite(frame)
				if err != nil {
					t.Fatal(err)
				}
				if state != outgoing.Busy {
					i++
				}
				if state != outgoing.Complete {
					waits++
					<-ready
				}
			}
			if err := c.Write(frame); err != nil {
				t.Fatal(err)
			}
			if all := <-got; !bytes.Equal(all, bytes.Repeat(frame, 21)) || waits == 0 {
				t.Errorf("%d bytes after %d waits", len(all), waits)
			}
			_ = client.Close()
			<-ended
			c.Close()
			if err := c.Write(frame); err == nil {
				t.Error(err)
			}
			if _, err := server.Write(nil); !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
				t.Error(err)
			}
		})
	}
	if _, err := outgoing.New(outgoing.Config{Conn: &net.IPConn{}, Poller: new(netpoll.Poller)}); err == nil {
		t.Error("a connection without a descriptor was registered")
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := outgoing.New(outgoing.Config{Conn: a, Poller: new(netpoll.Poller)}); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}
