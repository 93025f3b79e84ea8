package ops_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/ops"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sick is a journal whose health a test sets.
type sick struct {
	journal.Journal
	ill atomic.Bool
}

var errDisk = errors.New("no space left on /secret/path")

func (s *sick) Healthy() error {
	if s.ill.Load() {
		return errDisk
	}
	return s.Journal.Healthy()
}

func TestOps(t *testing.T) {
	j := &sick{Journal: memory.New()}
	m := gateway.NewMetrics()
	gw, err := gateway.New(gateway.Config{Journal: j, Metrics: m})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Token: "sesame", Hosts: []string{"leat.example"}})
	var signals []string
	ops.Register(srv, gw, registry, func() []string { return signals })
	m.LateOps.Inc()
	get := func(path, host, ip string, header ...string) (int, string) {
		r := httptest.NewRequest(http.MethodGet, "http://"+host+path, nil)
		r.RemoteAddr = ip + ":50000"
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.ParseIP(ip), Port: 31337})))
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, r)
		b, _ := io.ReadAll(w.Body)
		return w.Code, string(b)
	}
	check := func(what string, status, want int, body, say string) {
		t.Helper()
		if status != want || !strings.Contains(body, say) {
			t.Errorf("%s: %d %.200s, want %d with %q", what, status, body, want, say)
		}
	}
	const far, near = "192.0.2.7", "127.0.0.1"
	status, body := get("/healthz", "10.1.2.3:31337", far) // a probe knows only an address
	check("health", status, 200, body, "ok")
	status, body = get("/readyz", "pod-7:31337", far)
	check("ready", status, 200, body, "ready")
	signals = []string{"delivery.failed"}
	status, body = get("/readyz", "pod-7:31337", far)
	check("ready, but not well", status, 200, body, `"signals":["delivery.failed"]`)
	status, body = get("/metrics", "localhost", near)
	check("metrics from this machine", status, 200, body, `leat_late_operations_total 1`)
	status, body = get("/metrics", "leat.example", far)
	check("metrics from another machine", status, 401, body, "token")
	status, body = get("/metrics", "localhost", near, "X-Forwarded-For", "192.0.2.1")
	check("metrics through a local proxy", status, 401, body, "token")
	status, body = get("/metrics", "leat.example", near)
	check("metrics under a public name", status, 401, body, "token")
	status, body = get("/metrics", "leat.example", far, "Authorization", "Bearer sesame")
	check("metrics with the token", status, 200, body, "leat_late_operations_total")
	status, body = get("/metrics", "leat.example", far, "Authorization", "Bearer sesame", server.HeaderSubject, "alice")
	check("metrics as a user", status, 403, body, "forbidden")

	j.ill.Store(true)
	status, body = get("/readyz", "localhost", near)
	check("commits fail", status, 503, body, "commits fail")
	if strings.Contains(body, "secret") {
		t.Errorf("readyz reveals paths: %s", body)
	}
	status, body = get("/healthz", "localhost", near)
	check("health while commits fail", status, 200, body, "ok")
	j.ill.Store(false)
	status, body = get("/readyz", "localhost", near)
	check("ready after recovery", status, 200, body, "ready")

	if err := gw.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	status, body = get("/readyz", "localhost", near)
	check("draining", status, 503, body, "draining")
}
