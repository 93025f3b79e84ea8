package compat

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/transcript"
)

// errGone says that a turn isn't in its conversation any more: it was truncated or trimmed away.
var errGone = errors.New("compat: turn is gone")

// state is a turn at one moment.
type state struct {
	turn   transcript.Turn
	seq    int64 // of the log
	pieces []piece
}

func (s *state) over() bool { return !s.turn.Unfinished() }

// take reads the state out of a transcript. It reports false where that does not hold all of the turn.
func (s *state) take(t *transcript.Transcript, turn string) bool {
	u := t.Turn(turn)
	if u == nil {
		return false
	}
	// What a feed holds goes back to the beginning of every turn that runs; of one that has ended it may have forgotten some.
	if !u.Unfinished() && t.Earlier && (len(t.Messages) == 0 || t.Messages[0].Seq > u.FirstSeq) {
		return false
	}
	s.turn, s.seq = *u, t.Seq
	s.pieces = append(pieces(t.Messages, turn, s.over()), questions(u.Requests)...)
	return true
}

type follower = follow.Follower[*state]

// follow tells a follower the states of a turn, until it has enough or the turn can't be read any more.
func (s *surface) follow(ctx context.Context, p gateway.Principal, conversation, turn string, to follower) error {
	to.Read = func(ctx context.Context, f *gateway.Reader) (*state, int64, error) {
		now, found := &state{}, false
		f.View(func(t *transcript.Transcript) { found = now.take(t, turn) })
		if !found {
			if err := s.gw.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool { found = now.take(t, turn); return found }); err != nil {
				return nil, 0, err
			}
		}
		if !found {
			return nil, 0, errGone
		}
		return now, now.seq, nil
	}
	return to.Follow(ctx, s.gw, p, conversation)
}
