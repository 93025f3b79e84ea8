package outbound

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// listening is a server on this machine that counts its connections.
func listening(t *testing.T, h http.HandlerFunc) (port string, connections *atomic.Int64) {
	t.Helper()
	connections = &atomic.Int64{}
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, connections
}

func get(t *testing.T, c *http.Client, url string) (*http.Response, string, error) {
	t.Helper()
	defer c.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

func TestPrivateIsRefused(t *testing.T) {
	port, connections := listening(t, hello)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]"} {
		if _, _, err := get(t, New(Options{}), "http://"+host+":"+port); !errors.Is(err, errPrivate) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections were accepted", n)
	}
	if _, b, err := get(t, New(Options{AllowPrivate: true}), "http://127.0.0.1:"+port); err != nil || b != "hello" {
		t.Errorf("allowed: %q, %v", b, err)
	}
}

// The name resolves to a public address the first time and to a loopback address the second time. The dialed address is checked.
func TestRebinding(t *testing.T) {
	port, connections := listening(t, hello)
	var asked atomic.Int64
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go answerDNS(there, func() net.IP {
			if asked.Add(1) == 1 {
				return net.IPv4(8, 8, 8, 8)
			}
			return net.IPv4(127, 0, 0, 1)
		})
		return here, nil
	}}
	if ips, err := r.LookupNetIP(t.Context(), "ip4", "rebind.example."); err != nil || ips[0].String() != "8.8.8.8" {
		t.Fatalf("first lookup: %v, %v", ips, err)
	}
	url := "http://rebind.example.:" + port
	if _, _, err := get(t, New(Options{resolver: r}), url); !errors.Is(err, errPrivate) {
		t.Errorf("got %v", err)
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections were accepted", n)
	}
	// If private addresses are allowed, the same request reaches the server.
	if _, b, err := get(t, New(Options{resolver: r, AllowPrivate: true}), url); err != nil || b != "hello" {
		t.Errorf("allowed: %q, %v", b, err)
	}
}

// answerDNS answers one DNS query over a stream: a query for an A record with an address, any other with an empty answer.
func answerDNS(c net.Conn, ip func() net.IP) {
	defer c.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		q := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, q); err != nil {
			return
		}
		end := 12
		for q[end] != 0 {
			end += int(q[end]) + 1
		}
		end += 5
		isA := binary.BigEndian.Uint16(q[end-4:]) == 1
		a := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end]...)
		if isA {
			a[7] = 1
			a = append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
			a = append(a, ip().To4()...)
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil {
			return
		}
	}
}

func TestRedirectIsAnAnswer(t *testing.T) {
	var followed atomic.Int64
	port, _ := listening(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			followed.Add(1)
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	resp, _, err := get(t, New(Options{AllowPrivate: true}), "http://127.0.0.1:"+port+"/")
	if err != nil || resp.StatusCode != http.StatusTemporaryRedirect || followed.Load() != 0 {
		t.Errorf("%v, %v; followed %d times", resp, err, followed.Load())
	}
}

func TestNoProxyOfTheEnvironment(t *testing.T) {
	port, _ := listening(t, hello)
	proxy, asked := listening(t, hello)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:"+proxy)
	}
	c := New(Options{AllowPrivate: true})
	if p := c.Transport.(*transport).Proxy; p != nil {
		t.Error("the client uses a proxy")
	}
	if _, _, err := get(t, c, "http://127.0.0.1:"+port); err != nil || asked.Load() != 0 {
		t.Errorf("%v; the proxy got %d requests", err, asked.Load())
	}
}

func TestAnswersAreBounded(t *testing.T) {
	port, _ := listening(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/header" {
			w.Header().Set("X-Long", strings.Repeat("x", 2*maxHeader))
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 100))
	})
	url := "http://127.0.0.1:" + port
	for max, want := range map[int64]int{100: 100, 1000: 100, 99: 99, 1: 1} {
		_, b, err := get(t, New(Options{AllowPrivate: true, MaxBody: max}), url)
		if len(b) != want || errors.Is(err, ErrTooLarge) != (max < 100) {
			t.Errorf("at most %d: got %d bytes, %v", max, len(b), err)
		}
	}
	if _, _, err := get(t, New(Options{AllowPrivate: true}), url+"/header"); err == nil {
		t.Error("the length of a header is not limited")
	}
}

func TestTimeout(t *testing.T) {
	port, _ := listening(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	_, _, err := get(t, New(Options{AllowPrivate: true, Timeout: 20 * time.Millisecond}), "http://127.0.0.1:"+port)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v", err)
	}
}

func TestReasonHidesTheURL(t *testing.T) {
	_, _, err := get(t, New(Options{}), "http://127.0.0.1:1/s3cret?token=s3cret")
	var u *url.Error
	if !errors.As(err, &u) || strings.Contains(Reason(err).Error(), "s3cret") || !errors.Is(Reason(err), errPrivate) {
		t.Errorf("%v: %v", err, Reason(err))
	}
	if err := errors.New("x"); Reason(err) != err {
		t.Error("an error of another type is changed")
	}
}
