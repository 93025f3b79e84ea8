package compat

import (
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// stream streams a turn to its end.
func (s *surface) stream(w http.ResponseWriter, r *http.Request, p gateway.Principal, conversation, turn string, rq *request, to encoder) error {
	out, gone := s.srv.OpenStream(w, r, http.StatusOK, server.EventStream)
	seen := s.viewers.Open()
	defer seen.Close()
	ticker := time.NewTicker(out.Beat)
	defer ticker.Stop()
	write := func(b []byte) error {
		if gone == nil && len(b) > 0 {
			gone = out.Write(b)
			seen.Frame(len(b))
		}
		return gone
	}
	send := sender{to: to, silent: rq.silent}
	buf := to.Start(nil)
	err := write(buf)
	if err == nil {
		err = s.follow(r.Context(), p, conversation, turn, follower{
			State: func(now *state) (bool, error) {
				var ok bool
				if buf, ok = send.next(buf[:0], now.pieces); now.over() {
					buf = finish(buf, to, now, ok)
				}
				return now.over(), write(buf)
			},
			Tick: func() error { return write(to.Ping(nil)) }, Ticks: ticker.C,
		})
	}
	if gone != nil || err == nil || r.Context().Err() != nil && !server.Restarting(err) && !told(err) {
		return nil // nobody is there to be told, or nothing is to be
	}
	_ = write(to.fail(nil, describe(err))) // the last that is said
	if server.Restarting(err) || told(err) {
		return nil
	}
	return err
}

// finish ends the stream of a turn that is over. ok says that all of the text was sent, and nothing else.
func finish(b []byte, to encoder, now *state, ok bool) []byte {
	switch e := failed(&now.turn); {
	case e != nil:
		return to.fail(b, e)
	case !ok:
		return to.fail(b, errReplaced)
	}
	return to.End(b, now.turn.Reason, now.turn.Usage)
}
