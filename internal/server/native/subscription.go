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

// subscription follows one conversation on a socket.
type subscription struct {
	s      *webSocket
	feed   *gateway.Reader
	cursor feed.Cursor
	seen   *server.Viewer
	leave  func() // counts it as a viewer no more
	cancel context.CancelFunc
	ctx    context.Context
	over   atomic.Bool // it ends by itself: its last frame is out, or about to be
	done   chan struct{}
}

// subscribe begins to follow a conversation. One that was followed already is followed anew: nothing of the old subscription
// comes after the new one's "subscribed".
func (s *webSocket) subscribe(f clientFrame) error {
	s.unsubscribe(f.Conversation)
	s.reap()
	if len(s.subs) >= MaxSubscriptions {
		return server.Errorf(http.StatusTooManyRequests, server.ReasonBusy, "%d conversations are followed on this socket already", len(s.subs))
	}
	fd, err := s.n.gw.Feed(s.ctx, s.principal(), f.Conversation)
	if err != nil {
		return err
	}
	leave, err := s.n.gw.AddViewer(s.principal())
	if err != nil {
		fd.Release()
		return err
	}
	hello, err := json.Marshal(helloFrame{Type: "subscribed", ID: f.ID, Conversation: fd.Conversation(), Turns: open(fd.Feed), Head: fd.Head()})
	if err == nil {
		err = s.conn.Write(hello)
	}
	if err != nil {
		leave()
		fd.Release()
		return err
	}
	sub := &subscription{s: s, feed: fd, cursor: f.After, seen: s.n.sockets.Open(), leave: leave, done: make(chan struct{})}
	sub.ctx, sub.cancel = context.WithCancel(s.ctx)
	s.subs[f.Conversation] = sub
	s.conn.Go(sub.run)
	return nil
}

// unsubscribe ends a subscription and waits for its last frame.
func (s *webSocket) unsubscribe(conversation string) {
	if sub := s.subs[conversation]; sub != nil {
		sub.cancel()
		<-sub.done
		delete(s.subs, conversation)
	}
}

// reap forgets subscriptions that ended by themselves.
func (s *webSocket) reap() {
	for id, sub := range s.subs {
		if sub.over.Load() {
			<-sub.done
			delete(s.subs, id)
		}
	}
}

// run follows until the subscription, the socket or the conversation ends.
func (b *subscription) run() {
	defer close(b.done)
	defer b.seen.Close()
	defer b.cancel()
	err := b.follow()
	id := b.feed.Conversation()
	b.feed.Release()
	b.leave()
	b.over.Store(true) // before the client is told, who may follow another one at once
	if errors.Is(err, socket.ErrDisconnected) || b.ctx.Err() != nil {
		return
	}
	if d := server.Describe(err); d.Status == http.StatusInternalServerError {
		b.s.n.s.Log().Error("subscription failed", "conversation", id, "error", err)
	}
	_ = b.s.send(newError("error", "", id, err)) // if it can't be sent the socket is gone
}

func (b *subscription) follow() error {
	for {
		changed := b.feed.Notify()
		sent, err := b.step()
		if errors.Is(err, feed.ErrLost) {
			err = b.again()
			sent = true
		}
		if err != nil {
			return err
		}
		if sent {
			continue
		}
		b.seen.Idle(b.cursor)
		select {
		case <-changed:
		case <-b.ctx.Done():
			return socket.ErrDisconnected
		}
	}
}

// step writes what came since the last write, if anything did.
func (b *subscription) step() (sent bool, err error) {
	batch, err := b.feed.Poll(b.ctx, b.cursor, batchBudget)
	if batch == nil || err != nil {
		return false, err
	}
	if !b.s.conn.TryLock() {
		if err := b.s.conn.Lock(b.ctx); err != nil {
			return false, err
		}
		// More may have come while another subscription wrote: it goes out in the same frame.
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
	b.seen.Wrote(b.cursor, batch, len(frame))
	b.cursor = batch.Cursor
	return true, nil
}

// again takes the conversation's new feed after its owner gave the old one up. The cursor stays good.
func (b *subscription) again() error {
	f, err := b.s.n.gw.Feed(b.ctx, b.s.principal(), b.feed.Conversation())
	if err != nil {
		return err
	}
	b.feed.Release()
	b.feed = f
	return nil
}
