package compat

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/transcript"
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

// errTurnGone reports that the conversation no longer has a turn: it was truncated or trimmed away.
var errTurnGone = errors.New("compat: turn no longer in the conversation")

// state is a turn at one moment.
type state struct {
	turn   transcript.Turn
	seq    int64 // of the log
	pieces []piece
}

func (s *state) hasEnded() bool { return !s.turn.Unfinished() }

// take reads the state from a transcript. It returns false if the transcript lacks a part of the turn.
//
// Open requests of the turn follow its content as reasoning.
func (s *state) take(t *transcript.Transcript, turn string) bool {
	u := t.Turn(turn)
	if u == nil {
		return false
	}
	// A feed keeps every running turn from its start, but may have trimmed an ended one.
	if !u.Unfinished() && t.Earlier && (len(t.Messages) == 0 || t.Messages[0].Seq > u.FirstSeq) {
		return false
	}
	s.turn, s.seq = *u, t.Seq
	s.pieces = append(pieces(t.Messages, turn, s.hasEnded()), questions(u.Requests)...)
	return true
}

type follower = follow.Follower[*state]

// follow passes the states of a turn to a follower until it has enough or the turn can't be read.
//
// If the feed has trimmed the beginning of the turn, the transcript is read from the journal instead. The
// variable current is new for each state, so a follower may keep it.
func (s *surface) follow(ctx context.Context, p gateway.Principal, conversation, turn string, to follower) error {
	to.Read = func(ctx context.Context, f *gateway.Reader) (*state, int64, error) {
		current, isComplete := &state{}, false
		f.View(func(t *transcript.Transcript) { isComplete = current.take(t, turn) })
		if !isComplete {
			if err := s.gw.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool { isComplete = current.take(t, turn); return isComplete }); err != nil {
				return nil, 0, err
			}
		}
		if !isComplete {
			return nil, 0, errTurnGone
		}
		return current, current.seq, nil
	}
	return to.Follow(ctx, s.gw, p, conversation)
}
