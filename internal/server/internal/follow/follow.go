// Package follow tells the states of a turn to a surface that shows each as a whole.
package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/feed"
)

// Follower is told of the states of a turn: first the present one, then one after each commit that came since the call before. A
// slow one skips states and loses nothing, since each is whole.
type Follower[S any] struct {
	// Look reads the present state of the turn, and of which seq of the log it is.
	Look func(ctx context.Context, f *gateway.Reader) (s S, seq int64, err error)
	// State gets it, and reports when the follower has enough.
	State func(s S) (enough bool, err error)
	// Tick is called at every tick in between; both may be nil.
	Tick  func() error
	Ticks <-chan time.Time
}

// Follow returns when the follower has enough or fails, when the context ends, or when the turn can't be read any more.
func (to Follower[S]) Follow(ctx context.Context, gw *gateway.Gateway, p gateway.Principal, conversation string) error {
	for {
		f, err := gw.Feed(ctx, p, conversation)
		if err != nil {
			return err
		}
		err = to.read(ctx, f)
		f.Release()
		// Its owner gave it up and reads the log anew; so does this reader.
		if !errors.Is(err, feed.ErrLost) {
			return err
		}
	}
}

func (to Follower[S]) read(ctx context.Context, f *gateway.Reader) error {
	seen := int64(-1)
	for {
		changed := f.Notify()
		if err := f.Check(ctx); err != nil {
			return err
		}
		s, seq, err := to.Look(ctx, f)
		if err != nil {
			return err
		}
		if seq != seen {
			seen = seq
			if enough, err := to.State(s); enough || err != nil {
				return err
			}
		}
		// What was committed before a feed was closed has been told; only then does it count that it is.
		if _, err := f.Poll(ctx, f.Cursor(), 1); err != nil {
			return fmt.Errorf("follow conversation %s: %w", f.Conversation(), err)
		}
		if err := to.wait(ctx, changed); err != nil {
			return err
		}
	}
}

// wait returns when something has changed.
func (to Follower[S]) wait(ctx context.Context, changed <-chan struct{}) error {
	for {
		select {
		case <-changed:
			return nil
		case <-to.Ticks:
			if err := to.Tick(); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
