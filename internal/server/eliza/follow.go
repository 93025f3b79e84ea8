package eliza

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/internal/follow"
)

type follower = follow.Follower[*state]

// follow tells a follower the states of a turn, until it has enough or the turn can't be read any more: the error wraps errGone where
// only the turn is gone. Where textless is set the text of a running turn is not looked at.
func (s *surface) follow(ctx context.Context, p gateway.Principal, conversation, turn string, textless bool, to follower) error {
	to.Look = func(ctx context.Context, f *gateway.Reader) (*state, int64, error) {
		now, err := look(ctx, f.Feed, turn, textless)
		if err != nil {
			return nil, 0, err
		}
		now.cursor = now.position(f.Feed)
		return &now, now.seq, nil
	}
	err := to.Follow(ctx, s.gw, p, conversation)
	if errors.Is(err, errGone) {
		// With a deleted conversation go its turns, a moment before its feed says why.
		if _, gone := s.gw.Conversation(ctx, p, gateway.ActionRead, conversation); gone != nil {
			return gone
		}
	}
	return err
}
