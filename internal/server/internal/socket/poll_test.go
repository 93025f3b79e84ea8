//go:build linux && !goroutines

package socket_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/server/internal/netpoll"
	"github.com/leat-dev/leat/internal/server/internal/outgoing"
	"github.com/leat-dev/leat/internal/server/internal/socket"
)

// polled is a server whose connections have no goroutines. It echoes messages.
type polled struct {
	t        *testing.T
	network  string
	address  string
	stall    time.Duration
	first    func(*socket.Conn) error
	ready    func()
	conns    chan *socket.Conn
	causes   chan error // of the connections that have ended
	detached atomic.Int64
	poller   netpoll.Poller
}

// start starts the server on the network "tcp" or "unix".
func (p *polled) start(t *testing.T, network string) {
	p.t, p.network, p.conns, p.causes = t, network, make(chan *socket.Conn, 1000), make(chan error, 1000)
	if p.stall == 0 {
		p.stall = stall
	}
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	p.address = l.Addr().String()
	hs := &http.Server{Handler: http.HandlerFunc(p.serve)}
	go func() { _ = hs.Serve(l) }()
	t.Cleanup(func() {
		_ = hs.Close()
		deadline := time.Now().Add(5 * time.Second)
		for p.detached.Load() != 0 {
			if time.Now().After(deadline) {
				t.Fatalf("%d connections have not ended", p.detached.Load())
			}
			time.Sleep(time.Millisecond)
		}
	})
}

func (p *polled) serve(w http.ResponseWriter, r *http.Request) {
	conn, ok := socket.Accept(w, r, socket.Options{
		Stall: p.stall, ReadLimit: 200_000, Poller: &p.poller,
		Detach: func(func(error)) func() {
			p.detached.Add(1)
			return func() { p.detached.Add(-1) }
		},
	})
	if !ok || !conn.CanTry() {
		p.t.Error("the handshake failed, or the connection is not polled")
		return
	}
	p.conns <- conn
	conn.Serve(&handler{
		ready: p.ready,
		begin: func() error {
			if p.first == nil {
				return nil
			}
			return p.first(conn)
		},
		frame: func(b []byte, err error) error {
			if errors.Is(err, socket.ErrBinary) {
				return conn.Write([]byte("binary"))
			}
			return conn.Write(b)
		},
		end: func(cause error) { p.causes <- cause },
	})
}

// raw connects without a library.
func (p *polled) raw() *client {
	p.t.Helper()
	conn, err := net.Dial(p.network, p.address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write([]byte(handshake)); err != nil {
		p.t.Fatal(err)
	}
	c := &client{Conn: conn, Reader: bufio.NewReader(conn), cause: p.causes}
	if _, err := http.ReadResponse(c.Reader, nil); err != nil {
		p.t.Fatal(err)
	}
	return c
}

// dial connects with a library.
func (p *polled) dial() *websocket.Conn {
	p.t.Helper()
	hc := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial(p.network, p.address) }}}
	conn, _, err := websocket.Dial(p.t.Context(), "http://localhost/", &websocket.DialOptions{HTTPClient: hc})
	if err != nil {
		p.t.Fatal(err)
	}
	conn.SetReadLimit(1 << 20)
	p.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

func TestPolledExchanges(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			var p polled
			p.start(t, network)
			var tasks sync.WaitGroup // the server waits for the end of clients that break the protocol
			for name, test := range exchanges() {
				for _, chunk := range []int{1, 7, len(test.in)} {
					if chunk < 10 && len(test.in) > 10_000 {
						continue // it takes long
					}
					c := p.raw()
					tasks.Go(func() { test.run(t, c, fmt.Sprintf("%s by %d", name, chunk), chunk) })
				}
			}
			tasks.Wait()
		})
	}
}

// Idle connections have no goroutines. They answer messages and pings, and end with their clients.
func TestIdle(t *testing.T) {
	const n = 200
	var p polled
	p.start(t, "tcp")
	before := runtime.NumGoroutine()
	var clients []*client
	for range n {
		clients = append(clients, p.raw())
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before+5; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines for %d connections", runtime.NumGoroutine()-before, n)
		}
	}
	for i, c := range clients {
		text := strings.Repeat("x", i*50)
		if _, err := c.Write(append(clientFrame(0x89, "ping"), clientFrame(0x81, text)...)); err != nil {
			t.Fatal(err)
		}
		want := serverFrame(0x8A, "ping") + serverFrame(0x81, text)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
			t.Fatalf("connection %d: %.100q, %v", i, got, err)
		}
	}
	for i, c := range clients {
		switch i % 3 {
		case 0:
			_ = c.Close()
		case 1:
			_ = c.Conn.(*net.TCPConn).SetLinger(0) // a reset
			_ = c.Close()
		case 2: // bytes and the end at once
			_, _ = c.Write(clientFrame(0x81, "x"))
			_ = c.Conn.(*net.TCPConn).CloseWrite()
		}
	}
	for range n {
		if cause := <-p.causes; !errors.Is(cause, socket.ErrDisconnected) {
			t.Error(cause)
		}
	}
}

