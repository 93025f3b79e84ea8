package socket_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
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

// handler calls its functions. Ready is called only if it is set.
type handler struct {
	begin func() error
	frame func([]byte, error) error
	ready func()
	end   func(cause error)
}

func (h *handler) Begin() error { return h.begin() }

func (h *handler) Frame(b []byte, err error) error { return h.frame(b, err) }

func (h *handler) Ready() {
	if h.ready != nil {
		h.ready()
	}
}

// Farewell gives errEnd a farewell, and every other cause none.
func (h *handler) Farewell(cause error) socket.Farewell {
	if errors.Is(cause, errEnd) {
		return socket.Farewell{Frame: []byte("bye"), Code: websocket.StatusServiceRestart, Reason: "restarting"}
	}
	return socket.Farewell{}
}

func (h *handler) End(cause error) { h.end(cause) }

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

// serve runs test with a connection in a bubble with virtual time. The server runs first, and ignores the client's messages if frame is
// nil. Every goroutine of the connection must have ended after test.
func serve(t *testing.T, first func(*socket.Conn) error, frame func(*socket.Conn, []byte, error) error, test func(*served)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { serveHere(t, first, frame, test) })
}

// serveHere is serve in the bubble of the caller.
func serveHere(t *testing.T, first func(*socket.Conn) error, frame func(*socket.Conn, []byte, error) error, test func(*served)) {
	t.Helper()
	network := servertest.Listen()
	s := &served{t: t, cause: make(chan error, 1), listener: &faultyListener{Listener: network}}
	accepted := make(chan *socket.Conn, 1)
	hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, ok := socket.Accept(w, r, socket.Options{Stall: stall, ReadLimit: 100})
		if !ok {
			t.Error("the handshake failed")
			return
		}
		accepted <- conn
		conn.Serve(&handler{
			begin: func() error {
				if first == nil {
					return nil
				}
				return first(conn)
			},
			frame: func(b []byte, err error) error {
				if frame == nil {
					return nil
				}
				return frame(conn, b, err)
			},
			end: func(cause error) { s.cause <- cause },
		})
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
		return nil
	}
	for name, test := range map[string]struct {
		first func(*socket.Conn) error
		end   func(*socket.Conn)
		after time.Duration
	}{
		"End":         {end: func(c *socket.Conn) { c.End(errEnd); c.End(errors.New("second")) }},
		"EndAt":       {first: deadline, after: time.Minute},
		"First fails": {first: func(*socket.Conn) error { return errEnd }},
		"late first frame": {first: func(c *socket.Conn) error {
			_, err := c.ReadFirst(10*time.Second, errEnd)
			return err
		}, after: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, test.first, nil, func(s *served) {
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
		return nil
	}
	serve(t, first, nil, func(s *served) {
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
	serve(t, nil, nil, func(s *served) {
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
	serve(t, nil, nil, func(s *served) {
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
		"heartbeat": func(c *socket.Conn) error { c.Heartbeat(socket.NewWheel(time.Second, []byte("x"))); return nil },
		"ping":      func(c *socket.Conn) error { c.Heartbeat(socket.NewWheel(time.Second, nil)); return nil },
		"farewell":  func(c *socket.Conn) error { c.End(errEnd); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			broken := make(chan struct{})
			first := func(c *socket.Conn) error {
				<-broken
				return write(c)
			}
			serve(t, first, nil, func(s *served) {
				s.listener.broken.Store(true)
				close(broken)
				_, status, _ := s.readAll()
				if cause := <-s.cause; status != -1 || !errors.Is(cause, socket.ErrDisconnected) && !errors.Is(cause, errEnd) {
					t.Errorf("closed with %d, cause %v", status, cause)
				}
			})
		})
	}
}

// Heartbeats count from the last write. They may be early by a sixteenth of the interval.
func TestHeartbeat(t *testing.T) {
	const interval = 16 * time.Second
	first := func(c *socket.Conn) error {
		c.Heartbeat(socket.NewWheel(interval, []byte("beat")))
		return nil
	}
	serve(t, first, nil, func(s *served) {
		start := time.Now()
		go func() {
			time.Sleep(20500 * time.Millisecond)
			_ = s.server.Write([]byte("data"))
		}()
		for _, want := range []struct {
			frame string
			after time.Duration
		}{{"beat", 16_000}, {"data", 20_500}, {"beat", 36_000}, {"beat", 52_000}} {
			_, b, err := s.Read(s.t.Context())
			if took := time.Since(start); err != nil || string(b) != want.frame || took != want.after*time.Millisecond {
				t.Errorf("%q after %v (%v), want %q after %d ms", b, took, err, want.frame, want.after)
			}
		}
	})
}

// Each of many connections gets heartbeats at the interval, whenever they were opened, and a wheel without connections has no timer.
func TestWheel(t *testing.T) {
	const interval = 16 * time.Second
	synctest.Test(t, func(t *testing.T) {
		wheel := socket.NewWheel(interval, []byte("beat"))
		for range 2 {
			var tasks sync.WaitGroup
			for i := range 50 {
				tasks.Go(func() {
					time.Sleep(time.Duration(i) * 731 * time.Millisecond)
					first := func(c *socket.Conn) error {
						c.Heartbeat(wheel)
						return nil
					}
					serveHere(t, first, nil, func(s *served) {
						last := time.Now()
						for range i {
							_, b, err := s.Read(s.t.Context())
							took := time.Since(last)
							if err != nil || string(b) != "beat" || took > interval || took < interval-interval/16 {
								t.Errorf("connection %d got %q after %v (%v)", i, b, took, err)
							}
							last = time.Now()
						}
					})
				})
			}
			tasks.Wait()
		}
	})
}

// A client that answers pings stays; one that doesn't is disconnected. A blocked write suppresses pings, because the
// stall limit decides then.
func TestPing(t *testing.T) {
	ping := func(c *socket.Conn) error {
		c.Heartbeat(socket.NewWheel(20*time.Second, nil))
		return nil
	}
	t.Run("answered", func(t *testing.T) {
		serve(t, ping, nil, func(s *served) {
			ctx, cancel := context.WithTimeout(s.t.Context(), 90*time.Second)
			defer cancel()
			_, _, _ = s.Read(ctx)
			if pings := s.pings.Load(); pings != 4 {
				t.Errorf("%d pings in 90 s", pings)
			}
		})
	})
	t.Run("not answered", func(t *testing.T) {
		serve(t, ping, nil, func(s *served) {
			start := time.Now()
			s.wantCause(socket.ErrDisconnected)
			if took := time.Since(start); took < 20*time.Second || took > 20*time.Second+stall {
				t.Errorf("disconnected after %v", took)
			}
		})
	})
	t.Run("blocked write", func(t *testing.T) {
		serve(t, ping, nil, func(s *served) {
			start := time.Now()
			_ = s.server.Write([]byte("unread"))
			s.wantCause(socket.ErrDisconnected)
			if took := time.Since(start); took != stall {
				t.Errorf("disconnected after %v, want %v", took, stall)
			}
		})
	})
}

// A message above the read limit closes with 1009. A binary message is an error too, but the connection stays usable.
func TestReadLimits(t *testing.T) {
	errs := make(chan error, 2)
	frame := func(c *socket.Conn, _ []byte, err error) error {
		errs <- err
		c.SetReadLimit(1000)
		return nil
	}
	serve(t, nil, frame, func(s *served) {
		for _, frame := range []struct {
			kind websocket.MessageType
			size int
			want error
		}{{websocket.MessageBinary, 100, socket.ErrBinary}, {websocket.MessageText, 1000, nil}} {
			go func() { _ = s.Write(s.t.Context(), frame.kind, []byte(strings.Repeat("x", frame.size))) }()
			if err := <-errs; !errors.Is(err, frame.want) {
				t.Errorf("%d bytes: %v, want %v", frame.size, err, frame.want)
			}
		}
		go func() { _ = s.Write(s.t.Context(), websocket.MessageText, []byte(strings.Repeat("x", 1001))) }()
		if _, status, _ := s.readAll(); status != websocket.StatusMessageTooBig {
			t.Errorf("1001 bytes: closed with %d", status)
		}
		s.wantCause(socket.ErrDisconnected)
	})
}

// An invalid handshake is answered, and Accept returns false.
func TestAcceptRefused(t *testing.T) {
	const key = "AAAAAAAAAAAAAAAAAAAAAA=="
	valid := http.Header{"Connection": {"keep-alive, Upgrade"}, "Upgrade": {"WebSocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {key}}
	with := func(name string, values ...string) http.Header {
		h := valid.Clone()
		if h[name] = values; values == nil {
			delete(h, name)
		}
		return h
	}
	for name, test := range map[string]struct {
		method string
		header http.Header
		want   int
	}{
		"plain":         {"GET", nil, http.StatusUpgradeRequired},
		"no upgrade":    {"GET", with("Upgrade"), http.StatusUpgradeRequired},
		"no connection": {"GET", with("Connection", "keep-alive"), http.StatusUpgradeRequired},
		"POST":          {"POST", valid, http.StatusMethodNotAllowed},
		"version 8":     {"GET", with("Sec-Websocket-Version", "8"), http.StatusBadRequest},
		"no key":        {"GET", with("Sec-Websocket-Key"), http.StatusBadRequest},
		"two keys":      {"GET", with("Sec-Websocket-Key", key, key), http.StatusBadRequest},
		"short key":     {"GET", with("Sec-Websocket-Key", "AAAA"), http.StatusBadRequest},
		"valid":         {"GET", valid, http.StatusSwitchingProtocols},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := servertest.Listen()
				hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					conn, ok := socket.Accept(w, r, socket.Options{Stall: stall, ReadLimit: 1})
					if ok != (test.want == http.StatusSwitchingProtocols) {
						t.Errorf("accepted: %t", ok)
					}
					if ok {
						conn.Serve(&handler{begin: func() error { return socket.ErrDisconnected }, end: func(error) {}})
					}
				})}
				go func() { _ = hs.Serve(network) }()
				hc := network.Client()
				r, err := http.NewRequestWithContext(t.Context(), test.method, "http://localhost/", nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header = test.header
				res, err := hc.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				_ = res.Body.Close()
				if res.StatusCode != test.want {
					t.Error(res.Status)
				}
				if version := res.Header.Get("Sec-WebSocket-Version"); name == "version 8" && version != "13" {
					t.Errorf("version %q is offered", version)
				}
				hc.CloseIdleConnections()
				_ = hs.Close()
			})
		})
	}
}
