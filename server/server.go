package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/gateway"
)

// Server answers HTTP requests by the routes that surfaces registered. Register all of them before it serves; from then
// on it may be used from several goroutines.
type Server struct {
	opt     Options
	log     *slog.Logger
	mux     *http.ServeMux
	routes  []Route
	methods []string

	// streams ends when streams are told to end; open are those that have not yet.
	streams context.Context
	end     context.CancelCauseFunc
	open    sync.WaitGroup
}

var _ http.Handler = (*Server)(nil)

// New returns a server with the routes of the session alone.
func New(opt Options) *Server {
	opt.setDefaults()
	s := &Server{opt: opt, log: opt.Log, mux: http.NewServeMux()}
	s.streams, s.end = context.WithCancelCause(context.Background())
	s.registerSession()
	return s
}

// Options returns what the server was made of, with the defaults filled in.
func (s *Server) Options() Options { return s.opt }

// Log returns the server's logger, for surfaces.
func (s *Server) Log() *slog.Logger { return s.log }

// Close tells all streams to end. Requests are still answered; streams end at once.
func (s *Server) Close() { s.end(ErrShutdown) }

var errNoRoute = &Error{Status: http.StatusNotFound, Reason: ReasonNotFound, Message: "there is nothing at this path"}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := &response{ResponseWriter: rw}
	start := time.Now()
	route := "-"
	defer func() {
		p := recover()
		if p == http.ErrAbortHandler {
			panic(p)
		}
		if p != nil {
			s.log.Error("handler panicked", "method", r.Method, "route", route, "panic", p, "stack", string(debug.Stack()))
			if w.status != 0 {
				panic(http.ErrAbortHandler) // an answer that has begun must not look whole
			}
			WriteError(w, errors.New("panic"))
		}
		s.logRequest(r, w, route, time.Since(start))
	}()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	e, redirect, allow := s.find(r)
	if e != nil {
		route = e.Pattern
	}
	defer s.guardBody(w, r, e)()
	if err := s.serve(w, r, e, redirect, allow); err != nil {
		if d := Describe(err); d.Status == http.StatusInternalServerError {
			s.log.Error("request failed", "method", r.Method, "route", route, "err", err)
		}
		if w.status == 0 {
			WriteError(w, err)
		}
	}
}

func (s *Server) serve(w *response, r *http.Request, e *endpoint, redirect http.Handler, allow []string) error {
	if !s.TokenNeeded() && !toLoopback(r) {
		return Errorf(http.StatusForbidden, ReasonForbidden, "no token is configured, so only connections on the loopback address are answered")
	}
	if (e == nil || !e.AnyHost) && !s.hostAllowed(r) {
		return Errorf(http.StatusForbidden, ReasonForbidden, "the host %q is not this server's; add it to the configured hosts", r.Host)
	}
	cors, ok := s.origin(r)
	if !ok {
		return Errorf(http.StatusForbidden, ReasonForbidden, "the origin %q is not among the allowed ones", r.Header.Get("Origin"))
	}
	setCORS(w.Header(), cors)
	switch {
	case e != nil:
		s.mux.ServeHTTP(w, r) // which sets the path's values and comes back by way of the endpoint
		return w.err
	case r.Method == http.MethodOptions:
		s.preflight(w, r, cors)
		return nil
	case redirect != nil:
		redirect.ServeHTTP(w, r)
		return nil
	case len(allow) > 0:
		w.Header().Set("Allow", strings.Join(allow, ", "))
		return Errorf(http.StatusMethodNotAllowed, ReasonMethod, "this path knows %s, not %s", strings.Join(allow, ", "), r.Method)
	}
	// What exists is nobody's business who has no token.
	if _, err := s.principal(r); err != nil && strings.HasPrefix(r.URL.Path, "/api/") {
		return err
	}
	return errNoRoute
}

// call resolves the principal, sets the limits and runs the handler.
func (s *Server) call(w *response, r *http.Request, e *endpoint) error {
	p, err := s.principal(r)
	switch {
	case err == nil:
	case e.Access == Public || e.Access == InBand:
		p = gateway.Principal{}
		if _, bad := presented(r); bad && e.Access == InBand {
			return err
		}
	default:
		return err
	}
	if e.Access == Admin && !p.Admin {
		return gateway.ErrForbidden
	}
	if e.MaxBody > 0 {
		r.Body = &timedBody{ReadCloser: http.MaxBytesReader(w, r.Body, e.MaxBody), rc: http.NewResponseController(w), limit: s.opt.BodyTimeout}
	}
	if e.Stream {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer context.AfterFunc(s.streams, func() { cancel(ErrShutdown) })()
		s.open.Add(1)
		defer s.open.Done()
		r = r.WithContext(ctx)
	}
	err = e.Handler(w, r, p)
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(r.Context()), ErrShutdown) {
		return ErrShutdown // the client is still there, and may come back
	}
	return err
}
