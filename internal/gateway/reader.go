package gateway

import (
	"context"
	"sync/atomic"

	"github.com/leat-dev/leat/internal/store/feed"
)

// Reader is a conversation's feed as a principal reads it: it gives nothing more once that may read no more. Those who
// wait for something new wake up when it is taken from them.
type Reader struct {
	*feed.Feed
	g      *Gateway
	p      Principal
	access atomic.Int64 // the state of affairs in which the principal was let in
}

// Feed returns a conversation's feed for reading. The caller releases it.
func (g *Gateway) Feed(ctx context.Context, p Principal, id string) (*Reader, error) {
	// It is decided once the feed is there, so that no change slips in between; and before, where it has to be loaded, so
	// that nobody loads what they may not see.
	if !g.feeds.Contains(id) {
		if _, err := g.Conversation(ctx, p, ActionRead, id); err != nil {
			return nil, err
		}
	}
	f, err := g.feeds.Acquire(ctx, id)
	if err != nil {
		return nil, JournalError("open feed", err)
	}
	r := &Reader{Feed: f, g: g, p: p}
	r.access.Store(-1)
	if err := r.Check(ctx); err != nil {
		f.Release()
		return nil, err
	}
	return r, nil
}

// Check returns an error once the principal may not read any more; it wraps ErrNotFound then. It costs nothing as long as
// nothing of the kind has changed.
func (r *Reader) Check(ctx context.Context) error {
	current := r.Access()
	if r.access.Load() == current {
		return nil
	}
	if _, err := r.g.Conversation(ctx, r.p, ActionRead, r.Conversation()); err != nil {
		return err
	}
	r.access.Store(current)
	return nil
}

// Poll is [feed.Feed.Poll], for whoever may still read.
func (r *Reader) Poll(ctx context.Context, c feed.Cursor, budget int) (*feed.Batch, error) {
	if err := r.Check(ctx); err != nil {
		return nil, err
	}
	return r.Feed.Poll(ctx, c, budget)
}

// Next is [feed.Feed.Next], for whoever may still read.
func (r *Reader) Next(ctx context.Context, c feed.Cursor, budget int) (*feed.Batch, error) {
	for {
		changed := r.Notify()
		b, err := r.Poll(ctx, c, budget)
		if b != nil || err != nil {
			return b, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
