//go:build linux && !goroutines

package native_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/sse"
	"github.com/leat-dev/leat/transcript"
)

// serveOn serves the harness on a separate listener until stop is called.
func (h *harness) serveOn(network, address string) (l net.Listener, stop func()) {
	h.t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.srv.Serve(ctx, l) }()
	return l, sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
}

// request sends a request for the events of a conversation on a new connection, in the given version of HTTP.
func (h *harness) request(l net.Listener, version, conversation string) net.Conn {
	h.t.Helper()
	c, err := net.Dial(l.Addr().Network(), l.Addr().String())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Close() })
	_, err = fmt.Fprintf(c, "GET /api/conversations/%s/events HTTP/%s\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", conversation, version, token)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// A detached stream has the framing of its HTTP version from its first byte to its last, over TCP and Unix sockets.
func TestDetachedFraming(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for _, version := range []string{"1.0", "1.1"} {
			t.Run(network+" "+version, func(t *testing.T) {
				address := "127.0.0.1:0"
				if network == "unix" {
					address = filepath.Join(t.TempDir(), "s")
				}
				h := newHarness(t, options{})
				l, stop := h.serveOn(network, address)
				defer stop()
				id := h.create()
				c := h.request(l, version, id)
				r := bufio.NewReader(c)
				res, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				if isChunked := len(res.TransferEncoding) > 0; isChunked != (version == "1.1") || !res.Close {
					t.Errorf("transfer encoding %q, close %t", res.TransferEncoding, res.Close)
				}
				h.send(id, "hello")
				var body []byte
				for b := make([]byte, 1<<10); !bytes.Contains(body, []byte("you said: hello")); {
					n, err := res.Body.Read(b)
					if body = append(body, b[:n]...); err != nil {
						t.Fatalf("%v after %q", err, body)
					}
				}
				go stop()
				body, err = io.ReadAll(res.Body) // fails unless the last chunk arrives
				if err != nil || !bytes.Contains(body, []byte(`"type":"error"`)) {
					t.Errorf("%v after %q", err, body)
				}
				if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil {
					t.Errorf("after the stream: %q, %v", rest, err)
				}
			})
		}
	}
}

// HEAD gets no body, and its connection stays with net/http.
func TestDetachedHead(t *testing.T) {
	h := newHarness(t, options{})
	l, stop := h.serveOn("tcp", "127.0.0.1:0")
	defer stop()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "HEAD /api/conversations/%s/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", h.create(), token); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err != nil || !bytes.HasSuffix(b, []byte("\r\n\r\n")) {
		t.Errorf("%v after %q", err, b)
	}
}

// logs is a log that can be searched.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) contains(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), s)
}

// value returns the sum of a metric's series with a label value, or of all if it is empty.
func value(t *testing.T, c prometheus.Collector, name, label string) (sum float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == label {
					sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

// eventually polls a condition that other goroutines bring about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

// Idle viewers have no goroutines. The gauge, the request log, the connection and the limit of viewers end when a client leaves,
// and not with the handler.
func TestDetachedEnd(t *testing.T) {
	out := &logs{}
	metrics := server.NewMetrics()
	h := newHarness(t, options{server: server.Options{
		Metrics: metrics, Log: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}})
	l, stop := h.serveOn("tcp", "127.0.0.1:0")
	defer stop()
	id := h.create()
	before := runtime.NumGoroutine()
	const viewers = 50
	var conns []net.Conn
	for range viewers {
		conns = append(conns, h.request(l, "1.1", id))
	}
	eventually(t, "all viewers are connected", func() bool { return value(t, metrics, "leat_viewers", "sse") == viewers })
	eventually(t, "their goroutines end", func() bool { return runtime.NumGoroutine() <= before+10 })
	const route = "/api/conversations/{id}/events"
	if n := value(t, metrics, "leat_http_requests_total", route); n != 0 || out.contains(route) {
		t.Errorf("%v requests are counted as ended", n)
	}
	ack := h.send(id, "hello")
	h.ended(id, ack.Turn)
	for i, c := range conns {
		if i%2 == 0 {
			_ = c.(*net.TCPConn).CloseWrite()
		} else {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}
	eventually(t, "the viewers end", func() bool { return value(t, metrics, "leat_viewers", "sse") == 0 })
	eventually(t, "the requests end", func() bool { return value(t, metrics, "leat_http_requests_total", route) == viewers })
	eventually(t, "the log has them", func() bool {
		return out.contains(route) && out.contains("conversation="+id) && out.contains("status=200")
	})
	for i, c := range conns {
		if i%2 == 0 {
			b, err := io.ReadAll(c)
			if err != nil || !bytes.Contains(b, []byte("you said: hello")) {
				t.Errorf("viewer %d: %v, %q", i, err, b)
			}
		}
	}
}

// Readers of every speed over real sockets get every byte, in whole frames, while the system takes parts of them only.
func TestDetachedSlow(t *testing.T) {
	texts, a := teller()
	h := newHarness(t, options{agent: a})
	l, stop := h.serveOn("tcp", "127.0.0.1:0")
	defer stop()
	id := h.create()
	const viewers, words = 10, 60
	readers := make([]*reader, viewers)
	var reading sync.WaitGroup
	word := strings.Repeat("0123456789", 2_000)
	for i := range readers {
		readers[i] = &reader{t: t}
		c := h.request(l, "1.1", id)
		if err := c.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReaderSize(c, 1<<10), nil)
		if err != nil {
			t.Fatal(err)
		}
		e := &events{Response: res, t: t, scan: &sse.Reader{}, buf: make([]byte, 4<<10)}
		e.until(readers[i], func() bool { return readers[i].resets == 1 })
		reading.Go(func() {
			for {
				f, more := e.next()
				if !more {
					return
				}
				readers[i].take(f)
				if rand.IntN(20) < i {
					runtime.Gosched()
				}
				if len(readers[i].fold.Turns) > 0 && readers[i].fold.Turns[0].State == transcript.TurnEnded {
					return
				}
			}
		})
	}
	ack := h.send(id, "go")
	for range words {
		texts <- word
	}
	close(texts)
	h.ended(id, ack.Turn)
	reading.Wait()
	for i, r := range readers {
		if len(r.text()) < words*len(word) || r.text() != readers[0].text() {
			t.Errorf("viewer %d has %d bytes", i, len(r.text()))
		}
	}
}
