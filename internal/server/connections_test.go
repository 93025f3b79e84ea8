package server_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/servertest"
)

// street is a network on which connections come from addresses of the test's choice.
type street struct {
	*servertest.Listener
	mu   sync.Mutex
	from string
}

func (s *street) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return at{c, s.from}, nil
}

type at struct {
	net.Conn
	ip string
}

func (a at) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(a.ip), Port: 1} }

// visit writes a request, of which more may be missing, from an address, and returns when it was read.
func (s *street) visit(t *testing.T, ip, head string) net.Conn {
	t.Helper()
	s.mu.Lock()
	s.from = ip
	s.mu.Unlock()
	c := ask(t, s.Listener, head)
	synctest.Wait()
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// says returns the status of an answer, 0 for a connection that was closed without one.
func says(t *testing.T, c net.Conn) int {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode == http.StatusServiceUnavailable {
		b, _ := io.ReadAll(res.Body)
		if !strings.Contains(string(b), `"busy"`) || res.Header.Get("Retry-After") == "" || !res.Close {
			t.Errorf("a refusal: %v %s", res.Header, b)
		}
	}
	return res.StatusCode
}

func (s *street) want(t *testing.T, what string, status int, c net.Conn) {
	t.Helper()
	if got := says(t, c); got != status {
		t.Errorf("%s: %d, want %d", what, got, status)
	}
}

// newStreet serves on a street a server that has a stream, a probe and a form.
func newStreet(t *testing.T, opt server.Options) (s *street, log *bytes.Buffer) {
	t.Helper()
	log = &bytes.Buffer{}
	opt.Token = token
	opt.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	srv := newServer(opt)
	stream := func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		_, err := srv.OpenStream(w, r, 200, server.EventStream)
		if err == nil {
			<-r.Context().Done()
		}
		return err
	}
	form := func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		_, err := io.ReadAll(r.Body)
		return err
	}
	srv.Handle(server.Route{Method: "GET", Pattern: "/stream", Access: server.Public, Stream: true, Handler: stream})
	srv.Handle(server.Route{Method: "GET", Pattern: "/healthz", Access: server.Public, AnyHost: true, Handler: whoami})
	srv.Handle(server.Route{Method: "POST", Pattern: "/form", Access: server.Public, Handler: form})
	srv.Handle(server.Route{Method: "POST", Pattern: "/own", Access: server.Authenticated, Handler: form})
	s = &street{Listener: servertest.Listen()}
	ctx, stop := t.Context(), make(chan error, 1)
	go func() { stop <- srv.Serve(ctx, s) }()
	t.Cleanup(func() {
		if err := <-stop; err != nil {
			t.Error("serve:", err)
		}
	})
	return s, log
}

const (
	anna, bert = "192.0.2.1", "192.0.2.2"
	rest       = " HTTP/1.1\nHost: localhost\n"
	proof      = "Authorization: Bearer " + token + "\n"
	slow       = "Content-Length: 100\n\nhalf"
)

// At the connection limit, probes and operators are still answered. All other clients get 503, which is logged once.
func TestFullServersKeepARoomForOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := newStreet(t, server.Options{MaxConnections: 40})
		var streams []net.Conn
		for range 40 {
			streams = append(streams, s.visit(t, anna, "GET /stream"+rest+"\n"))
		}
		for range 3 {
			s.want(t, "a stranger", 503, s.visit(t, bert, "GET /api/public"+rest+"\n"))
			s.want(t, "a stream of the operator", 503, s.visit(t, bert, "GET /stream"+rest+proof+"\n"))
			s.want(t, "a probe", 200, s.visit(t, bert, "GET /healthz"+rest+"\n"))
			s.want(t, "the operator", 200, s.visit(t, bert, "GET /api/admin"+rest+proof+"\n"))
		}
		// Connections that send nothing don't block the operator.
		for range 20 {
			s.visit(t, anna, "GET ")
		}
		s.want(t, "the operator among silent ones", 200, s.visit(t, bert, "GET /api/admin"+rest+proof+"\n"))
		if n := strings.Count(log.String(), "all connections are in use"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, log)
		}
		for _, c := range streams[:10] {
			_ = c.Close()
		}
		synctest.Wait()
		s.want(t, "a stranger, later", 200, s.visit(t, bert, "GET /api/public"+rest+"\n"))
		for range 10 {
			s.visit(t, anna, "GET /stream"+rest+"\n")
		}
		s.want(t, "a stranger at the limit", 503, s.visit(t, bert, "GET /api/public"+rest+"\n"))
		if n := strings.Count(log.String(), "all connections are in use"); n != 2 {
			t.Errorf("logged %d times:\n%s", n, log)
		}
	})
}

