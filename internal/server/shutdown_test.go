package server_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// A stream that has sent no headers when the server stops gets a proper error, because its client is connected and can retry.
func TestShutdownBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.New(server.Options{})
		s.Handle(server.Route{Method: "GET", Pattern: "/stream", Access: server.Public, Stream: true, Handler: func(_ http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
			<-r.Context().Done()
			return r.Context().Err()
		}})
		l, stop := serve(t, s)
		c := ask(t, l, "GET /stream HTTP/1.1\nHost: localhost\n\n")
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		res := answer(t, c)
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("status %s, Retry-After %q; want 503 and when to come back", res.Status, res.Header.Get("Retry-After"))
		}
		_ = c.Close()
		<-stopped
	})
}
