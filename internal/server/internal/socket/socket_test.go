package socket_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/server/internal/socket"
	"github.com/leat-dev/leat/internal/server/servertest"
)

const stall = time.Minute

var errEnd = errors.New("the end of a test")

// endings gives errEnd a farewell, and every other cause none.
func endings(cause error) socket.Farewell {
	if errors.Is(cause, errEnd) {
		return socket.Farewell{Frame: []byte("bye"), Code: websocket.StatusServiceRestart, Reason: "restarting"}
	}
	return socket.Farewell{}
}

// faultyListener makes the server's writes fail after the handshake once broken is set.
type faultyListener struct {
	net.Listener
	broken atomic.Bool
}

func (l *faultyListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return faultyConn{c, l}, err
}

type faultyConn struct {
	net.Conn
	listener *faultyListener
}

func (c faultyConn) Write(b []byte) (int, error) {
	if c.listener.broken.Load() {
		return 0, errors.New("injected fault")
	}
	return c.Conn.Write(b)
}

// served is one connection of a test, from both sides.
type served struct {
	*websocket.Conn // the client

	t        *testing.T
	server   *socket.Conn
	cause    chan error // of Serve
	pings    atomic.Int64
	listener *faultyListener
}

// serve runs test with a connection whose server runs loop, in a bubble with virtual time. Every goroutine of the connection must
// have ended after test.
func serve(t *testing.T, loop func(*socket.Conn) error, test func(*served)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := servertest.Listen()
		s := &served{t: t, cause: make(chan error, 1), listener: &faultyListener{Listener: network}}
		accepted := make(chan *socket.Conn, 1)
		hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, ok := socket.Accept(w, r, socket.Options{Stall: stall, ReadLimit: 100, Farewell: endings})
			if !ok {
				t.Error("the handshake failed")
				return
			}
			accepted <- conn
			s.cause <- conn.Serve(func() error { return loop(conn) })
		})}
		go func() { _ = hs.Serve(s.listener) }()
		hc := network.Client()
		conn, _, err := websocket.Dial(t.Context(), "http://localhost/", &websocket.DialOptions{
			HTTPClient: hc, OnPingReceived: func(context.Context, []byte) bool { s.pings.Add(1); return true },
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Conn, s.server = conn, <-accepted
		test(s)
		_ = conn.CloseNow()
		hc.CloseIdleConnections()
		_ = hs.Close()
	})
}

// readLoop reads until the connection ends.
func readLoop(c *socket.Conn) error {
	for {
		if _, err := c.Read(); err != nil && !errors.Is(err, socket.ErrBinary) {
			return err
		}
	}
}

// readAll returns the frames up to the end of the connection, and its close code and reason.
func (s *served) readAll() (frames []string, status websocket.StatusCode, reason string) {
	for {
		_, b, err := s.Read(context.Background())
		if err != nil {
			var end websocket.CloseError
			if errors.As(err, &end) {
				return frames, end.Code, end.Reason
			}
			return frames, -1, ""
		}
		frames = append(frames, string(b))
	}
}

func (s *served) wantCause(want error) {
	s.t.Helper()
	if cause := <-s.cause; !errors.Is(cause, want) {
		s.t.Errorf("the cause is %v, want %v", cause, want)
	}
}

