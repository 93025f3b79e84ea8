package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// response records the result of a request. http.ResponseController finds the methods that it lacks by Unwrap.
type response struct {
	http.ResponseWriter
	start time.Time
	// 0 if nothing was sent.
	status int
	bytes  int64
	// Of the handler.
	err error
	// It came on a spare connection.
	spare bool
	// Called before the head is sent, if not nil.
	head func(status int)
	// uncount removes the request from the count of its address. It is nil if the request has no body. crowded reports that the
	// address has too many.
	uncount func()
	crowded bool
	// detach is set for streams. isDetached reports that it was called, so that the request ends later than its handler.
	detach     func(cancel context.CancelCauseFunc) (end func(bytes int64))
	isDetached bool
}

func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) WriteHeader(status int) {
	w.before(status)
	if w.status == 0 && status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// before calls head once, before the head of the final response is sent.
func (w *response) before(status int) {
	if w.head != nil && status >= http.StatusOK {
		w.head(status)
		w.head = nil
	}
}

func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.before(http.StatusOK)
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// record is what the log and the metrics report of a request. It refers to no part of the request, which a detached stream would keep in
// memory otherwise.
type record struct {
	id, method, route, remote, path string
	conversation, turn              string
	status                          int
	bytes                           int64
	// For want of room, which is logged separately, once.
	isRefused bool
	start     time.Time
}

// newRecord returns the record of a request that has ended, or is detached now.
func newRecord(r *http.Request, w *response, route string) record {
	rec := record{
		id: RequestID(r.Context()), method: r.Method, route: route, remote: remote(r), status: w.status, bytes: w.bytes,
		isRefused: w.spare || w.crowded, start: w.start,
	}
	// Ids in the path are logged as separate attributes, so that a search finds all lines of a conversation or turn.
	rec.turn = short(r.PathValue("turn"))
	if strings.HasPrefix(route, "/api/conversations/") {
		rec.conversation = short(r.PathValue("id"))
	}
	if route == "-" {
		rec.path = short(r.URL.Path)
	}
	return rec
}

// logRequest logs neither the query nor headers, because both may contain secrets.
func (s *Server) logRequest(ctx context.Context, rec *record) {
	level := slog.LevelDebug
	switch {
	case rec.isRefused:
	case rec.status >= http.StatusInternalServerError && rec.status != http.StatusServiceUnavailable:
		level = slog.LevelError
	case rec.status >= http.StatusBadRequest && rec.status != statusClosed:
		level = slog.LevelInfo
	}
	if !s.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request", rec.id), slog.String("method", rec.method), slog.String("route", rec.route), slog.Int("status", rec.status),
		slog.Int64("bytes", rec.bytes), slog.Duration("took", time.Since(rec.start)), slog.String("remote", rec.remote),
	}
	for _, a := range []slog.Attr{slog.String("conversation", rec.conversation), slog.String("turn", rec.turn), slog.String("path", rec.path)} {
		if a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	s.log.LogAttrs(ctx, level, "request", attrs...)
}

// remote returns the client's address for the log.
func remote(r *http.Request) string {
	if a := ClientAddr(r); a.IsValid() {
		return a.String()
	}
	return "unix" // no proxy reports the client
}

// maxLogged is the longest client-chosen text in the log, in bytes.
const maxLogged = 256

func short(s string) string {
	if len(s) > maxLogged {
		return strings.ToValidUTF8(s[:maxLogged], "") + "…"
	}
	return s
}

// uncertainEnd reports whether a proxy may disagree with net/http about the end of a request. The connection is then closed
// after the response, so that nothing behind the request is mistaken for another one. net/http removes a Content-Length next to
// Transfer-Encoding, and the Transfer-Encoding of HTTP/1.0, before the handler sees the headers. So every request that may have
// had both is uncertain: chunked ones, and all of HTTP/1.0.
func uncertainEnd(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.ProtoMinor == 0 || len(r.TransferEncoding) > 0)
}

