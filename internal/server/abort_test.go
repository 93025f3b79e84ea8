package server_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// A response that a handler aborts, or leaves incomplete by a panic, is aborted for the client too. The request log and the metrics have it
// like any other.
func TestAbort(t *testing.T) {
	for name, cause := range map[string]any{"abort": http.ErrAbortHandler, "panic": "ouch"} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			metrics := server.NewMetrics()
			s := server.New(server.Options{Metrics: metrics, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			s.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/half", Access: server.Public, Stream: true, Handler: func(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
				_, err := io.WriteString(w, "half")
				if err != nil {
					return err
				}
				panic(cause)
			}})
			func() {
				defer func() {
					if p := recover(); p != http.ErrAbortHandler {
						t.Errorf("the server panics with %v", p)
					}
				}()
				s.ServeHTTP(httptest.NewRecorder(), request(http.MethodGet, "http://localhost/api/half", nil))
			}()
			if text := log.String(); !strings.Contains(text, "route=/api/half status=200 bytes=4") || strings.Contains(text, "handler panicked") != (name == "panic") {
				t.Errorf("the log has %s", text)
			}
			w := httptest.NewRecorder()
			registry := prometheus.NewRegistry()
			registry.MustRegister(metrics)
			promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, request(http.MethodGet, "/metrics", nil))
			if !strings.Contains(w.Body.String(), `leat_http_requests_total{method="GET",route="/api/half",status="200"} 1`) {
				t.Errorf("the metrics are %s", w.Body)
			}
		})
	}
}
