package server

import (
	"io"
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
	err    error // of the handler
}

func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
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

// timedBody renews the deadline of a body as it comes, so that a client that stops in the middle is cut off. The deadline
// goes away with the body's end, since it would otherwise end a long answer; after an error it stays, so that net/http does
// not wait for the rest before it answers.
type timedBody struct {
	io.ReadCloser
	rc    *http.ResponseController
	limit time.Duration
	ended bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	if !b.ended {
		_ = b.rc.SetReadDeadline(time.Now().Add(b.limit)) // not every writer has deadlines; then there is none
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil && !b.ended {
		b.ended = true
		if err == io.EOF {
			_ = b.rc.SetReadDeadline(time.Time{})
		}
	}
	return n, err
}

// uncertainEnd reports whether a proxy may disagree with net/http about where the request ends; then the connection is
// closed after the answer, so that nothing behind that end is taken for another request. net/http drops a Content-Length
// beside Transfer-Encoding, and a Transfer-Encoding of HTTP/1.0, before the handler sees the headers. So all requests
// that can have had both count: those in chunks, and all of HTTP/1.0.
func uncertainEnd(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.ProtoMinor == 0 || len(r.TransferEncoding) > 0)
}

// guardBody sees to it that no answer waits for a body that nobody reads: net/http wants to read the rest of one before it
// answers. It is called before anything can be refused; the result is called when the answer is written.
func (s *Server) guardBody(w http.ResponseWriter, r *http.Request, e *endpoint) (after func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	rc := http.NewResponseController(w)
	if e == nil || e.MaxBody > 0 {
		_ = rc.SetReadDeadline(time.Now().Add(s.opt.BodyTimeout))
		return func() {}
	}
	// A stream: it may go on for ever, and the answer goes out beside it. The connection is not used again, since net/http
	// panics where the rest of such a body ends after the handler returned.
	_ = rc.EnableFullDuplex()
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	return func() { _ = rc.SetReadDeadline(time.Now().Add(leftoverTimeout)) }
}