// Deadlines for request bodies: a client that stops sending is disconnected, however long the handler takes.

var (
	errFull = &Error{
		Status: http.StatusServiceUnavailable, Reason: ReasonBusy, Message: "too many connections", RetryAfter: retryFull,
	}
	errCrowded = &Error{
		Status: http.StatusServiceUnavailable, Reason: ReasonBusy, Message: "too many requests of your address have not ended", RetryAfter: retryFull,
	}
)

// retryFull is the Retry-After of a request from an address with too many unfinished requests.
const retryFull = 5 * time.Second

// timedBody renews the read deadline of a body with each read, so that a client that stops sending is disconnected. At the end
// of the body it removes the deadline, which would otherwise end a long response. After an error it leaves it, so that net/http
// does not wait for the rest before it responds.
type timedBody struct {
	io.ReadCloser
	rc       *http.ResponseController
	limit    time.Duration
	complete bool
}

// Read moves the deadline on before each read, so the limit is for a pause and not for the whole body. The deadline ends with the
// body: a later one would cut a response that takes longer.
func (b *timedBody) Read(p []byte) (int, error) {
	if !b.complete {
		_ = b.rc.SetReadDeadline(time.Now().Add(b.limit)) // without an effect if the writer has no deadlines
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil && !b.complete {
		b.complete = true
		if err == io.EOF {
			_ = b.rc.SetReadDeadline(time.Time{})
		}
	}
	return n, err
}

// bodyWatcher is a body that reports its end.
type bodyWatcher struct {
	io.ReadCloser
	at func()
}

func (b *bodyWatcher) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.at()
	}
	return n, err
}

// hasBody reports whether a request may have a body.
func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// guardBody makes sure that no response waits for the rest of an unread body, which net/http would read before it responds. It
// counts the request for its address until the body has arrived. Call it before the request can be refused, and its result
// after the response.
//
// Without it, a client could hold a connection by sending a body slowly to a request that was refused at
// once. The function distinguishes bodies of streams, which may take as long as they like, and
// ordinary ones, whose client must not pause for longer than BodyTimeout.
func (s *Server) guardBody(w *response, r *http.Request, e *endpoint) (after func()) {
	if !hasBody(r) {
		return func() {}
	}
	rc := http.NewResponseController(w)
	if e != nil && e.MaxBody < 0 {
		// The body of a stream has no limit in time, and the response is sent meanwhile. The connection is not reused, because
		// net/http panics if the rest of such a body ends after the handler has returned.
		_ = rc.EnableFullDuplex()
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
		}
		return func() {
			if !w.isDetached {
				_ = rc.SetReadDeadline(time.Now().Add(leftoverTimeout))
				leave(r)
			}
		}
	}
	_ = rc.SetReadDeadline(time.Now().Add(s.opt.BodyTimeout))
	probe := e != nil && e.AnyHost
	w.uncount, w.crowded = func() {}, false
	if !probe {
		w.uncount, w.crowded = s.conns.body(ClientAddr(r))
	}
	complete := false
	r.Body = &bodyWatcher{r.Body, func() { complete = true; w.uncount() }}
	w.head = func(status int) {
		// Read what has arrived already, so that the connection can be reused, but don't wait for a slow body. The deadline
		// must not end a stream.
		unread := status >= http.StatusBadRequest || r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case complete || !unread || e != nil && e.Stream:
		case probe || w.crowded:
			w.Header().Set("Connection", "close")
			_ = rc.SetReadDeadline(time.Now())
		default:
			_ = rc.SetReadDeadline(time.Now().Add(leftoverTimeout))
		}
	}
	return func() {
		w.uncount()
		if !complete {
			leave(r)
		}
	}
}

// uncount takes a request out of the count of its address, because its sender has valid credentials: the host of an agent
// may push many turns at once. Without any configured token, every request stays counted.
func (s *Server) uncount(w *response) {
	if w.uncount != nil && s.TokenNeeded() {
		w.uncount()
		w.crowded = false
	}
}
