package doctor_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leat-dev/leat/internal/app/doctor"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/native"
	"github.com/leat-dev/leat/internal/server/ops"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

const token = "sesame"

// startGateway runs a gateway with its routes and returns its URL.
func startGateway(t *testing.T) string {
	t.Helper()
	gw, err := gateway.New(gateway.Config{Journal: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Token: token})
	ops.Register(srv, gw, prometheus.NewRegistry(), nil)
	native.Register(srv, gw)
	ts := httptest.NewServer(srv)
	t.Cleanup(func() {
		srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		ts.Close()
	})
	return ts.URL
}

// between starts a proxy in front of a gateway and returns the URL of the proxy.
func between(t *testing.T, gateway string, change func(*httputil.ReverseProxy)) string {
	t.Helper()
	to, err := url.Parse(gateway)
	if err != nil {
		t.Fatal(err)
	}
	p := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.SetXForwarded() }}
	p.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	if change != nil {
		change(p)
	}
	ts := httptest.NewServer(p)
	t.Cleanup(ts.Close)
	return ts.URL
}

func client(t *testing.T) *http.Client {
	tr := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// want fails the test unless a finding of the level contains the text and no finding is worse than the level.
func want(t *testing.T, all []doctor.Finding, level doctor.Level, say string) {
	t.Helper()
	worse := map[doctor.Level]int{doctor.OK: 0, doctor.Warn: 1, doctor.Fail: 2}
	found := false
	for _, f := range all {
		if worse[f.Level] > worse[level] {
			t.Errorf("unexpected: %+v", f)
		}
		found = found || f.Level == level && strings.Contains(f.Message, say)
	}
	if !found {
		t.Errorf("no %s finding says %q: %+v", level, say, all)
	}
}

func TestStream(t *testing.T) {
	gw := startGateway(t)
	whole := func(p *httputil.ReverseProxy, change func(*http.Response, []byte) []byte) {
		p.ModifyResponse = func(r *http.Response) error {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			b = change(r, b)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
			return nil
		}
	}
	for name, tt := range map[string]struct {
		proxy func(*httputil.ReverseProxy)
		token string
		level doctor.Level
		say   string
	}{
		"a proxy that lets through": {nil, token, doctor.OK, "as they are sent"},
		"a proxy is seen":           {nil, token, doctor.OK, "requests pass a proxy"},
		"no token":                  {nil, "", doctor.Fail, "requires a token"},
		"buffers": {func(p *httputil.ReverseProxy) {
			whole(p, func(_ *http.Response, b []byte) []byte { return b })
		}, token, doctor.Fail, "buffers"},
		"compresses": {func(p *httputil.ReverseProxy) {
			whole(p, func(r *http.Response, b []byte) []byte {
				var z bytes.Buffer
				w := gzip.NewWriter(&z)
				_, _ = w.Write(b)
				_ = w.Close()
				r.Header.Set("Content-Encoding", "gzip")
				return z.Bytes()
			})
		}, token, doctor.Fail, "compresses"},
		"cuts": {func(p *httputil.ReverseProxy) {
			whole(p, func(_ *http.Response, b []byte) []byte { return b[:bytes.Index(b, []byte("\n\n"))+2] })
		}, token, doctor.Fail, "1 of 5 frames"},
		"garbles": {func(p *httputil.ReverseProxy) {
			whole(p, func(_ *http.Response, b []byte) []byte { return bytes.ReplaceAll(b, []byte("{"), []byte("[")) })
		}, token, doctor.Fail, "modified in transit"},
		"takes a header off": {func(p *httputil.ReverseProxy) {
			rewrite := p.Rewrite
			p.Rewrite = func(r *httputil.ProxyRequest) { rewrite(r); r.Out.Header.Del("Last-Event-Id") }
		}, token, doctor.Fail, "removes headers from requests: Last-Event-Id"},
		"takes no-transform off": {func(p *httputil.ReverseProxy) {
			p.ModifyResponse = func(r *http.Response) error { r.Header.Set("Cache-Control", "no-cache"); return nil }
		}, token, doctor.Warn, "no-transform"},
		"leads elsewhere": {func(p *httputil.ReverseProxy) {
			p.ModifyResponse = func(r *http.Response) error { r.StatusCode = http.StatusNotFound; return nil }
		}, token, doctor.Fail, "status 404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, doctor.Stream(t.Context(), client(t), between(t, gw, tt.proxy), tt.token), tt.level, tt.say)
		})
	}
	want(t, doctor.Stream(t.Context(), client(t), "http://"+closed(t), token), doctor.Fail, "is unreachable")
}

