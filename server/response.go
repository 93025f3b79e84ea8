package server

import (
	"io"
	"log/slog"
	"net/http"
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
	s.log.LogAttrs(r.Context(), level, "request",
		slog.String("method", r.Method), slog.String("route", route), slog.String("path", r.URL.Path), slog.Int("status", w.status),
		slog.Int64("bytes", w.bytes), slog.Duration("took", took), slog.String("remote", r.RemoteAddr))
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
