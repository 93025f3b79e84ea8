package elizaws

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/servertest"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// timed runs a test in virtual time, with sockets in memory.
func timed(t *testing.T, test func(h *harness, dial func(http.Header) *client)) {
	t.Helper()
	timedWith(t, nil, test)
}

func timedWith(t *testing.T, change func(*server.Options, *Options), test func(h *harness, dial func(http.Header) *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j := &sick{Journal: memory.New()}
		h := build(t, j, change)
		l := servertest.Listen()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- h.srv.Serve(ctx, l) }()
		hc := l.Client()
		h.http = hc
		test(h, func(hd http.Header) *client {
			c := &client{t: t}
			conn, _, err := websocket.Dial(t.Context(), "http://localhost/ws", &websocket.DialOptions{
				HTTPClient: hc, HTTPHeader: hd,
				OnPingReceived: func(context.Context, []byte) bool { c.pings.Add(1); return true },
			})
			if err != nil {
				t.Fatal(err)
			}
			c.conn = conn
			return c
		})
		h.down()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		hc.CloseIdleConnections()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A socket without a token is closed after the limit.
func TestAuthLimit(t *testing.T) {
	timed(t, func(_ *harness, dial func(http.Header) *client) {
		c, start := dial(nil), time.Now()
		status, frames := c.closed()
		if took := time.Since(start); status != websocket.StatusPolicyViolation || took != authLimit || len(frames) > 0 {
			t.Errorf("closed with %d after %v and %q", status, took, frames)
		}
	})
}

// The status is sent every five seconds, with pings in between.
func TestStatusEvery(t *testing.T) {
	timed(t, func(_ *harness, dial func(http.Header) *client) {
		c := dial(http.Header{"Authorization": {"Bearer " + secret}})
		start := time.Now()
		for i := range 100 {
			if f := c.want("status"); time.Since(start) != time.Duration(i)*5*time.Second {
				t.Errorf("status %d after %v: %s", i, time.Since(start), f.raw)
			}
		}
		// A ping is left out while a status is being written, which can happen whenever both are due at the same moment.
		if n, most := c.pings.Load(), int64(time.Since(start)/pingEvery); n < 2 || int64(n) > most {
			t.Errorf("pinged %d times in %v, want one each %v", n, time.Since(start), pingEvery)
		}
		_ = c.conn.CloseNow()
	})
}

// An address may have a limited number of sockets. This machine is only limited by the server.
func TestAddresses(t *testing.T) {
	s := &surface{}
	srv := server.New(server.Options{Token: secret})
	var got error
	var leave func()
	srv.Handle(server.Route{Method: "GET", Pattern: "/x", Access: server.Public, Handler: func(_ http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		leave, got = s.enter(r)
		return nil
	}})
	from := func(addr string) error {
		r := httptest.NewRequest("GET", "http://localhost/x", nil)
		r.RemoteAddr = addr
		srv.ServeHTTP(httptest.NewRecorder(), r)
		return got
	}
	for range perAddress {
		if err := from("192.0.2.1:99"); err != nil {
			t.Fatal(err)
		}
	}
	last := leave
	if err := from("192.0.2.1:99"); server.Describe(err).Status != http.StatusTooManyRequests {
		t.Errorf("one too many: %v", err)
	}
	if err := from("192.0.2.2:99"); err != nil {
		t.Errorf("another address: %v", err)
	}
	last()
	if err := from("192.0.2.1:99"); err != nil {
		t.Errorf("once one is gone: %v", err)
	}
	// With IPv6, a client has a whole network.
	for i := range perAddress {
		if err := from(fmt.Sprintf("[2001:db8::%x]:99", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := from("[2001:db8::ffff]:99"); server.Describe(err).Status != http.StatusTooManyRequests {
		t.Errorf("one too many of a network: %v", err)
	}
	if err := from("[2001:db8:0:1::1]:99"); err != nil {
		t.Errorf("another network: %v", err)
	}
	for range perAddress + 1 {
		if err := from("127.0.0.1:99"); err != nil {
			t.Fatal(err)
		}
	}
}
