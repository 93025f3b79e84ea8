package ops

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
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
			server.WriteJSON(w, http.StatusOK, readiness{Status: "ok"})
			return nil
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
