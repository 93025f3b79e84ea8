// The routes.

package durable

import (
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/streams"
	"github.com/leat-dev/leat/internal/server"
)

// source is the name of the output in metrics.
const source = "durable-streams"

// Options configure the routes.
type Options struct {
	// Wait is how long a long poll waits for data. It must be below the time after which proxies give up a request
	// without an answer.
	Wait time.Duration
	// Store has the streams that users create. If it is nil, they can't create any.
	Store *streams.Store
}

// surface has the handlers. All fields are set before the first request.
type surface struct {
	srv     *server.Server
	gw      *gateway.Gateway
	viewers *server.ViewerMetrics
	wait    time.Duration
	// May be nil.
	store *streams.Store
}

// Register adds the routes to a server. The paths are below that of the protocol's reference server.
func Register(srv *server.Server, gw *gateway.Gateway, opt Options) {
	s := &surface{srv: srv, gw: gw, viewers: srv.Metrics().Viewers(source), wait: opt.Wait, store: opt.Store}
	// Writes to a view have routes too, so that they get the protocol's refusal, and can't create a stored stream
	// that the view would hide.
	view := func(pattern, below string, h server.Handler) (routes []server.Route) {
		// It also answers HEAD, whose own routes would be ambiguous next to the general path of stored streams.
		routes = append(routes, server.Route{Method: http.MethodGet, Pattern: pattern, Handler: secured(h), Stream: true, Errors: respondError})
		for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete} {
			routes = append(routes, server.Route{Method: method, Pattern: below, Handler: secured(readOnly), Errors: respondError})
		}
		return routes
	}
	srv.HandleAll(server.Authenticated, view(root+"conversations/{id}", root+"conversations/{path...}", s.conversation))
	srv.HandleAll(server.Authenticated, view(root+"turns/{turn}", root+"turns/{path...}", s.turn))
	if s.store != nil {
		s.registerStore()
		s.registerSubscriptions()
	}
}
