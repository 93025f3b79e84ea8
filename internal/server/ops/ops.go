package ops

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/sse"
)

// Register adds /healthz, /readyz, /metrics and the test stream. gatherer provides /metrics, and signals what /readyz
// adds about a gateway that is ready, but not well. signals may be nil.
//
// Probes accept every host name, because an orchestrator calls them by address. /metrics does not: a page
// that points its own name at this machine must not read them.
func Register(s *server.Server, gw *gateway.Gateway, gatherer prometheus.Gatherer, signals func() []string) {
	metrics := promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	for _, rt := range []server.Route{
		{Pattern: "/healthz", AnyHost: true, Handler: func(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
			return server.Respond(w, readiness{Status: "ok"}, nil)
		}},
		{Pattern: "/readyz", AnyHost: true, Handler: func(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
			return ready(w, s, gw, signals)
		}},
		{Pattern: "/metrics", Handler: func(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
			switch {
			case p.Admin, server.Local(r):
			case p.Subject != "":
				return gateway.ErrForbidden
			default:
				return server.Errorf(http.StatusUnauthorized, server.ReasonUnauthorized, "metrics need the API token")
			}
			metrics.ServeHTTP(w, r)
			return nil
		}},
	} {
		rt.Method, rt.Access = http.MethodGet, server.Public
		s.Handle(rt)
	}
	registerSelftest(s)
}

type readiness struct {
	Status string `json:"status"`
	// Signals are problems of a gateway that is ready all the same.
	Signals []string `json:"signals,omitempty"`
}

// ready answers whether the gateway is ready. The reason goes only to the log, because a journal's error may contain paths.
//
// Draining is not logged: it is the normal end of the process.
func ready(w http.ResponseWriter, s *server.Server, gw *gateway.Gateway, signals func() []string) error {
	err := gw.Healthy()
	switch {
	case err == nil:
		r := readiness{Status: "ready"}
		if signals != nil {
			r.Signals = signals()
		}
		server.WriteJSON(w, http.StatusOK, r)
	case gw.Draining():
		server.WriteJSON(w, http.StatusServiceUnavailable, readiness{Status: "draining"})
	default:
		s.Log().Warn("not ready", "error", err)
		server.WriteJSON(w, http.StatusServiceUnavailable, readiness{Status: "commits fail"})
	}
	return nil
}

// RegisterOverview adds GET /api/overview for the admin: the status of agents and channels, and the open turns.
//
// Each request counts as an operator's visit: for the next ten seconds, the agents are checked.
func RegisterOverview(s *server.Server, o *status.Overview) {
	s.Handle(server.Route{
		Method: http.MethodGet, Pattern: "/api/overview", Access: server.Admin,
		Handler: func(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
			return server.Respond(w, o.Snapshot(), nil)
		},
	})
}

// Reloaded is the result of a configuration reload.
type Reloaded struct {
	Applied []string `json:"applied"` // keys that were applied
	Pending bool     `json:"pendingRestart"`
	Reasons []string `json:"pendingRestartReasons"` // changed since the start
}

// RegisterReload adds POST /api/config/reload, with which the admin reloads the configuration.
//
// The response lists what was applied at once and what waits for a restart. If reload returns an error,
// nothing was changed.
func RegisterReload(s *server.Server, reload func() (Reloaded, error)) {
	s.Handle(server.Route{
		Method: http.MethodPost, Pattern: "/api/config/reload", Access: server.Admin,
		Handler: func(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
			report, err := reload()
			if err != nil {
				return err
			}
			server.WriteJSON(w, http.StatusOK, struct {
				OK bool `json:"ok"`
				Reloaded
			}{true, report})
			return nil
		},
	})
}

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
