package eliza

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/internal/follow"
)

type follower = follow.Follower[*state]

// follow passes the states of a turn to a follower until it has enough or the turn can't be read. If only the turn is gone, the
// error wraps errTurnGone. With withoutText, a running turn's text is left out of its states.
//
// Callers that wait for a turn without streaming it use withoutText: otherwise each commit would copy the
// text of the whole turn for nothing. The text of the ended turn is always complete.
func (s *surface) follow(ctx context.Context, p gateway.Principal, conversation, turn string, withoutText bool, to follower) error {
	to.Read = func(ctx context.Context, f *gateway.Reader) (*state, int64, error) {
		current, err := readState(ctx, f.Feed, turn, withoutText)
		if err != nil {
			return nil, 0, err
		}
		current.cursor = current.position(f.Feed)
		return &current, current.seq, nil
	}
	err := to.Follow(ctx, s.gw, p, conversation)
	if errors.Is(err, errTurnGone) {
		// A deleted conversation loses its turns just before its feed reports the deletion.
		if _, deleted := s.gw.Conversation(ctx, p, gateway.ActionRead, conversation); deleted != nil {
			return deleted
		}
	}
	return err
}
