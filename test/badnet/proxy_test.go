package badnet

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a server that sends the same bytes to every client.
func source(t *testing.T, b []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(b) // the proxy may interrupt it
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// fetch reads through the proxy until the end, and returns the bytes and the error.
func fetch(t *testing.T, p *proxy) ([]byte, error) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		return nil, err // a reset can come that early
	}
	defer c.Close()
	return io.ReadAll(c)
}

// TestFaults checks that each interrupted connection delivers a prefix of the bytes, and connections after the last fault all of them.
func TestFaults(t *testing.T) {
	sent := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	run := func(seed uint64) (lengths []int, resets int) {
		p, err := Listen(source(t, sent), Faults{Seed: seed, Total: 20, MeanBytes: 8 << 10, Stall: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for p.Cuts() < 20 {
			got, err := fetch(t, p)
			if !bytes.HasPrefix(sent, got) || len(got) == len(sent) {
				t.Fatalf("received %d bytes, not a proper prefix of those sent", len(got))
			}
			if errors.Is(err, syscall.ECONNRESET) {
				resets++ // a reset discards the bytes in the kernel's buffers
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			lengths = append(lengths, len(got))
		}
		if got, err := fetch(t, p); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("after the last fault: received %d bytes, error %v", len(got), err)
		}
		return lengths, resets
	}
	first, resets := run(7)
	if resets == 0 || len(first) < 5 {
		t.Errorf("%d resets, %d others: one kind of fault is missing", resets, len(first))
	}
	distinct := map[int]bool{}
	for _, n := range first {
		distinct[n] = true
	}
	if len(distinct) < len(first)/2 {
		t.Errorf("connections were interrupted after %v bytes, which isn't random", first)
	}
}

// TestMend checks that Mend ends an unlimited number of faults.
func TestMend(t *testing.T) {
	sent := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	p, err := Listen(source(t, sent), Faults{Seed: 1, Total: -1, MeanBytes: 8 << 10, Stall: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 20 {
		if got, _ := fetch(t, p); len(got) == len(sent) {
			t.Fatal("a connection wasn't interrupted")
		}
	}
	p.Mend()
	if got, err := fetch(t, p); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("after Mend: received %d bytes, error %v", len(got), err)
	}
}

func TestTargetAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	p, err := Listen(addr, Faults{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fetch(t, p); len(got) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%q, %v", got, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestClose checks that Close ends all connections, stalled ones too.
func TestClose(t *testing.T) {
	p, err := Listen(source(t, make([]byte, 1<<20)), Faults{Seed: 1, Total: -1, MeanBytes: 100, Stall: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	for range 10 {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			continue // a reset can come that early
		}
		conns = append(conns, c)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for _, c := range conns {
		if _, err := io.ReadAll(c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
		c.Close()
	}
}