// For any cause of an end, the client gets the last frame, the close code and the reason, and Serve returns the cause.
func TestFarewell(t *testing.T) {
	deadline := func(c *socket.Conn) error {
		c.EndAt(time.Now().Add(time.Second), errors.New("replaced"))
		c.EndAt(time.Now().Add(time.Minute), errEnd)
		return readLoop(c)
	}
	for name, test := range map[string]struct {
		loop  func(*socket.Conn) error
		end   func(*socket.Conn)
		after time.Duration
	}{
		"End":          {loop: readLoop, end: func(c *socket.Conn) { c.End(errEnd); c.End(errors.New("second")) }},
		"EndAt":        {loop: deadline, after: time.Minute},
		"loop returns": {loop: func(*socket.Conn) error { return errEnd }},
		"late first frame": {loop: func(c *socket.Conn) error {
			_, err := c.ReadFirst(10*time.Second, errEnd)
			return err
		}, after: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, test.loop, func(s *served) {
				start := time.Now()
				if test.end != nil {
					test.end(s.server)
				}
				frames, status, reason := s.readAll()
				if !slices.Equal(frames, []string{"bye"}) || status != websocket.StatusServiceRestart || reason != "restarting" {
					t.Errorf("the client got %q, %d %q", frames, status, reason)
				}
				if took := time.Since(start); took != test.after {
					t.Errorf("the end came after %v, want %v", took, test.after)
				}
				s.wantCause(errEnd)
			})
		})
	}
}

// A first frame in time cancels the limit; EndAt with the zero time cancels a deadline.
func TestDeadlinesCancelled(t *testing.T) {
	first := func(c *socket.Conn) error {
		if _, err := c.ReadFirst(time.Second, errEnd); err != nil {
			return err
		}
		c.EndAt(time.Now().Add(time.Second), errEnd)
		c.EndAt(time.Time{}, errEnd)
		return readLoop(c)
	}
	serve(t, first, func(s *served) {
		if err := s.Write(s.t.Context(), websocket.MessageText, []byte("first")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if s.server.Context().Err() != nil {
			t.Error("a cancelled deadline ended the connection")
		}
		_ = s.CloseNow()
		s.wantCause(socket.ErrDisconnected)
	})
}

// A client that accepts no bytes is cut after Stall, and no goroutine outlives it.
func TestStall(t *testing.T) {
	serve(t, readLoop, func(s *served) {
		start := time.Now()
		if err := s.server.Write([]byte("unread")); !errors.Is(err, socket.ErrDisconnected) {
			t.Errorf("the write returned %v", err)
		}
		s.wantCause(socket.ErrDisconnected)
		if took := time.Since(start); took != stall {
			t.Errorf("cut after %v, want %v", took, stall)
		}
	})
}

// A farewell waits a bounded time for a client that accepts no bytes.
func TestFarewellStalled(t *testing.T) {
	serve(t, readLoop, func(s *served) {
		written := make(chan error, 1)
		go func() { written <- s.server.Write([]byte("unread")) }()
		synctest.Wait()
		start := time.Now()
		s.server.End(errEnd)
		s.wantCause(errEnd)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("cut after %v, want 2 s", took)
		}
		if err := <-written; !errors.Is(err, socket.ErrDisconnected) {
			t.Errorf("the write returned %v", err)
		}
		if err := s.server.Write(nil); !errors.Is(err, socket.ErrDisconnected) {
			t.Errorf("a write after the end returned %v", err)
		}
	})
}

// A connection whose writes fail ends, whichever goroutine meets the fault.
func TestWriteFault(t *testing.T) {
	for name, write := range map[string]func(*socket.Conn) error{
		"write":     func(c *socket.Conn) error { return c.Write([]byte("x")) },
		"heartbeat": func(c *socket.Conn) error { c.Heartbeat(time.Second, []byte("x")); return nil },
		"ping":      func(c *socket.Conn) error { c.Ping(time.Second); return nil },
		"farewell":  func(c *socket.Conn) error { c.End(errEnd); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, readLoop, func(s *served) {
				s.listener.broken.Store(true)
				if err := write(s.server); err != nil && !errors.Is(err, socket.ErrDisconnected) {
					t.Error(err)
				}
				_, status, _ := s.readAll()
				if cause := <-s.cause; status != -1 || !errors.Is(cause, socket.ErrDisconnected) && !errors.Is(cause, errEnd) {
					t.Errorf("closed with %d, cause %v", status, cause)
				}
			})
		})
	}
}

