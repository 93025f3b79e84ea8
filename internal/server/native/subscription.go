// One subscribed conversation of a socket. It pulls from its feed when the connection can take more.

package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/fanout"
	"github.com/leat-dev/leat/internal/server/internal/outgoing"
	"github.com/leat-dev/leat/internal/server/internal/socket"
	"github.com/leat-dev/leat/internal/store/feed"
)

// subscription sends one conversation to a socket. A viewer without a goroutine does it if the connection allows that, and a follower
// otherwise.
//
// The handlers of frames call cancel, wait for exit, and read finished, with which they find subscriptions that ended by themselves.
type subscription struct {
	s            *webSocket
	conversation string
	metrics      *server.Viewer
	// Ends the count as a viewer.
	leave func()
	// Nil if a follower sends the conversation.
	viewer *fanout.Viewer
	// Ends the follower.
	cancel context.CancelFunc
	// It ended by itself; its last frame is written or about to be.
	finished atomic.Bool
	// Waits for the last frame.
	exit sync.WaitGroup
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
	sub := &subscription{s: s, conversation: reader.Conversation(), metrics: s.n.sockets.Open(), leave: leave}
	sub.exit.Add(1)
	s.subs = append(s.subs, sub)
	if s.conn.CanTry() {
		sub.viewer = s.n.viewers.NewViewer(fanout.Options{Reader: reader, Cursor: f.After, Encoding: feed.Text, Sink: sub, Measured: sub.metrics})
		sub.viewer.Start()
		return nil
	}
	follower := &follower{subscription: sub, feed: reader, cursor: f.After}
	follower.ctx, sub.cancel = context.WithCancel(s.ctx)
	s.conn.Go(follower.run)
	return nil
}

// TryWrite implements [fanout.Sink]. A subscription whose frame wasn't taken completely waits in blocked until Ready.
func (b *subscription) TryWrite(frame []byte) (outgoing.State, error) {
	b.s.mu.Lock() // until the subscription is in the list, because the connection may be ready at once
	defer b.s.mu.Unlock()
	state, err := b.s.conn.TryWrite(frame)
	if state != outgoing.Complete && err == nil {
		b.s.blocked = append(b.s.blocked, b)
	}
	return state, err
}

// Ready implements [socket.Handler]. It continues the subscriptions that waited for the connection. The order is that
// in which they were blocked, so no subscription of a busy connection waits forever.
func (s *webSocket) Ready() {
	s.mu.Lock()
	blocked := s.blocked
	s.blocked = nil
	s.mu.Unlock()
	for _, b := range blocked {
		b.viewer.Ready()
	}
}

// End implements [fanout.Sink]. The last frame is written by a goroutine, because that may wait.
func (b *subscription) End(cause error, _ int64) {
	if !b.release(cause) || !b.s.conn.TryGo(func() {
		defer b.exit.Done()
		b.sayWhy(cause)
	}) {
		b.exit.Done()
	}
}

// release ends what the subscription counts for. It reports whether the client is to learn the cause.
//
// Everything is released before the last frame is written. Thus a client that reacts to that frame finds its limits free again.
func (b *subscription) release(cause error) (tell bool) {
	b.metrics.Close()
	b.leave()
	b.finished.Store(true) // before the last frame: the client may subscribe to another conversation at once
	return !errors.Is(cause, socket.ErrDisconnected) && !errors.Is(cause, fanout.ErrDisconnected) && b.s.ctx.Err() == nil
}

// sayWhy writes the last frame.
func (b *subscription) sayWhy(cause error) {
	if d := server.Describe(cause); d.Status == http.StatusInternalServerError {
		b.s.n.s.Log().Error("subscription failed", "conversation", b.conversation, "error", cause)
	}
	_ = b.s.send(newError("error", "", b.conversation, cause)) // if this fails, the connection ends
}

// unsubscribe ends a subscription and waits for its last frame. If there is none for the conversation, it does
// nothing. When it returns, no frame of the subscription follows.
func (s *webSocket) unsubscribe(conversation string) {
	s.subs = slices.DeleteFunc(s.subs, func(sub *subscription) bool {
		if sub.conversation != conversation {
			return false
		}
		if sub.viewer != nil {
			sub.viewer.Cancel(fanout.ErrDisconnected)
		} else {
			sub.cancel()
		}
		sub.exit.Wait()
		return true
	})
}

// reap removes subscriptions that ended by themselves.
//
// It is called before a new subscription is counted, so ended ones don't use up the limit.
func (s *webSocket) reap() {
	s.subs = slices.DeleteFunc(s.subs, func(sub *subscription) bool {
		if sub.finished.Load() {
			sub.exit.Wait()
			return true
		}
		return false
	})
}

// A subscription with a goroutine, for connections that can't be polled.

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
// polled before the wait would be outdated, and its events would be sent in two frames instead of one. Its error ends
// the subscription: that of the feed, of the encoding, or of the write.
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