// closed returns an address whose port is closed.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestSocket(t *testing.T) {
	gw := startGateway(t)
	want(t, doctor.Socket(t.Context(), client(t), between(t, gw, nil), token), doctor.OK, "can be opened")
	want(t, doctor.Socket(t.Context(), client(t), gw, "wrong"), doctor.Fail, "status 401")
	want(t, doctor.Socket(t.Context(), client(t), between(t, gw, func(p *httputil.ReverseProxy) {
		rewrite := p.Rewrite
		p.Rewrite = func(r *httputil.ProxyRequest) { rewrite(r); r.Out.Header.Del("Upgrade") }
	}), token), doctor.Fail, "can't open a WebSocket")
}

func TestPort(t *testing.T) {
	gw := startGateway(t)
	ask := func(address string) ([]doctor.Finding, bool) {
		return doctor.Port(t.Context(), client(t), address, "http://"+address)
	}
	all, ours := ask(strings.TrimPrefix(gw, "http://"))
	if want(t, all, doctor.OK, "is ready"); !ours {
		t.Error("not ours")
	}
	all, ours = ask(closed(t))
	if want(t, all, doctor.OK, "is free"); ours {
		t.Error("ours")
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	all, _ = ask(strings.TrimPrefix(other.URL, "http://"))
	want(t, all, doctor.Fail, "no gateway answers")
}

func TestClock(t *testing.T) {
	for _, tt := range []struct {
		off   time.Duration
		level doctor.Level
		say   string
	}{{0, doctor.OK, "agree"}, {-10 * time.Second, doctor.Warn, "differ by 10s"}, {time.Hour, doctor.Fail, "differ by 1h"}} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(tt.off).UTC().Format(http.TimeFormat))
		}))
		all := doctor.Clock(t.Context(), client(t), s.URL)
		s.Close()
		if len(all) != 1 || all[0].Level != tt.level || tt.off == 0 && !strings.Contains(all[0].Message, tt.say) {
			t.Errorf("%v off: %+v", tt.off, all)
		}
	}
	want(t, doctor.Clock(t.Context(), client(t), "http://"+closed(t)), doctor.Fail, "is unreachable")
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range doctor.Disk(dir, "leat.lock") {
		if f.Level == doctor.Fail {
			t.Errorf("%+v", f)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
	l := flock.New(filepath.Join(dir, "leat.lock"))
	if ok, err := l.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	says := func(all []doctor.Finding, say string) bool {
		for _, f := range all {
			if strings.Contains(f.Message, say) {
				return true
			}
		}
		return false
	}
	if all := doctor.Disk(dir, "leat.lock"); !says(all, "a gateway is using the folder") {
		t.Errorf("locked: %+v", all)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if all := doctor.Disk(dir, "leat.lock"); !says(all, "no gateway is using") {
		t.Errorf("unlocked: %+v", all)
	}
	if all := doctor.Disk(filepath.Join(dir, "a", "b"), "leat.lock"); !says(all, "does not exist yet") {
		t.Errorf("missing: %+v", all)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte(strconv.Itoa(1)), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, doctor.Disk(file, "leat.lock"), doctor.Fail, "not a folder")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if all := doctor.Disk(dir, "leat.lock"); os.PathSeparator == '/' && !says(all, "other users of this machine") {
		t.Errorf("open: %+v", all)
	}
}
