// Package follow passes a turn to code that sends it on: its states, for code that needs each state as a whole, or the operations of its
// answer.
package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/feed"
)

// Follower gets the states of a turn: first the current one, then one after each commit. A slow follower skips states.
type Follower[S any] struct {
	// Read returns the current state of the turn and the seq of the log that it includes.
	Read func(ctx context.Context, f *gateway.Reader) (s S, seq int64, err error)
	// State receives a state. It returns true when the follower has enough.
	State func(s S) (isEnough bool, err error)
	// Tick is called for each value of Ticks. Both may be nil.
	Tick  func() error
	Ticks <-chan time.Time
}

// Follow returns when the follower has enough or fails, when ctx ends, or when the turn can't be read.
//
// It calls all functions of the follower from its own goroutine, one at a time.
func (to Follower[S]) Follow(ctx context.Context, gw *gateway.Gateway, p gateway.Principal, conversation string) error {
	for {
		f, err := gw.Feed(ctx, p, conversation)
		if err != nil {
			return err
		}
		err = to.follow(ctx, f)
		f.Release()
		// The conversation's writer gave this feed up and reads the log again. Get its new feed.
		if !errors.Is(err, feed.ErrLost) {
			return err
		}
	}
}

// A state with the seq of the previous one is skipped: nothing has changed for the follower.
func (to Follower[S]) follow(ctx context.Context, f *gateway.Reader) error {
	lastSeq := int64(-1)
	for {
		changed := f.Notify()
		if err := f.Check(ctx); err != nil {
			return err
		}
		s, seq, err := to.Read(ctx, f)
		if err != nil {
			return err
		}
		if seq != lastSeq {
			lastSeq = seq
			if isEnough, err := to.State(s); isEnough || err != nil {
				return err
			}
		}
		// A closed feed may still have committed events. Report the close only after they were delivered.
		if _, err := f.Poll(ctx, f.Cursor(), 1); err != nil {
			return fmt.Errorf("follow conversation %s: %w", f.Conversation(), err)
		}
		if err := to.wait(ctx, changed); err != nil {
			return err
		}
	}
}

// wait returns when the feed has changed.
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
