package server

import (
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// response remembers what became of an answer. What it does not have itself, http.ResponseController finds by Unwrap.
type response struct {
	http.ResponseWriter
	status int // 0: nothing was sent yet
	bytes  int64
	err    error            // of the handler
	spare  bool             // it came on a connection that is kept for operators
	head   func(status int) // is called before the head is sent; nil is nothing to do
	// counted takes the request out of the count of its address; crowded says that the address has too many. nil: it has no body.
	counted func()
	crowded bool
}

func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) WriteHeader(status int) {
	w.before(status)
	if w.status == 0 && status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// before calls head once, when the head of the final answer is about to be sent.
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

// logRequest logs no query and no headers: both may carry secrets.
func (s *Server) logRequest(r *http.Request, w *response, route string, took time.Duration) {
	level := slog.LevelDebug
	switch {
	case w.spare || w.crowded: // it is logged once that there is no room
	case w.status >= http.StatusInternalServerError && w.status != http.StatusServiceUnavailable:
		level = slog.LevelError
	case w.status >= http.StatusBadRequest && w.status != statusClosed:
		level = slog.LevelInfo
	}
	if !s.log.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request", RequestID(r.Context())), slog.String("method", r.Method), slog.String("route", route), slog.Int("status", w.status),
		slog.Int64("bytes", w.bytes), slog.Duration("took", took), slog.String("remote", remote(r)),
	}
	// What a route names is told by its own name, so that all lines of a conversation or turn are found by it.
	for _, name := range [][2]string{{"id", "conversation"}, {"turn", "turn"}} {
		v := r.PathValue(name[0])
		if v == "" || name[0] == "id" && !strings.HasPrefix(route, "/api/conversations/") {
			continue
		}
		attrs = append(attrs, slog.String(name[1], short(v)))
	}
	if route == "-" {
		attrs = append(attrs, slog.String("path", short(r.URL.Path)))
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// remote is who asks, for the log.
func remote(r *http.Request) string {
	if a := ClientAddr(r); a.IsValid() {
		return a.String()
	}
	return "unix" // no proxy says who it is
}

// maxLogged bounds what a client chose and the log shows, in bytes.
const maxLogged = 256

func short(s string) string {
	if len(s) > maxLogged {
		return strings.ToValidUTF8(s[:maxLogged], "") + "…"
	}
	return s
}

// uncertainEnd reports whether a proxy may disagree with net/http about where the request ends; then the connection is
// closed after the answer, so that nothing behind that end is taken for another request. net/http drops a Content-Length
// that comes with Transfer-Encoding, and a Transfer-Encoding of HTTP/1.0, before the handler sees the headers. So all requests
// that can have had both count: those in chunks, and all of HTTP/1.0.
func uncertainEnd(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.ProtoMinor == 0 || len(r.TransferEncoding) > 0)
}
