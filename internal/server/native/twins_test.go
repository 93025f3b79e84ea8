package native_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Two requests with the same key run at once. Whichever attaches first, nothing is stored twice.
func TestIngestTwins(t *testing.T) {
	h := newHarness(t, options{})
	for range 40 {
		id := h.create()
		var both sync.WaitGroup
		for range 8 {
			both.Go(func() {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+pushPath(id), strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Authorization", h.header.Get("Authorization"))
				r.Header.Set("Idempotency-Key", "k")
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					return // interrupted by the other request
				}
				_, _ = io.Copy(io.Discard, res.Body) // up to its end, whatever the result
				_ = res.Body.Close()
			})
		}
		both.Wait()
		res := h.open(http.MethodPost, pushPath(id), strings.NewReader(body), "Idempotency-Key", "k")
		_, _ = io.Copy(io.Discard, res.Body) // a third request completes what both left
		h.ended(id, res.Header.Get("Leat-Turn"))
		if got := h.folded(id).text(); got != bodyText {
			t.Fatalf("text %q, want %q", got, bodyText)
		}
	}
}
