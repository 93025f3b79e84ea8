package server

import (
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// response records the result of a request. http.ResponseController finds the methods that it lacks by Unwrap.
type response struct {
	http.ResponseWriter
	status int // 0 if nothing was sent
	bytes  int64
	err    error            // of the handler
	spare  bool             // it came on a spare connection
	head   func(status int) // called before the head is sent, if not nil
	// uncount removes the request from the count of its address. It is nil if the request has no body. crowded reports that the
	// address has too many.
	uncount func()
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

// logRequest logs neither the query nor headers, because both may contain secrets.
func (s *Server) logRequest(r *http.Request, w *response, route string, took time.Duration) {
	level := slog.LevelDebug
	switch {
	case w.spare || w.crowded: // the missing room is logged separately, once
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
	// Ids in the path are logged as separate attributes, so that a search finds all lines of a conversation or turn.
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
