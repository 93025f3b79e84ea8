package server

import (
	"io"
	"net/http"
	"time"
)

var (
	errFull = &Error{
		Status: http.StatusServiceUnavailable, Reason: ReasonBusy, Message: "too many connections", RetryAfter: retryFull,
	}
	errCrowded = &Error{
		Status: http.StatusServiceUnavailable, Reason: ReasonBusy, Message: "too many requests of your address have not ended", RetryAfter: retryFull,
	}
)

// retryFull is when a request is worth repeating that found no room.
const retryFull = 5 * time.Second

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

// ended is a body that reports its end.
type ended struct {
	io.ReadCloser
	at func()
}

func (b *ended) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.at()
	}
	return n, err
}

// hasBody reports whether a request may have a body.
func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// guardBody sees to it that no answer waits for a body that nobody reads: net/http wants to read the rest of one before it
// answers. It counts the request as one of its address until the body has come. It is called before anything can be refused; the result
// is called when the answer is written.
func (s *Server) guardBody(w *response, r *http.Request, e *endpoint) (after func()) {
	if !hasBody(r) {
		return func() {}
	}
	rc := http.NewResponseController(w)
	if e != nil && e.MaxBody < 0 {
		// A stream: it may go on for ever, and the answer goes out beside it. The connection is not used again, since net/http
		// panics where the rest of such a body ends after the handler returned.
		_ = rc.EnableFullDuplex()
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
		}
		return func() {
			_ = rc.SetReadDeadline(time.Now().Add(leftoverTimeout))
			leave(r)
		}
	}
	_ = rc.SetReadDeadline(time.Now().Add(s.opt.BodyTimeout))
	probe := e != nil && e.AnyHost
	w.counted, w.crowded = func() {}, false
	if !probe {
		w.counted, w.crowded = s.conns.body(ClientAddr(r))
	}
	whole := false
	r.Body = &ended{r.Body, func() { whole = true; w.counted() }}
	w.head = func(status int) {
		// What is there already is read, so that the connection can be used again; a body that comes slowly is not waited for. The
		// deadline must not end a stream.
		unread := status >= http.StatusBadRequest || r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case whole || !unread || e != nil && e.Stream:
		case probe || w.crowded:
			w.Header().Set("Connection", "close")
			_ = rc.SetReadDeadline(time.Now())
		default:
			_ = rc.SetReadDeadline(time.Now().Add(leftoverTimeout))
		}
	}
	return func() {
		w.counted()
		if !whole {
			leave(r)
		}
	}
}

// proved takes a request out of the count of its address, because it has proved who sends it: an agent's host may push many messages
// at once. Without a token of the gateway nobody proves anything.
func (s *Server) proved(w *response) {
	if w.counted != nil && s.TokenNeeded() {
		w.counted()
		w.crowded = false
	}
}
