//go:build linux && !goroutines

package netpoll_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/internal/server/internal/netpoll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair returns the two ends of a connection.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
	return client, server
}

func add(t *testing.T, p *netpoll.Poller, c net.Conn, want netpoll.Events) (*netpoll.Handle, chan netpoll.Events) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan netpoll.Events, 100)
	h := &netpoll.Handle{}
	if err := p.Add(h, raw, want, handler(func(e netpoll.Events) { events <- e })); err != nil {
		t.Fatal(err)
	}
	return h, events
}

type handler func(netpoll.Events)

func (h handler) OnEvents(e netpoll.Events) { h(e) }

// wait returns when an event of the set was reported.
func wait(t *testing.T, events chan netpoll.Events, want netpoll.Events) {
	t.Helper()
	for {
		select {
		case e := <-events:
			if e&want != 0 {
				return
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("no event of %b", want)
		}
	}
}

func TestEvents(t *testing.T) {
	p := &netpoll.Poller{}
	client, server := pair(t)
	h, events := add(t, p, server, netpoll.Readable)
	defer h.Close()
	for range 3 {
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		wait(t, events, netpoll.Readable)
		if n, err := server.Read(make([]byte, 10)); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := h.Want(netpoll.Writable); err != nil {
		t.Fatal(err)
	}
	wait(t, events, netpoll.Writable)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	wait(t, events, netpoll.Closed)
}

// After Close nothing is reported, and a new connection with the same file number gets its own events only.
func TestClose(t *testing.T) {
	p := &netpoll.Poller{}
	for range 100 {
		client, server := pair(t)
		h, events := add(t, p, server, netpoll.Readable)
		h.Close()
		h.Close()
		if err := h.Want(netpoll.Writable); err != nil {
			t.Error(err)
		}
		_ = server.Close()
		_ = client.Close()
		client, server = pair(t)
		h2, events2 := add(t, p, server, netpoll.Readable)
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		wait(t, events2, netpoll.Readable)
		h2.Close()
		h2.Close()
		if len(events) > 0 {
			t.Error("an event after Close")
		}
	}
}

// An event that happened before the registration is reported.
func TestEarlier(t *testing.T) {
	p := &netpoll.Poller{}
	client, server := pair(t)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	h, events := add(t, p, server, 0)
	defer h.Close()
	wait(t, events, netpoll.Closed)
}

func TestTryRead(t *testing.T) {
	client, server := pair(t)
	var p netpoll.Poller
	h, events := add(t, &p, server, netpoll.Readable)
	defer h.Close()
	b := make([]byte, 2)
	if _, err := h.TryRead(b); !errors.Is(err, netpoll.ErrBlocked) {
		t.Error(err)
	}
	if _, err := client.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	wait(t, events, netpoll.Readable)
	for _, want := range []string{"ab", "c"} {
		if n, err := h.TryRead(b); err != nil || string(b[:n]) != want {
			t.Errorf("%q, %v", b[:n], err)
		}
	}
	_ = client.Close()
	wait(t, events, netpoll.Closed)
	if _, err := h.TryRead(b); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	h.Close()
	_ = server.Close()
	if _, err := h.TryRead(b); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// A connection that is closed before its handle leaves nothing behind, also if its file number is used again: no goroutine is left at the
// end of the tests.
func TestClosedBeforeHandle(t *testing.T) {
	p := &netpoll.Poller{}
	_, server := pair(t)
	_, other := pair(t)
	h, _ := add(t, p, server, netpoll.Readable)
	_ = server.Close()
	f, err := other.(*net.TCPConn).File() // it gets the number that has become free
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var h2 netpoll.Handle
	if err := p.Add(&h2, raw, netpoll.Readable, handler(func(netpoll.Events) {})); err != nil {
		t.Fatal(err)
	}
	h.Close()
	h2.Close()
}
