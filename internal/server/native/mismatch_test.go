package native_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leat-dev/leat/internal/gateway"
)

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A reported mismatch is counted by the kind of client and logged with its ids. The number of reports is limited.
func TestMismatch(t *testing.T) {
	var log lockedBuffer
	metrics := gateway.NewMetrics()
	h := newHarness(t, options{gateway: func(c *gateway.Config) {
		c.Metrics, c.Log = metrics, slog.New(slog.NewTextHandler(&log, nil))
	}})
	id := h.create()
	path := "/api/conversations/" + id + "/mismatches"
	const sums = `"message":"m","part":"p","seq":7,"have":{"length":2,"crc":1},"want":{"length":3,"crc":2}`
	for _, client := range []string{`"client":"page",`, `"client":"page",`, `"client":"my-own-7f",`, ``} {
		body := "{" + client + sums + "}"
		valid(t, "mismatch", []byte(body))
		if status, b := h.do(http.MethodPost, path, body, ""); status != http.StatusNoContent {
			t.Fatalf("%s: %d %s", body, status, b)
		}
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics)
	counted := func(want ...string) {
		t.Helper()
		w := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		var got []string
		for line := range strings.Lines(w.Body.String()) {
			if strings.HasPrefix(line, "leat_client_mismatches_total") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("counted %q, want %q", got, want)
		}
	}
	want := []string{
		`leat_client_mismatches_total{client="go",field="text"} 0`, `leat_client_mismatches_total{client="other",field="text"} 2`,
		`leat_client_mismatches_total{client="page",field="text"} 2`, `leat_client_mismatches_total{client="python",field="text"} 0`,
		`leat_client_mismatches_total{client="ts",field="text"} 0`,
	}
	counted(want...)
	if got := log.String(); strings.Count(got, "conversation="+id) != 4 || !strings.Contains(got, "have_bytes=2") || strings.Contains(got, "my-own") {
		t.Errorf("log: %s", got)
	}
	for _, wrong := range []string{
		`{}`, `{` + strings.Replace(sums, `"m"`, `""`, 1) + `}`, `{"field":"title",` + sums + `}`, `{"text":"hello",` + sums + `}`,
		`{` + strings.Replace(sums, `3,"crc":2`, `2,"crc":1`, 1) + `}`, `{` + strings.Replace(sums, `"length":2`, `"length":-2`, 1) + `}`,
		fmt.Sprintf(`{"turn":%q,%s}`, "a\nb", sums),
	} {
		h.refused(http.MethodPost, path, wrong, http.StatusBadRequest, "invalid")
	}
	h.refused(http.MethodPost, "/api/conversations/none/mismatches", "{"+sums+"}", http.StatusNotFound, "not_found")
	h.as("bob").refused(http.MethodPost, path, "{"+sums+"}", http.StatusNotFound, "not_found")
	counted(want...)
	last := 0
	for range 200 {
		if last, _ = h.do(http.MethodPost, path, "{"+sums+"}", ""); last != http.StatusNoContent {
			break
		}
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("200 reports at once: %d", last)
	}
	if n := strings.Count(log.String(), "another text"); n > 150 {
		t.Errorf("%d lines are logged", n)
	}
}
