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
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
)

// Server answers HTTP requests by the routes that surfaces registered. Register all of them before it serves; from then
// on it may be used from several goroutines.
type Server struct {
	opt     Options
	log     *slog.Logger
	mux     *http.ServeMux
	routes  []Route
	methods []string
	shapes  map[string]ErrorWriter // of errors, by prefix of paths

	// streams ends when streams are told to end; open are those that have not yet.
	streams context.Context
	end     context.CancelCauseFunc
	open    sync.WaitGroup

	conns    *connections
	reach    atomic.Pointer[Reach]
	attempts attempts
	live     liveSessions

	refusedOrigins originLog
}

var _ http.Handler = (*Server)(nil)

// New returns a server with the routes of the session alone.
func New(opt Options) *Server {
	opt.setDefaults()
	s := &Server{opt: opt, log: opt.Log, mux: http.NewServeMux()}
	s.SetReach(Reach{opt.Hosts, opt.AllowedOrigins, opt.AppOrigins})
	s.streams, s.end = context.WithCancelCause(context.Background())
	if n := affordable(descriptors(), opt.MaxConnections); n < opt.MaxConnections {
		s.log.Info("connections are capped by the process's limit on open files", "max", n, "configured", opt.MaxConnections, "files", descriptors())
		s.opt.MaxConnections = n
	}
	s.conns = newConnections(s.opt.MaxConnections, func(a netip.Addr) bool { return s.trusted(nil, a) }, s.log, s.opt.Metrics)
	s.registerSession()
	return s
}

// Options returns what the server was made of, with the defaults filled in.
func (s *Server) Options() Options { return s.opt }

// Log returns the server's logger, for surfaces.
func (s *Server) Log() *slog.Logger { return s.log }

// Metrics returns what the server counts, for surfaces.
func (s *Server) Metrics() *Metrics { return s.opt.Metrics }

// Close tells all streams to end. Requests are still answered; streams end at once.
func (s *Server) Close() { s.end(ErrShutdown) }

var errNoRoute = &Error{Status: http.StatusNotFound, Reason: ReasonNotFound, Message: "there is nothing at this path"}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := &response{ResponseWriter: rw, spare: noteHead(r)}
	start := time.Now()
	r = s.label(w, s.resolve(r))
	route := "-"
	var (
		e        *endpoint
		redirect http.Handler
		allow    []string
	)
	defer func() {
		p := recover()
		if p == http.ErrAbortHandler {
			panic(p)
		}
		if p != nil {
			s.log.Error("handler panicked", "request", RequestID(r.Context()), "method", r.Method, "route", route, "panic", p, "stack", string(debug.Stack()))
			if w.status != 0 {
				panic(http.ErrAbortHandler) // an answer that has begun must not look whole
			}
			s.writeError(e, w, r, errors.New("panic"))
		}
		took := time.Since(start)
		s.opt.Metrics.request(r, e, w.status, took)
		s.logRequest(r, w, route, took)
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

func (s *Server) serve(w *response, r *http.Request, e *endpoint, redirect http.Handler, allow []string) error {
	if !s.TokenNeeded() && !toLoopback(r) {
		return Errorf(http.StatusForbidden, ReasonForbidden, "no token is configured, so only connections on the loopback address are answered")
	}
	if !s.TokenNeeded() && callerOf(r).outside {
		return Errorf(http.StatusForbidden, ReasonForbidden, "no token is configured, so what a proxy passes on from elsewhere is not answered")
	}
	if e == nil || !e.AnyHost {
		// The name that a proxy tells counts beside the one that it used, not in place of it: it may be the client's own.
		for _, host := range []string{r.Host, callerOf(r).host} {
			if !s.hostAllowed(r, host) {
				return Errorf(http.StatusForbidden, ReasonForbidden, "the host %q is not this server's; add it to the configured hosts", host)
			}
		}
	}
	if e == nil && redirect == nil && len(allow) == 0 && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return errNoRoute // sockets of Eliza's clients are told so before their origin is looked at
	}
	cors, ok := s.origin(r, redirect != nil || e != nil && (e.Linkable || e.AnyHost))
	switch {
	case e != nil && e.AnyHost:
		cors = "*" // so that a page that may not call learns that the gateway runs and refuses it
	case !ok && r.Header.Get("Origin") == "":
		return Errorf(http.StatusForbidden, ReasonForbidden, "a page of another site made this request without an origin; it can link to the gateway's page only")
	case !ok:
		origin := r.Header.Get("Origin")
		s.refusedOrigins.refused(s.log, origin)
		return Errorf(http.StatusForbidden, ReasonForbidden, "the origin %q is not allowed; add it to %s", origin, originSetting(origin))
	}
	setCORS(w.Header(), cors)
	if s.byPublicHost(r.Host) && s.opt.PublicURL.Scheme == "https" && callerOf(r).https {
		w.Header().Set("Strict-Transport-Security", "max-age="+hstsAge)
	}
	switch {
	case e != nil:
		s.mux.ServeHTTP(w, r) // which sets the path's values and comes back by way of the endpoint
		return w.err
	case r.Method == http.MethodOptions:
		maps.Copy(w.Header(), s.about(r, allow))
		s.preflight(w, allow, cors)
		return nil
	case redirect != nil:
		redirect.ServeHTTP(&rebased{w, s.Prefix(r)}, r)
		return nil
	case len(allow) > 0:
		w.Header().Set("Allow", strings.Join(allow, ", "))
		return Errorf(http.StatusMethodNotAllowed, ReasonMethod, "this path knows %s, not %s", strings.Join(allow, ", "), r.Method)
	}
	// What exists is nobody's business who has no token.
	if _, err := s.identify(r); err != nil && strings.HasPrefix(r.URL.Path, "/api/") {
		_, token := presented(r)
		s.opt.Metrics.Unauthorized(token)
		return err
	}
	return errNoRoute
}

