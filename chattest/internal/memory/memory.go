// Package memory answers requests without sockets, for the fakes of chat platforms. So they can be used in a testing/synctest bubble.
// It also chooses and delays the faults that their requests meet.
package memory

import (
	"cmp"
	"errors"
	"net/http"
	"net/http/httptest"
)

// ErrClosed is the error of a request that was left unanswered: its handler has panicked with [http.ErrAbortHandler].
var ErrClosed = errors.New("chattest: the connection was closed")

// RoundTrip answers a request with a handler, which gets it as a server does: with a host and a body. If the request's context ends
// meanwhile, its error is returned, because the client has given up then. A request for a WebSocket gets a connection in memory.
func RoundTrip(h http.Handler, r *http.Request) (response *http.Response, err error) {
	if r.Header.Get("Upgrade") != "" {
		return upgrade(h, r), nil
	}
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			response, err = nil, ErrClosed
		} else if p != nil {
			panic(p)
		}
	}()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, received(r))
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// received returns a copy of a client's request as a server gets it.
func received(r *http.Request) *http.Request {
	o := r.Clone(r.Context())
	o.Host = cmp.Or(o.Host, r.URL.Host)
	if o.Body == nil {
		o.Body = http.NoBody
	}
	return o
}
