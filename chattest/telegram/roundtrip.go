package telegram

import (
	"errors"
	"net/http"
	"net/http/httptest"
)

// errCut is the error of a request that a fault left unanswered.
var errCut = errors.New("telegram fake: the connection was closed")

// RoundTrip implements [http.RoundTripper]: it answers without a socket, so that tests can run in a testing/synctest bubble.
func (s *Server) RoundTrip(r *http.Request) (response *http.Response, err error) {
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			response, err = nil, errCut
		} else if p != nil {
			panic(p)
		}
	}()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}
