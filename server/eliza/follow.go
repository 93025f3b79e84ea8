package eliza

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/feed"
	"github.com/leat-dev/leat/gateway"
)

// follower is told of the states of a turn.
type follower struct {
	// state gets the present state first and then one after each commit that came since the call before: a slow reader
	// skips states and loses nothing, since each is whole. It reports when it has enough.
	state func(s *state, cursor string) (enough bool, err error)
	// textless says that the text of a running turn is not looked at.
	textless bool
	// tick is called at every tick in between; both may be nil.
	tick  func() error
	ticks <-chan time.Time
}

// follow returns when the follower has enough or fails, when the context ends, or with an error that wraps
// [feed.ErrDeleted] or errGone.
func (s *surface) follow(ctx context.Context, p gateway.Principal, conversation, turn string, to follower) error {
	for {
		f, err := s.gw.Feed(ctx, p, conversation)
		if err != nil {
			return err
		}
		err = to.follow(ctx, f, turn)
		f.Release()
		if errors.Is(err, errGone) {
			// With a deleted conversation go its turns, a moment before its feed says why.
			if _, gone := s.gw.Conversation(ctx, p, gateway.ActionRead, conversation); gone != nil {
				err = gone
			}
		}
		// Its owner gave it up and reads the log anew; so does this reader.
		if !errors.Is(err, feed.ErrLost) {
			return err
		}
	}
}

func (to follower) follow(ctx context.Context, f *gateway.Reader, turn string) error {
	epoch, _, _ := f.Cursor().Parse()
	seen := int64(-1)
	for {
		changed := f.Notify()
		if err := f.Check(ctx); err != nil {
			return err
		}
		s, err := look(ctx, f.Feed, turn, to.textless)
		if err != nil {
			return err
		}
		if s.seq != seen {
			seen = s.seq
			if enough, err := to.state(&s, s.position(epoch)); enough || err != nil {
				return err
			}
		}
		// What was committed before a feed was closed has been told; only then does it count that it is.
		if _, err := f.Poll(ctx, f.Cursor(), 1); err != nil {
			return fmt.Errorf("eliza: follow turn %s: %w", turn, err)
		}
		if err := to.wait(ctx, changed); err != nil {
			return err
		}
	}
}

// wait returns when something has changed.
func (to follower) wait(ctx context.Context, changed <-chan struct{}) error {
	for {
		select {
		case <-changed:
			return nil
		case <-to.ticks:
			if err := to.tick(); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
