// Deadlines for request bodies: a client that stops sending is disconnected, however long the handler takes.

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
