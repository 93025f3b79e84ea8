// A subscription with a goroutine, for connections that can't be polled.

package native

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/internal/socket"
	"github.com/leat-dev/leat/internal/store/feed"
)

// follower sends the conversation of a subscription. Only its goroutine uses the fields.
type follower struct {
	*subscription
	feed   *gateway.Reader
	cursor feed.Cursor
	ctx    context.Context
}

// run sends batches until the subscription, the connection or the conversation ends.
func (b *follower) run() {
	defer b.exit.Done()
	defer b.cancel()
	err := b.follow()
	b.feed.Release()
	if isCancelled := b.ctx.Err() != nil; b.release(err) && !isCancelled {
		b.sayWhy(err)
	}
}

// As in a streamed response, Notify is called before Poll, so no commit is missed. There is no heartbeat
// here: the connection has its own.
func (b *follower) follow() error {
	for {
		changed := b.feed.Notify()
		progress, err := b.step()
		if errors.Is(err, feed.ErrLost) {
			var next *gateway.Reader
			if next, err = b.feed.Reattach(b.ctx); err == nil {
				b.feed, progress = next, true
			}
		}
		if err != nil {
			return err
		}
		if progress {
			continue
		}
		b.metrics.Idle(b.cursor)
		select {
		case <-changed:
		case <-b.ctx.Done():
			return socket.ErrDisconnected
		}
	}
}

// step writes the events since the last batch. Without new events it returns false.
//
// The batch is chosen while the connection's write slot is owned. If the slot was taken, a batch that was
// polled before the wait would be outdated, and its events would be sent in two frames instead of one.
func (b *follower) step() (progress bool, err error) {
	batch, err := b.feed.Poll(b.ctx, b.cursor, batchBudget)
	if batch == nil || err != nil {
		return false, err
	}
	if !b.s.conn.TryLock() {
		if err := b.s.conn.Lock(b.ctx); err != nil {
			return false, err
		}
		// Another subscription was writing. Poll again, to send in one frame what was committed meanwhile.
		if batch, err = b.feed.Poll(b.ctx, b.cursor, batchBudget); batch == nil || err != nil {
			b.s.conn.Unlock()
			return false, err
		}
	}
	defer b.s.conn.Unlock()
	frame, err := batch.Encode(feed.JSON)
	if err != nil {
		return false, fmt.Errorf("encode batch: %w", err)
	}
	if err := b.s.conn.WriteLocked(frame); err != nil {
		return false, err
	}
	b.metrics.Wrote(b.cursor, batch, len(frame))
	b.cursor = batch.Cursor
	return true, nil
}
