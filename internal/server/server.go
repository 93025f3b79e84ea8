package server

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/internal/netpoll"
)

// Server serves the routes that protocol packages register. Register all of them before it serves. After that, it is safe for
// concurrent use.
type Server struct {
	opt     Options
	log     *slog.Logger
	mux     *http.ServeMux
	routes  []Route
	methods []string
	shapes  map[string]errorWriter // of errors, by path prefix

	streams  liveStreams
	conns    *connections
	poller   netpoll.Poller
	reach    atomic.Pointer[Reach]
	attempts attempts
	sessions liveSessions

	refusedOrigins originLog
}

var _ http.Handler = (*Server)(nil)

// New returns a server that only has the session's routes.
func New(opt Options) *Server {
	opt.setDefaults()
	s := &Server{opt: opt, log: opt.Log, mux: http.NewServeMux()}
	s.SetReach(Reach{opt.Hosts, opt.AllowedOrigins, opt.AppOrigins})
	if n := affordable(descriptors(), opt.MaxConnections); n < opt.MaxConnections {
		s.log.Info("connections are capped by the process's limit on open files", "max", n, "configured", opt.MaxConnections, "files", descriptors())
		s.opt.MaxConnections = n
	}
	s.conns = newConnections(s.opt.MaxConnections, func(a netip.Addr) bool { return s.trusted(nil, a) }, s.log, s.opt.Metrics)
	s.registerSession()
	return s
}

// Options returns the options, with defaults.
func (s *Server) Options() Options { return s.opt }

// Log returns the server's logger.
func (s *Server) Log() *slog.Logger { return s.log }

// Metrics returns the server's metrics.
func (s *Server) Metrics() *Metrics { return s.opt.Metrics }

// Close ends all streams. Later requests are still answered, but their streams end at once.
func (s *Server) Close() { s.streams.close() }

var errNoRoute = &Error{Status: http.StatusNotFound, Reason: ReasonNotFound, Message: "not found"}

// ServeHTTP implements [http.Handler].
//
// It resolves the proxy's headers, finds the route, guards the body, and runs the checks and the handler.
// Every request ends in the deferred function, which also catches panics, counts the request and logs it.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := &response{ResponseWriter: rw, spare: noteHead(r), start: time.Now()}
	r = s.label(w, s.resolve(r))
	route := "-"
	var (
		e        *endpoint
		redirect http.Handler
		allow    []string
	)
	defer func() {
		p := recover()
		if p != nil && p != http.ErrAbortHandler {
			s.log.Error("handler panicked", "request", RequestID(r.Context()), "method", r.Method, "route", route, "panic", p, "stack", string(debug.Stack()))
			if w.status == 0 {
				s.writeError(e, w, r, errors.New("panic"))
				p = nil
			}
		}
		if !w.isDetached {
			s.finish(r.Context(), newRecord(r, w, route), e)
		}
		if p != nil {
			panic(http.ErrAbortHandler) // a partial response must not look complete
		}
	}()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if w.spare {
		w.Header().Set("Connection", "close")
	}
	r, outside := s.below(r)
	e, redirect, allow = s.find(r)
	if outside && (e == nil || !e.AnyHost) {
		e, redirect, allow = nil, nil, nil
		if r.URL.Path == s.opt.BasePath {
			redirect = http.RedirectHandler("/", http.StatusPermanentRedirect)
		}
	}
	if e != nil {
		route = e.Pattern
	}
	if uncertainEnd(r) {
		w.Header().Set("Connection", "close")
	}
	defer s.guardBody(w, r, e)()
	if err := s.serve(w, r, e, redirect, allow); err != nil {
		if d := Describe(err); d.Status == http.StatusInternalServerError {
			s.log.Error("request failed", "request", RequestID(r.Context()), "method", r.Method, "route", route, "error", err)
		}
		if w.status == 0 {
			s.writeError(e, w, r, err)
		}
	}
}

// finish counts and logs a request that has ended.
func (s *Server) finish(ctx context.Context, rec record, e *endpoint) {
	s.opt.Metrics.request(&rec, e)
	s.logRequest(ctx, &rec)
}

