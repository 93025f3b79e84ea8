// One subscribed conversation of a socket. It pulls from its feed when the connection can take more.

package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/socket"
	"github.com/leat-dev/leat/internal/store/feed"
)

// subscription sends one conversation to a socket.
//
// Its own goroutine uses feed and cursor. The read loop calls cancel, waits for exit, and reads finished,
// with which it finds subscriptions that ended by themselves.
type subscription struct {
	s        *webSocket
	feed     *gateway.Reader
	cursor   feed.Cursor
	metrics  *server.Viewer
	leave    func() // ends the count as a viewer
	cancel   context.CancelFunc
	ctx      context.Context
	finished atomic.Bool   // it ended by itself; its last frame is written or about to be
	exit     chan struct{} // closed when run returns
}

// subscribe starts a subscription. If the client has one for the same conversation, that ends first, so none of its frames
// follow the new "subscribed".
//
// It handles a frame. The subscribed frame is written before the goroutine starts, so no batch can
// precede it. Whatever fails after the feed was opened releases the feed and the count as a viewer.
func (s *webSocket) subscribe(f clientFrame) error {
	s.unsubscribe(f.Conversation)
	s.reap()
	if len(s.subs) >= maxSubscriptions {
		return server.Errorf(http.StatusTooManyRequests, server.ReasonBusy, "this connection has %d subscriptions already; end one, or open another connection", len(s.subs))
	}
	reader, err := s.n.gw.Feed(s.ctx, s.principal(), f.Conversation)
	if err != nil {
		return err
	}
	leave, err := s.n.gw.AddViewer(s.principal())
	if err != nil {
		reader.Release()
		return err
	}
	greeting, err := json.Marshal(helloFrame{Type: "subscribed", ID: f.ID, Conversation: reader.Conversation(), Turns: unfinishedTurns(reader.Feed), Head: reader.Head()})
	if err == nil {
		err = s.conn.Write(greeting)
	}
	if err != nil {
		leave()
		reader.Release()
		return err
	}
	sub := &subscription{s: s, feed: reader, cursor: f.After, metrics: s.n.sockets.Open(), leave: leave, exit: make(chan struct{})}
	sub.ctx, sub.cancel = context.WithCancel(s.ctx)
	s.subs[f.Conversation] = sub
	s.conn.Go(sub.run)
	return nil
}

// unsubscribe ends a subscription and waits for its last frame.
func (s *webSocket) unsubscribe(conversation string) {
	if sub := s.subs[conversation]; sub != nil {
		sub.cancel()
		<-sub.exit
		delete(s.subs, conversation)
	}
}

// reap removes subscriptions that ended by themselves.
//
// It is called before a new subscription is counted, so ended ones don't use up the limit.
func (s *webSocket) reap() {
	for id, sub := range s.subs {
		if sub.finished.Load() {
			<-sub.exit
			delete(s.subs, id)
		}
	}
}

// run sends batches until the subscription, the connection or the conversation ends.
//
// Everything is released before the last frame is written. Thus a client that reacts to that frame finds
// its limits free again.
func (b *subscription) run() {
	defer close(b.exit)
	defer b.metrics.Close()
	defer b.cancel()
	err := b.follow()
	id := b.feed.Conversation()
	b.feed.Release()
	b.leave()
	b.finished.Store(true) // before the last frame: the client may subscribe to another conversation at once
	if errors.Is(err, socket.ErrDisconnected) || b.ctx.Err() != nil {
		return
	}
	if d := server.Describe(err); d.Status == http.StatusInternalServerError {
		b.s.n.s.Log().Error("subscription failed", "conversation", id, "error", err)
	}
	_ = b.s.send(newError("error", "", id, err)) // if this fails, the connection ends
}

// As in a streamed response, Notify is called before Poll, so no commit is missed. There is no heartbeat
// here: the connection has its own.
func (b *subscription) follow() error {
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
func (b *subscription) step() (progress bool, err error) {
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
