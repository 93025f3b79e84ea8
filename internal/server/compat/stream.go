package compat

import (
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// stream streams a turn to its end.
//
// The stream is not resumable, as in the APIs. A failed write ends it, and the turn continues: its answer
// is in the conversation. When the gateway restarts or the token expires, the client still gets an error
// frame, because it is connected and would otherwise take the part for the whole answer.
func (s *surface) stream(w http.ResponseWriter, r *http.Request, p gateway.Principal, conversation, turn string, rq *request, to encoder) error {
	response, writeErr := s.srv.OpenStream(w, r, http.StatusOK, server.EventStream)
	metrics := s.viewers.Open()
	defer metrics.Close()
	ticker := time.NewTicker(response.Beat)
	defer ticker.Stop()
	write := func(b []byte) error {
		if writeErr == nil && len(b) > 0 {
			writeErr = response.Write(b)
			metrics.Frame(len(b))
		}
		return writeErr
	}
	send := sender{to: to, silent: rq.silent}
	buf := to.Start(nil)
	err := write(buf)
	if err == nil {
		err = s.follow(r.Context(), p, conversation, turn, follower{
			State: func(current *state) (bool, error) {
				var ok bool
				if buf, ok = send.next(buf[:0], current.pieces); current.hasEnded() {
					buf = finish(buf, to, current, ok)
				}
				return current.hasEnded(), write(buf)
			},
			Tick: func() error { return write(to.Ping(nil)) }, Ticks: ticker.C,
		})
	}

	if writeErr != nil || err == nil || r.Context().Err() != nil && !server.Restarting(err) && !isExpired(err) {
		return nil // the client is disconnected, or the stream has ended without an error
	}
	_ = write(to.fail(nil, describe(err))) // best effort
	if server.Restarting(err) || isExpired(err) {
		return nil
	}
	return err
}

// finish ends the stream of an ended turn. ok reports that exactly the turn's text was sent.
func finish(b []byte, to encoder, current *state, ok bool) []byte {
	switch e := failed(&current.turn); {
	case e != nil:
		return to.fail(b, e)
	case !ok:
		return to.fail(b, errReplaced)
	}
	return to.End(b, current.turn.Reason, current.turn.Usage)
}