// serve checks the request in the order that the package documentation states, and passes it to its
// endpoint. Except for sockets, requests that
// no route matches are answered only after the checks, so a foreign page does not learn which paths exist.
func (s *Server) serve(w *response, r *http.Request, e *endpoint, redirect http.Handler, allow []string) error {
	if !s.TokenNeeded() && !toLoopback(r) {
		return Errorf(http.StatusForbidden, ReasonForbidden, "no token is configured, so only connections to a loopback address are accepted; configure a token")
	}
	if !s.TokenNeeded() && callerOf(r).outside {
		return Errorf(http.StatusForbidden, ReasonForbidden, "no token is configured, so requests that a proxy forwards from other machines are refused; configure a token")
	}
	if e == nil || !e.AnyHost {
		// The host that a proxy reports is checked in addition to the one that it used, because the client may have written it.
		for _, host := range []string{r.Host, callerOf(r).host} {
			if !s.hostAllowed(r, host) {
				return Errorf(http.StatusForbidden, ReasonForbidden, "unknown host %q; add it to the configured hosts", host)
			}
		}
	}
	if e == nil && redirect == nil && len(allow) == 0 && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return errNoRoute // sockets of Eliza's clients get this error before their origin is checked
	}
	cors, ok := s.origin(r, redirect != nil || e != nil && (e.Linkable || e.AnyHost))
	switch {
	case e != nil && e.AnyHost:
		cors = "*" // so that a page that may not call learns that the gateway runs and refuses it
	case e != nil && e.AnyOrigin:
		cors = ""
	case !ok && r.Header.Get("Origin") == "":
		return Errorf(http.StatusForbidden, ReasonForbidden, "request from a page of another site without an origin; such a page can only link to the gateway's page")
	case !ok:
		origin := r.Header.Get("Origin")
		s.refusedOrigins.logRefused(s.log, origin)
		return Errorf(http.StatusForbidden, ReasonForbidden, "the origin %q is not allowed; add it to %s", origin, originSetting(origin))
	}
	setCORS(w.Header(), cors)
	if s.byPublicHost(r.Host) && s.opt.PublicURL.Scheme == "https" && callerOf(r).https {
		w.Header().Set("Strict-Transport-Security", "max-age="+hstsAge)
	}
	switch {
	case e != nil:
		s.mux.ServeHTTP(w, r) // sets the path values and calls the endpoint
		return w.err
	case r.Method == http.MethodOptions:
		maps.Copy(w.Header(), s.about(r, allow))
		s.preflight(w, allow, cors)
		return nil
	case redirect != nil:
		redirect.ServeHTTP(&rebased{w, s.prefix(r)}, r)
		return nil
	case len(allow) > 0:
		w.Header().Set("Allow", strings.Join(allow, ", "))
		return Errorf(http.StatusMethodNotAllowed, ReasonMethod, "method %s is not allowed here; use %s", r.Method, strings.Join(allow, " or "))
	}
	// Without a token, a client must not learn which paths exist.
	if _, err := s.identify(r); err != nil && strings.HasPrefix(r.URL.Path, "/api/") {
		_, token := presented(r)
		s.opt.Metrics.Unauthorized(token)
		return err
	}
	return errNoRoute
}

// call authenticates the request, sets its limits and runs the handler.
//
// A route that is open to everybody gets the identity in the context, also if the credentials are invalid.
// Only a socket with an invalid token is refused, because its client would wait in vain for frames. Spare
// connections serve only probes and the admin. The count of the address ends with valid credentials,
// before the body is read.
func (s *Server) call(w *response, r *http.Request, e *endpoint) error {
	id, err := s.producer(r, e)
	if err == nil && id.Turn == "" && !e.OwnToken {
		id, err = s.identify(r)
	}
	_, token := presented(r)
	open := e.Access == Public || e.Access == InBand
	if err != nil && (token || !open) {
		s.opt.Metrics.Unauthorized(token)
	}
	switch {
	case open:
		if err != nil && token && e.Access == InBand {
			return err
		}
		r = r.WithContext(context.WithValue(r.Context(), askedKey{}, identification{id, err}))
	case err != nil:
		return err
	}
	if w.spare && !e.AnyHost && (!id.Admin || e.Stream && e.Access != Admin) {
		return errFull
	}
	if err == nil && !e.OwnToken {
		s.uncount(w)
	}
	if w.crowded {
		return errCrowded
	}
	if e.Access == Admin && !id.Admin {
		return gateway.ErrForbidden
	}
	if addr := ClientAddr(r); addr.IsValid() {
		r = r.WithContext(gateway.WithFrom(r.Context(), addr.String()))
	}
	if e.MaxBody > 0 {
		if r.ContentLength > e.MaxBody {
			return &http.MaxBytesError{Limit: e.MaxBody} // the declared length is too large, so reading the body would be useless
		}
		r.Body = &timedBody{ReadCloser: http.MaxBytesReader(w, r.Body, e.MaxBody), rc: http.NewResponseController(w), limit: s.opt.BodyTimeout}
	}
	if e.Stream {
		var end func()
		r, end = s.stream(r, e, id)
		defer end()
		w.detach = func(cancel context.CancelCauseFunc) func(int64) { return s.detach(w, r, e, id, cancel) }
	}
	err = e.Handler(w, r, id.Principal)
	if !errors.Is(err, context.Canceled) {
		return err
	}
	// If the client is still connected, it may retry.
	switch cause := context.Cause(r.Context()); {
	case cause == nil:
		return ErrShutdown // the gateway gave the request up, as it does when it stops
	case !errors.Is(cause, context.Canceled):
		return cause
	}
	return err
}
