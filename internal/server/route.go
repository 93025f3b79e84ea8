package server

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
)

// Access says who may call a route. The zero value is no decision, and refused.
type Access int

const (
	// Public is for everybody; the principal is nobody where the request brings no good token.
	Public Access = iota + 1
	// Authenticated needs a principal. What it may do is the gateway's to decide, which the handler asks.
	Authenticated
	// Admin needs the admin.
	Admin
	// InBand is for connections that bring their token as a message: the principal may be nobody, and the handler calls
	// [Server.Authenticate] before it does anything else.
	InBand
)

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

// Handler answers a request of a principal. An error that it returns before it has written anything is answered as
// [WriteError] does; a later one is only logged.
type Handler func(w http.ResponseWriter, r *http.Request, p gateway.Principal) error

// Route is one method of one path.
type Route struct {
	Method  string // GET answers HEAD too, unless HEAD has a route of its own
	Pattern string // as http.ServeMux has them, without method and host
	Access  Access
	// MaxBody bounds the body in bytes; 0 is DefaultMaxBody, negative is no bound.
	MaxBody int64
	// Stream marks a response that goes on until somebody ends it: its context ends with [ErrShutdown] when the server closes.
	Stream bool
	// Producer lets an agent call it with the token of the turn that was handed to it, which is good nowhere else.
	Producer bool
	// AnyHost lets the route be called under any name: a probe's.
	AnyHost bool
	// Linkable lets pages of other sites link to the route or embed its answer. It is for the page and its files, which
	// are the same for everybody.
	Linkable bool
	// Errors writes errors in the shape that the route's clients know; nil is Leat's own.
	Errors ErrorWriter
	// About is what OPTIONS tells of the path, beside its methods.
	About   http.Header
	Handler Handler
}

// Handle registers a route. It panics where the route is incomplete, undecided or registered twice: a fault of the
// program, seen at its start.
func (s *Server) Handle(rt Route) {
	switch {
	case rt.Method == "" || !strings.HasPrefix(rt.Pattern, "/") || rt.Handler == nil:
		panic(fmt.Sprintf("server: route %s %s is incomplete", rt.Method, rt.Pattern))
	case rt.Access < Public || rt.Access > InBand:
		panic(fmt.Sprintf("server: nobody decided who may call %s %s", rt.Method, rt.Pattern))
	}
	if rt.MaxBody == 0 {
		rt.MaxBody = DefaultMaxBody
	}
	s.mux.Handle(rt.Method+" "+rt.Pattern, &endpoint{s: s, Route: rt})
	s.routes = append(s.routes, rt)
	if !slices.Contains(s.methods, rt.Method) {
		s.methods = append(s.methods, rt.Method)
		slices.Sort(s.methods)
	}
}

// Routes lists all registered routes in the order of their registration.
func (s *Server) Routes() []Route { return slices.Clone(s.routes) }

// endpoint is a route in the mux.
type endpoint struct {
	s *Server
	Route
}

// ServeHTTP is called by the mux, which the server calls once the request has passed its checks.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rw := w.(*response)
	rw.err = e.s.call(rw, r, e)
}

// about is what the routes of r's path say of it.
func (s *Server) about(r *http.Request, methods []string) http.Header {
	out := http.Header{}
	for _, m := range methods {
		h, _ := s.mux.Handler(&http.Request{Method: m, URL: r.URL, Host: r.Host, RequestURI: r.RequestURI})
		if e, ok := h.(*endpoint); ok {
			maps.Copy(out, e.About)
		}
	}
	return out
}

// find looks a request's endpoint up. Where there is none it returns the handler that the mux answers with instead
// (a redirect to the clean path), or nil, and the methods that the path has.
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

// allowed lists the methods with which r's path has a route.
func (s *Server) allowed(r *http.Request) []string {
	var out []string
	for _, m := range s.methods {
		probe := &http.Request{Method: m, URL: r.URL, Host: r.Host, RequestURI: r.RequestURI}
		if h, _ := s.mux.Handler(probe); h != nil {
			if _, ok := h.(*endpoint); ok {
				out = append(out, m)
				if m == http.MethodGet && !slices.Contains(out, http.MethodHead) {
					out = append(out, http.MethodHead)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
