package serve

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"testing"
)

// Sockets stay open from one App to the next, and a connection that is made in between waits. If the addresses change, the old sockets
// are closed.
func TestSockets(t *testing.T) {
	var s Sockets
	address := []string{"127.0.0.1:0"}
	accept := func(l net.Listener) {
		t.Helper()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	first, err := s.open(address)
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 1)
	go func() { _, err := first[0].Accept(); waits <- err }()
	if err := first[0].Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("accept ends with %v", err)
	}
	c, err := net.Dial("tcp", first[0].Addr().String())
	if err != nil {
		t.Fatalf("between two gateways: %v", err)
	}
	reopened, err := s.open(address)
	if err != nil || reopened[0].Addr().String() != first[0].Addr().String() {
		t.Fatalf("%v, %v", reopened, err)
	}
	accept(reopened[0])
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the one that waited: %v", err)
	}
	_ = c.Close()
	other, err := s.open(slices.Concat(address, address))
	if err != nil || len(other) != 2 {
		t.Fatalf("%v, %v", other, err)
	}
	if c, err := net.Dial("tcp", first[0].Addr().String()); err == nil {
		t.Error("an address that is not configured any more is still open")
		_ = c.Close()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