// At the limit, an idle connection is closed for a new one that has a request.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStreet(t, server.Options{MaxConnections: 2})
		s.visit(t, anna, "GET /stream"+rest+"\n")
		idle := s.visit(t, anna, "GET /api/public"+rest+"\n")
		s.want(t, "the first", 200, idle)
		synctest.Wait() // an answer is read before its connection counts as idle
		s.want(t, "a further one", 200, s.visit(t, bert, "GET /api/public"+rest+"\n"))
		if n, err := idle.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			t.Errorf("the idle one is open: %v", err)
		}
	})
}

// Connections with unfinished heads or bodies can take only a part of all connections, for each address.
func TestOneAddressCanNotTakeAllConnections(t *testing.T) {
	for name, head := range map[string]string{
		"no head":            "",
		"half a head":        "GET /api/public HTTP/1.1\nHost: loc",
		"half a body":        "POST /form" + rest + slow,
		"a body for a probe": "GET /healthz" + rest + slow,
		"a wrong token":      "POST /own" + rest + "Authorization: Bearer x\n" + slow,
		"no token":           "POST /own" + rest + slow,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, log := newStreet(t, server.Options{MaxConnections: 100})
				for range 10 {
					for range 50 {
						c := s.visit(t, anna, head)
						go func() { _, _ = io.Copy(io.Discard, c) }() // a system has a buffer
					}
					s.want(t, "another address", 200, s.visit(t, bert, "GET /api/public"+rest+"\n"))
					s.want(t, "its form", 200, s.visit(t, bert, "POST /form"+rest+"Content-Length: 1\n\na"))
					s.want(t, "a probe of the same address", 200, s.visit(t, anna, "GET /healthz"+rest+"\n"))
					s.want(t, "a request without a body of the same address", 200, s.visit(t, anna, "GET /api/public"+rest+"\n"))
				}
				if n := strings.Count(log.String(), "too many unfinished"); n > 1 {
					t.Errorf("logged %d times", n)
				}
			})
		})
	}
}

// Slow bodies above the share of their address are refused. A body with a token isn't counted, and a body counts only until it
// is complete.
func TestSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStreet(t, server.Options{MaxConnections: 320})
		var slowly []net.Conn
		for range 40 {
			slowly = append(slowly, s.visit(t, anna, "POST /form"+rest+slow))
		}
		s.want(t, "one too many", 503, s.visit(t, anna, "POST /form"+rest+slow))
		for range 60 {
			s.visit(t, anna, "POST /own"+rest+proof+slow)
		}
		s.want(t, "with a token", 200, s.visit(t, anna, "POST /own"+rest+proof+"Content-Length: 1\n\na"))
		if _, err := io.WriteString(slowly[0], strings.Repeat("x", 96)); err != nil {
			t.Fatal(err)
		}
		s.want(t, "a body that is whole", 200, slowly[0])
		s.want(t, "the next one", 200, s.visit(t, anna, "POST /form"+rest+"Content-Length: 1\n\na"))
	})
}

// A refusal is sent at once, without reading the request's body.
func TestRefusalsDoNotWaitForBodies(t *testing.T) {
	for name, tt := range map[string]struct {
		head   string
		status int
	}{
		"no token": {"POST /own" + rest + slow, 401}, "a probe": {"GET /healthz" + rest + slow, 200}, "no such path": {"POST /none" + rest + slow, 404},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := newStreet(t, server.Options{})
				begin := time.Now()
				s.want(t, "the answer", tt.status, s.visit(t, anna, tt.head))
				if took := time.Since(begin); took > 2*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// Behind a trusted proxy, the limit counts by the addresses that the proxy names, and the proxy's own unfinished connections
// count for the proxy.
func TestUnfinishedRequestsBehindAProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const proxy = "10.0.0.1"
		s, _ := newStreet(t, server.Options{MaxConnections: 320, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
		by := func(ip string) string { return fmt.Sprintf("X-Forwarded-For: %s\n", ip) }
		for range 40 {
			s.visit(t, proxy, "POST /form"+rest+by(anna)+slow)
		}
		s.want(t, "one too many", 503, s.visit(t, proxy, "POST /form"+rest+by(anna)+slow))
		s.want(t, "another client", 200, s.visit(t, proxy, "POST /form"+rest+by(bert)+"Content-Length: 1\n\na"))
		for range 100 {
			s.visit(t, proxy, "")
		}
		s.want(t, "the proxy's next connection", 200, s.visit(t, proxy, "GET /api/public"+rest+by(bert)+"\n"))
	})
}
