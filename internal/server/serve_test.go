package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/servertest"
)

// serve runs a server on its own in-memory network until the test stops it.
func serve(t *testing.T, s *server.Server) (l *servertest.Listener, stop func()) {
	t.Helper()
	l = servertest.Listen()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	return l, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("serve:", err)
		}
	}
}

// ask sends the head of a request and returns the connection.
func ask(t *testing.T, l *servertest.Listener, head string) net.Conn {
	t.Helper()
	c, err := l.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(c, strings.ReplaceAll(head, "\n", "\r\n")) }()
	return c
}

func answer(t *testing.T, c net.Conn) *http.Response {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestServeTellsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.New(server.Options{})
		s.Handle(server.Route{Method: "GET", Pattern: "/stream", Access: server.Public, Stream: true, Handler: func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
			st, err := s.OpenStream(w, r, 200, server.EventStream)
			if err != nil {
				return err
			}
			<-r.Context().Done()
			if !errors.Is(context.Cause(r.Context()), server.ErrShutdown) {
				t.Errorf("the stream ended by %v", context.Cause(r.Context()))
			}
			return st.Write([]byte("data: bye\n\n"))
		}})
		l, stop := serve(t, s)
		c := ask(t, l, "GET /stream HTTP/1.1\nHost: localhost\n\n")
		res := answer(t, c) // the headers come before there is anything to say
		for h, want := range map[string]string{
			"Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no", "Cache-Control": "private, no-cache, no-store, no-transform",
		} {
			if got := res.Header.Get(h); got != want {
				t.Errorf("%s: %q, want %q", h, got, want)
			}
		}
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		b, err := io.ReadAll(res.Body)
		if string(b) != "data: bye\n\n" || err != nil {
			t.Errorf("stream %q, %v", b, err)
		}
		_ = c.Close()
		<-stopped
	})
}

// A reader that accepts no bytes is disconnected after the stall limit. One that accepts a few bytes now and then isn't.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.New(server.Options{Stall: time.Minute})
		ended := make(chan error, 1)
		s.Handle(server.Route{Method: "GET", Pattern: "/stream", Access: server.Public, Stream: true, Handler: func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
			st, err := s.OpenStream(w, r, 200, server.EventStream)
			if err == nil {
				err = st.Write(make([]byte, 1<<20))
			}
			ended <- err
			return nil
		}})
		l, stop := serve(t, s)
		defer stop()

		slow := ask(t, l, "GET /stream HTTP/1.1\nHost: localhost\n\n")
		res := answer(t, slow)
		n, buf := 0, make([]byte, 64<<10)
		for n < 1<<20 {
			time.Sleep(50 * time.Second)
			m, err := io.ReadFull(res.Body, buf)
			if n += m; err != nil {
				t.Fatalf("cut after %d bytes: %v", n, err)
			}
		}
		go func() { _, _ = io.Copy(io.Discard, res.Body) }() // the end of the last chunk
		if err := <-ended; err != nil {
			t.Errorf("the server disconnected a slow reader: %v", err)
		}
		_ = slow.Close()

		stalled := ask(t, l, "GET /stream HTTP/1.1\nHost: localhost\n\n")
		answer(t, stalled)
		start := time.Now()
		if err := <-ended; err == nil {
			t.Error("a reader that takes nothing was not cut")
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("cut after %v", took)
		}
		_ = stalled.Close()
		synctest.Wait()
	})
}

func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.New(server.Options{BodyTimeout: time.Minute})
		s.Handle(server.Route{Method: "POST", Pattern: "/slow", Access: server.Public, Handler: func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
			var v map[string]any
			if err := server.Decode(r, &v); err != nil {
				return err
			}
			time.Sleep(time.Hour) // the answer takes longer than the body may
			if r.Context().Err() != nil {
				t.Error("the body's limit has ended the answer")
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		}})
		l, stop := serve(t, s)
		defer stop()
		head := "POST /slow HTTP/1.1\nHost: localhost\nContent-Length: 8\n\n"
		c := ask(t, l, head+`{"a"`)
		start := time.Now()
		if res := answer(t, c); res.StatusCode != 400 || time.Since(start) != time.Minute {
			t.Errorf("half a body: %d after %v", res.StatusCode, time.Since(start))
		}
		_ = c.Close()
		c = ask(t, l, head+`{"a": 1}`)
		if res := answer(t, c); res.StatusCode != 204 {
			t.Errorf("a whole body: %d", res.StatusCode)
		}
		_ = c.Close()
		synctest.Wait()
	})
}

func TestALargeHeadIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, stop := serve(t, newServer(server.Options{}))
		defer stop()
		c := ask(t, l, "GET /api/public HTTP/1.1\nHost: localhost\nX: "+strings.Repeat("a", server.MaxHeader+8<<10)+"\n\n")
		if res := answer(t, c); res.StatusCode != 431 {
			t.Errorf("a head that is too large: %d", res.StatusCode)
		}
		_ = c.Close()
		synctest.Wait()
	})
}

type elsewhere struct{ net.Listener }

func (elsewhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 31337} }

func TestServeWithoutToken(t *testing.T) {
	l := servertest.Listen()
	err := server.New(server.Options{}).Serve(t.Context(), elsewhere{l})
	if err == nil || !strings.Contains(err.Error(), "without a token") || !strings.Contains(err.Error(), "192.0.2.7") {
		t.Errorf("got %v", err)
	}
	if _, err := l.Dial(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Error("the listener was left open")
	}
}
