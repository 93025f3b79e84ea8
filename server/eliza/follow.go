package eliza

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/feed"
	"github.com/leat-dev/leat/gateway"
)

// follow calls fn with the states of a turn, the present one first and then one after each commit that came since the
// call before: a slow reader skips states and loses nothing, since each is whole. It returns when fn reports that it has
// enough, with fn's error, the context's, one that wraps feed.ErrDeleted, or errGone.
func follow(ctx context.Context, gw *gateway.Gateway, p gateway.Principal, conversation, turn string, fn func(a answer, cursor string) (bool, error)) error {
	for {
		f, err := gw.Feed(ctx, p, conversation)
		if err != nil {
			return err
		}
		err = followFeed(ctx, f, turn, fn)
		f.Release()
		// Its owner gave it up and reads the log anew; so does this reader.
		if !errors.Is(err, feed.ErrLost) {
			return err
		}
	}
}

func followFeed(ctx context.Context, f *feed.Feed, turn string, fn func(answer, string) (bool, error)) error {
	epoch, _, _ := f.Cursor().Parse()
	seen := int64(-1)
	for {
		changed := f.Notify()
		a, seq, err := look(ctx, f, turn)
		if err != nil {
			return err
		}
		if seq != seen {
			seen = seq
			if enough, err := fn(a, position(epoch, a.turn, seq)); enough || err != nil {
				return err
			}
		}
		if _, err := f.Poll(ctx, f.Cursor(), 1); err != nil {
			return fmt.Errorf("eliza: follow turn %s: %w", turn, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