// call resolves the principal, sets the limits and runs the handler.
func (s *Server) call(w *response, r *http.Request, e *endpoint) error {
	id, err := s.producer(r, e)
	if err == nil && id.Turn == "" {
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
	if err == nil {
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
			return &http.MaxBytesError{Limit: e.MaxBody} // it says so itself; there is nothing to wait for
		}
		r.Body = &timedBody{ReadCloser: http.MaxBytesReader(w, r.Body, e.MaxBody), rc: http.NewResponseController(w), limit: s.opt.BodyTimeout}
	}
	if e.Stream {
		var end func()
		r, end = s.stream(r, e, id)
		defer end()
	}
	err = e.Handler(w, r, id.Principal)
	if !errors.Is(err, context.Canceled) {
		return err
	}
	// Where the client is still there, it may come back.
	switch cause := context.Cause(r.Context()); {
	case cause == nil:
		return ErrShutdown // the gateway gave up in the middle of it, as it does when it stops
	case !errors.Is(cause, context.Canceled):
		return cause
	}
	return err
}

// stream gives the request of a stream a context that ends with the server, with the session that it came by, and, unless
// the connection can renew it, with the proof of who asks.
func (s *Server) stream(r *http.Request, e *endpoint, id Identity) (_ *http.Request, end func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	unhook := []func() bool{context.AfterFunc(s.streams, func() { cancel(ErrShutdown) })}
	if id.session != "" {
		unhook = append(unhook, s.live.add(id.session, cancel))
		if s.opt.Sessions.Ended(id.session) { // since the request was let in
			cancel(errLoggedOut)
		}
	}
	if e.Access != InBand && !id.Expires.IsZero() {
		unhook = append(unhook, time.AfterFunc(time.Until(id.Expires), func() { cancel(ErrExpired) }).Stop)
	}
	s.open.Add(1)
	return r.WithContext(ctx), func() {
		for _, fn := range unhook {
			fn()
		}
		cancel(nil)
		s.open.Done()
	}
}
