// The routes.

package durable

import (
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// source is the name of the output in metrics.
const source = "durable-streams"

// Options configure the routes.
type Options struct {
	// Wait is how long a long poll waits for data. It must be below the time after which proxies give up a request without an answer.
	Wait time.Duration
}

// surface has the handlers. All fields are set before the first request.
type surface struct {
	srv     *server.Server
	gw      *gateway.Gateway
	viewers *server.ViewerMetrics
	wait    time.Duration
}

// Register adds the routes to a server. The paths are below that of the protocol's reference server.
func Register(srv *server.Server, gw *gateway.Gateway, opt Options) {
	s := &surface{srv: srv, gw: gw, viewers: srv.Metrics().Viewers(source), wait: opt.Wait}
	view := func(pattern, below string, h server.Handler) (routes []server.Route) {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			routes = append(routes, server.Route{Method: method, Pattern: pattern, Handler: secured(h), Stream: method == http.MethodGet, Errors: respondError})
		}
		for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete} {
			routes = append(routes, server.Route{Method: method, Pattern: below, Handler: secured(readOnly), Errors: respondError})
		}
		return routes
	}
	srv.HandleAll(server.Authenticated, view("/v1/stream/conversations/{id}", "/v1/stream/conversations/{path...}", s.conversation))
	srv.HandleAll(server.Authenticated, view("/v1/stream/turns/{turn}", "/v1/stream/turns/{path...}", s.turn))
}
