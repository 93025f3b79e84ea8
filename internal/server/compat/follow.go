package compat

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/transcript"
)

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