// A library's messages of any size come back, also while others are written.
func TestPolledEcho(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			var p polled
			p.first = func(c *socket.Conn) error {
				b, err := c.ReadFirst(time.Minute, errEnd)
				if err == nil {
					err = c.Write(b)
				}
				return err
			}
			p.start(t, network)
			var tasks sync.WaitGroup
			for range 8 {
				conn := p.dial()
				tasks.Go(func() {
					var sent [][]byte
					for range 100 {
						size := rand.IntN(100)
						if rand.IntN(10) == 0 {
							size = rand.IntN(150_000)
						}
						sent = append(sent, bytes.Repeat([]byte{byte('a' + rand.IntN(26))}, size))
					}
					var writer sync.WaitGroup
					writer.Go(func() {
						for i, b := range sent {
							if i%5 == 4 {
								if err := conn.Ping(t.Context()); err != nil {
									t.Error(err)
								}
							}
							w, err := conn.Writer(t.Context(), websocket.MessageText)
							if err != nil {
								t.Error(err)
								return
							}
							// A frame for each piece.
							_, first := w.Write(b[:len(b)/2])
							_, second := w.Write(b[len(b)/2:])
							if err := errors.Join(first, second, w.Close()); err != nil {
								t.Error(err)
							}
						}
					})
					for i := range sent {
						if _, got, err := conn.Read(t.Context()); err != nil || !bytes.Equal(got, sent[i]) {
							t.Errorf("message %d: %d bytes of %d, %v", i, len(got), len(sent[i]), err)
							return
						}
					}
					writer.Wait()
					if err := conn.Close(websocket.StatusNormalClosure, "done"); err != nil {
						t.Error(err)
					}
				})
			}
			tasks.Wait()
		})
	}
}

// A connection that is ended while nothing reads it says goodbye.
func TestPolledFarewell(t *testing.T) {
	for name, end := range map[string]func(p *polled, c *socket.Conn){
		"idle":         func(_ *polled, c *socket.Conn) { c.End(errEnd) },
		"First failed": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var p polled
			if end == nil {
				p.first = func(*socket.Conn) error { return errEnd }
			}
			p.start(t, "tcp")
			conn := p.dial()
			if end != nil {
				end(&p, <-p.conns)
			}
			s := &served{Conn: conn, t: t}
			if frames, status, reason := s.readAll(); len(frames) != 1 || frames[0] != "bye" || status != websocket.StatusServiceRestart || reason != "restarting" {
				t.Errorf("%q, %d %q", frames, status, reason)
			}
			if cause := <-p.causes; !errors.Is(cause, errEnd) {
				t.Error(cause)
			}
		})
	}
}

// A client that accepts no bytes is cut, whoever writes. One that answers no pings is disconnected.
func TestPolledStall(t *testing.T) {
	for name, write := range map[string]func(*socket.Conn) error{
		"write": func(c *socket.Conn) error {
			var err error
			for err == nil {
				err = c.Write(make([]byte, 100_000))
			}
			return nil
		},
		"try": func(c *socket.Conn) error {
			for state, err := outgoing.Complete, error(nil); err == nil && state == outgoing.Complete; {
				state, err = c.TryWrite(socket.AppendText(nil, make([]byte, 100_000)))
			}
			return nil
		},
		"ping": func(c *socket.Conn) error { c.Heartbeat(socket.NewWheel(16*time.Millisecond, nil)); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := polled{stall: 100 * time.Millisecond}
			p.first = write
			p.start(t, "tcp")
			p.raw()
			if cause := <-p.causes; !errors.Is(cause, socket.ErrDisconnected) {
				t.Error(cause)
			}
		})
	}
}

// Frames of TryWrite, messages of Write, and heartbeats reach a client whole.
func TestTryWrite(t *testing.T) {
	const frames = 300
	ready := make(chan struct{}, 1)
	var p polled
	p.ready = func() {
		select {
		case ready <- struct{}{}:
		default: // heartbeats are tried too, so it is called more often than TryWrite was refused here
		}
	}
	p.first = func(c *socket.Conn) error {
		c.Heartbeat(socket.NewWheel(time.Millisecond, []byte("beat")))
		return nil
	}
	p.start(t, "tcp")
	conn := p.dial()
	c := <-p.conns
	size := func(i int) int { return 1 + i*517%60_000 }
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := 0; i < frames; {
			state, err := c.TryWrite(socket.AppendText(nil, bytes.Repeat([]byte("t"), size(i))))
			if err != nil {
				t.Error(err)
				return
			}
			if state != outgoing.Busy {
				i++
			}
			if state != outgoing.Complete {
				<-ready
			}
		}
	})
	writers.Go(func() {
		for i := range frames {
			if err := c.Write(bytes.Repeat([]byte("w"), size(i))); err != nil {
				t.Error(err)
				return
			}
		}
	})
	tried, written, beats := 0, 0, 0
	for tried < frames || written < frames || beats == 0 {
		_, b, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case string(b) == "beat":
			beats++
		case tried < frames && bytes.Equal(b, bytes.Repeat([]byte("t"), size(tried))):
			tried++
		case written < frames && bytes.Equal(b, bytes.Repeat([]byte("w"), size(written))):
			written++
		default:
			t.Fatalf("after %d and %d: %d bytes, %.10q", tried, written, len(b), b)
		}
	}
	writers.Wait()
	c.End(errEnd)
	if _, err := c.TryWrite(socket.AppendText(nil, []byte("late"))); !errors.Is(err, socket.ErrDisconnected) {
		t.Error(err)
	}
}
