package compat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/feed"
	"github.com/leat-dev/leat/gateway"
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

// follower is told of the states of a turn: first the present one, then one after each commit that came since the call
// before. It reports when it has enough.
type follower struct {
	state func(*state) (enough bool, err error)
	// tick is called at every tick in between; both may be nil.
	tick  func() error
	ticks <-chan time.Time
}

// follow returns when the follower has enough or fails, when the context ends, or when the turn can't be read any more.
func (s *surface) follow(ctx context.Context, p gateway.Principal, conversation, turn string, to follower) error {
	for {
		f, err := s.gw.Feed(ctx, p, conversation)
		if err != nil {
			return err
		}
		err = s.read(ctx, f, p, turn, to)
		f.Release()
		// Its owner gave it up and reads the log anew; so does this reader.
		if !errors.Is(err, feed.ErrLost) {
			return err
		}
	}
}

func (s *surface) read(ctx context.Context, f *gateway.Reader, p gateway.Principal, turn string, to follower) error {
	seen := int64(-1)
	for {
		changed := f.Notify()
		if err := f.Check(ctx); err != nil {
			return err
		}
		if head := f.Head(); head != seen {
			var now state
			found := false
			f.View(func(t *transcript.Transcript) { found = now.take(t, turn) })
			if !found {
				if err := s.gw.Look(ctx, p, f.Conversation(), func(t *transcript.Transcript) bool { found = now.take(t, turn); return found }); err != nil {
					return err
				}
			}
			if !found {
				return errGone
			}
			seen = now.seq
			if enough, err := to.state(&now); enough || err != nil {
				return err
			}
		}
		// What was committed before a feed was closed has been told; only then does it count that it is.
		if _, err := f.Poll(ctx, f.Cursor(), 1); err != nil {
			return fmt.Errorf("compat: follow turn %s: %w", turn, err)
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
