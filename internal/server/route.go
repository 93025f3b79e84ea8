// The routes of all surfaces in one table, each with the access that it needs. The tests of access go through this table.

package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
)

// Access declares who may call a route. The zero value is invalid.
type Access int

const (
	// Public routes accept every request. The principal is zero unless the request has valid credentials.
	Public Access = iota + 1
	// Authenticated routes require a principal. The handler asks the gateway what the principal may do.
	Authenticated
	// Admin routes require the admin.
	Admin
	// InBand is for connections that authenticate by a message. The principal may be zero, and the handler must call
	// [Server.Authenticate] first.
	InBand
)

// String returns the name of the access for tests and messages.
func (a Access) String() string {
	switch a {
	case Public:
		return "public"
	case Authenticated:
		return "authenticated"
	case Admin:
		return "admin"
	case InBand:
		return "in band"
	}
	return fmt.Sprintf("Access(%d)", int(a))
}

// Handler answers a request of a principal. If it returns an error before it has written anything, the server responds as
// [writePlainError] does. A later error is only logged.
type Handler func(w http.ResponseWriter, r *http.Request, p gateway.Principal) error

// Route is a method of a path.
type Route struct {
	Method  string // GET also answers HEAD, unless HEAD has a separate route
	Pattern string // as in http.ServeMux, without method and host
	Access  Access
	// MaxBody is the largest body in bytes. 0 means DefaultMaxBody, a negative value means no limit.
	MaxBody int64
	// Stream marks a response without a fixed end. Its context ends with [ErrShutdown] when the server closes.
	Stream bool
	// Producer allows an agent to call the route with the token of its turn, which is invalid everywhere else.
	Producer bool
	// OwnToken leaves the header Authorization to the handler: it has a token that the handler's own service has made. The route is [Public].
	OwnToken bool
	// AnyHost allows every host name. Probes need it.
	AnyHost bool
	// Linkable allows pages of other sites to link to the route or embed its response. It is for the page and its files, which
	// are the same for all users.
	Linkable bool
	// AnyOrigin leaves the check of the origin, and the headers of CORS, to the handler.
	AnyOrigin bool
	// Errors writes errors in the format of the route's clients. If it is nil, they have Leat's format.
	Errors errorWriter
	// About is added to the response to OPTIONS.
	About   http.Header
	Handler Handler
}

// Handle registers a route. It panics if the route is incomplete or registered twice: these are bugs.
//
// It must not be called after the server serves, because the lists of routes and methods are read without
// a lock.
func (s *Server) Handle(rt Route) {
	switch {
	case rt.Method == "" || !strings.HasPrefix(rt.Pattern, "/") || rt.Handler == nil:
		panic(fmt.Sprintf("server: route %s %s is incomplete", rt.Method, rt.Pattern))
	case rt.Access < Public || rt.Access > InBand:
		panic(fmt.Sprintf("server: route %s %s has no valid Access", rt.Method, rt.Pattern))
	}
	rt.MaxBody = cmp.Or(rt.MaxBody, DefaultMaxBody)
	s.mux.Handle(rt.Method+" "+rt.Pattern, &endpoint{s: s, Route: rt})
	s.routes = append(s.routes, rt)
	if !slices.Contains(s.methods, rt.Method) {
		s.methods = append(s.methods, rt.Method)
		slices.Sort(s.methods)
	}
}

// HandleAll registers the routes of a package. access applies to the routes that don't set their own.
func (s *Server) HandleAll(access Access, routes []Route) {
	for _, rt := range routes {
		rt.Access = cmp.Or(rt.Access, access)
		s.Handle(rt)
	}
}

// Routes lists all registered routes in the order of their registration.
func (s *Server) Routes() []Route { return slices.Clone(s.routes) }

// endpoint is a route in the mux.
type endpoint struct {
	s *Server
	Route
}

// ServeHTTP implements [http.Handler] for the mux, which the server calls after the request has passed its checks.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rw := w.(*response)
	rw.err = e.s.call(rw, r, e)
}

// endpointFor returns the endpoint that would answer r if its method were another one, or nil.
func (s *Server) endpointFor(r *http.Request, method string) *endpoint {
	h, _ := s.mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host, RequestURI: r.RequestURI})
	e, _ := h.(*endpoint)
	return e
}

// about joins the About headers of the routes for r's path.
func (s *Server) about(r *http.Request, methods []string) http.Header {
	header := http.Header{}
	for _, m := range methods {
		if e := s.endpointFor(r, m); e != nil {
			maps.Copy(header, e.About)
		}
	}
	return header
}

// find returns the endpoint of a request. If no route matches, it returns the handler of the mux (a redirect to the clean
// path), or nil and the methods of the path.
func (s *Server) find(r *http.Request) (*endpoint, http.Handler, []string) {
	h, pattern := s.mux.Handler(r)
	if e, ok := h.(*endpoint); ok {
		return e, nil, nil
	}
	if pattern != "" {
		return nil, h, nil
	}
	return nil, nil, s.allowed(r)
}

// allowed returns the sorted methods that have a route for r's path, for the headers Allow and Access-Control-Allow-Methods. A
// route for GET also answers HEAD, as in http.ServeMux.
func (s *Server) allowed(r *http.Request) []string {
	var methods []string
	for _, m := range s.methods {
		if s.endpointFor(r, m) == nil {
			continue
		}
		methods = append(methods, m)
		if m == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return slices.Compact(methods)
}

// commandLimit bounds a command. It is longer than the gateway retries a commit, so that the gateway's own error, which tells the
// client whether to retry, arrives before this limit.
const commandLimit = 35 * time.Second

// CommandContext returns a context for a change that must not be abandoned halfway: it doesn't end when the client disconnects,
// only after [commandLimit]. Call cancel when the change is made.
func CommandContext(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), commandLimit)
}

// Do runs a command to its end even if the client disconnects.
func Do(ctx context.Context, gw *gateway.Gateway, p gateway.Principal, conversation string, c gateway.Command) (gateway.Ack, error) {
	ctx, cancel := CommandContext(ctx)
	defer cancel()
	return gw.Do(ctx, p, conversation, c)
}
