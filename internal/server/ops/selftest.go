package ops

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/sse"
)

// The number of frames of GET /api/selftest/stream, and their interval.
const (
	selftestFrames = 5
	selftestEvery  = 100 * time.Millisecond
)

// selftestFrame is a frame of the test stream. It shows a client whether something between it and the gateway delays frames or
// changes requests.
type selftestFrame struct {
	N    int   `json:"n"`    // from 1
	Sent int64 `json:"sent"` // gateway's clock, epoch milliseconds

	// The request as the gateway received it; only in the first frame.
	Headers []string `json:"headers,omitempty"` // those of selftestHeaders that arrived
	Host    string   `json:"host,omitempty"`
	HTTPS   bool     `json:"https,omitempty"` // as reported by a trusted proxy
	Proxied bool     `json:"proxied,omitempty"`
	Proto   string   `json:"proto,omitempty"`
}

// selftestHeaders are the headers that Leat's clients need.
var selftestHeaders = []string{"Last-Event-Id", "Idempotency-Key", "Upload-Offset", "Traceparent"}

// registerSelftest adds GET /api/selftest/stream, which leat doctor reads.
func registerSelftest(s *server.Server) {
	s.Handle(server.Route{
		Method: http.MethodGet, Pattern: "/api/selftest/stream", Access: server.Authenticated, Stream: true,
		Handler: func(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
			if err := gateway.Decide(p, gateway.ActionList, nil); err != nil {
				return err
			}
			return selftest(s, w, r)
		},
	})
}

// The client compares the arrival of the frames with their interval. If all of them arrive together, a
// proxy between the two buffers streams. The first frame reports the request as the gateway saw it, from
// which the client concludes what a proxy removed or changed.
func selftest(s *server.Server, w http.ResponseWriter, r *http.Request) error {
	st, err := s.OpenStream(w, r, http.StatusOK, server.EventStream)
	if err != nil || st.Head() {
		return err
	}
	tick := time.NewTicker(selftestEvery)
	defer tick.Stop()
	// Each frame is flushed on its own, because a test of buffering needs separate writes.
	for n := 1; ; n++ {
		f := selftestFrame{N: n, Sent: time.Now().UnixMilli()}
		if n == 1 {
			for _, name := range selftestHeaders {
				if r.Header.Get(name) != "" {
					f.Headers = append(f.Headers, name)
				}
			}
			f.Host, f.HTTPS, f.Proto = r.Host, server.HTTPS(r), r.Proto
			f.Proxied = r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "" || r.Header.Get("Via") != ""
		}
		b, err := json.Marshal(f)
		if err != nil {
			return fmt.Errorf("selftest: %w", err)
		}
		if b, err = sse.AppendEvent(nil, "", "", b); err != nil {
			return fmt.Errorf("selftest: %w", err)
		}
		if st.Write(b) != nil || n == selftestFrames {
			return nil // the client disconnected, or has all frames
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return nil
		}
	}
}