// Heartbeats count from the last write.
func TestHeartbeat(t *testing.T) {
	serve(t, readLoop, func(s *served) {
		start := time.Now()
		s.server.Heartbeat(15*time.Second, []byte("beat"))
		go func() {
			time.Sleep(20 * time.Second)
			_ = s.server.Write([]byte("data"))
		}()
		for _, want := range []struct {
			frame string
			after time.Duration
		}{{"beat", 15}, {"data", 20}, {"beat", 35}, {"beat", 50}} {
			_, b, err := s.Read(s.t.Context())
			if took := time.Since(start); err != nil || string(b) != want.frame || took != want.after*time.Second {
				t.Errorf("%q after %v (%v), want %q after %d s", b, took, err, want.frame, want.after)
			}
		}
	})
}

// A client that answers pings stays; one that doesn't is disconnected. A blocked write suppresses pings, because the
// stall limit decides then.
func TestPing(t *testing.T) {
	t.Run("answered", func(t *testing.T) {
		serve(t, readLoop, func(s *served) {
			s.server.Ping(20 * time.Second)
			ctx, cancel := context.WithTimeout(s.t.Context(), 90*time.Second)
			defer cancel()
			_, _, _ = s.Read(ctx)
			if pings := s.pings.Load(); pings != 4 {
				t.Errorf("%d pings in 90 s", pings)
			}
		})
	})
	t.Run("not answered", func(t *testing.T) {
		serve(t, readLoop, func(s *served) {
			start := time.Now()
			s.server.Ping(20 * time.Second)
			s.wantCause(socket.ErrDisconnected)
			if took := time.Since(start); took < 20*time.Second || took > 20*time.Second+stall {
				t.Errorf("disconnected after %v", took)
			}
		})
	})
	t.Run("blocked write", func(t *testing.T) {
		serve(t, readLoop, func(s *served) {
			start := time.Now()
			s.server.Ping(20 * time.Second)
			_ = s.server.Write([]byte("unread"))
			s.wantCause(socket.ErrDisconnected)
			if took := time.Since(start); took != stall {
				t.Errorf("disconnected after %v, want %v", took, stall)
			}
		})
	})
}

// A frame above the read limit closes with 1009. A binary frame is an error too, but the connection stays usable.
func TestReadLimits(t *testing.T) {
	errs := make(chan error, 3)
	loop := func(c *socket.Conn) error {
		for {
			_, err := c.Read()
			errs <- err
			if err != nil && !errors.Is(err, socket.ErrBinary) {
				return err
			}
			c.SetReadLimit(1000)
		}
	}
	serve(t, loop, func(s *served) {
		for _, frame := range []struct {
			kind websocket.MessageType
			size int
			want error
		}{{websocket.MessageBinary, 100, socket.ErrBinary}, {websocket.MessageText, 1000, nil}, {websocket.MessageText, 1001, socket.ErrDisconnected}} {
			go func() { _ = s.Write(s.t.Context(), frame.kind, []byte(strings.Repeat("x", frame.size))) }()
			if frame.want == socket.ErrDisconnected {
				if _, status, _ := s.readAll(); status != websocket.StatusMessageTooBig {
					t.Errorf("%d bytes: closed with %d", frame.size, status)
				}
			}
			if err := <-errs; !errors.Is(err, frame.want) {
				t.Errorf("%d bytes: %v, want %v", frame.size, err, frame.want)
			}
		}
		s.wantCause(socket.ErrDisconnected)
	})
}

// An invalid handshake is answered, and Accept returns false.
func TestAcceptRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := servertest.Listen()
		hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, ok := socket.Accept(w, r, socket.Options{Stall: stall, ReadLimit: 1, Farewell: endings}); ok {
				t.Error("a plain request was accepted")
			}
		})}
		go func() { _ = hs.Serve(network) }()
		hc := network.Client()
		res, err := hc.Get("http://localhost/")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUpgradeRequired {
			t.Error(res.Status)
		}
		hc.CloseIdleConnections()
		_ = hs.Close()
	})
}
