package server

import (
	"context"
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
