// The control frames of a live connection that have not been sent yet.

package leat

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	// queueLimit is the number of queued control frames. A further frame drops the oldest one.
	queueLimit = 32
	// frameLimit is the timeout for writing one frame.
	frameLimit = 10 * time.Second
)

// liveQueue buffers the control frames that haven't been sent. It stores the frame for the active conversation separately, because
// that frame is sent first on each new connection.
type liveQueue struct {
	onDrop func(frame json.RawMessage) // may be nil

	mu     sync.Mutex
	queue  []control
	active json.RawMessage // the last frame of SetActive, or nil
	wake   chan struct{}   // buffered, capacity 1; signals flush that the queue has changed
}

// control is a queued frame.
type control struct {
	frame    json.RawMessage
	isActive bool
}

func newLiveQueue(onDrop func(json.RawMessage)) *liveQueue {
	return &liveQueue{onDrop: onDrop, wake: make(chan struct{}, 1)}
}

// setActive replaces the frame for the active conversation. A queued older one is removed, because it would be outdated.
func (q *liveQueue) setActive(frame json.RawMessage) {
	q.mu.Lock()
	q.active = frame
	q.queue = slices.DeleteFunc(q.queue, func(c control) bool { return c.isActive })
	q.mu.Unlock()
	q.add(control{frame, true})
}

// add queues a frame. It never blocks; onDrop is called without the lock for a frame that no longer fits.
func (q *liveQueue) add(c control) {
	q.mu.Lock()
	q.queue = append(q.queue, c)
	excess := q.queue[:max(0, len(q.queue)-queueLimit)]
	q.queue = q.queue[len(excess):]
	q.mu.Unlock()
	for _, c := range excess {
		if q.onDrop != nil {
			q.onDrop(c.frame)
		}
	}
	select {
	case q.wake <- struct{}{}:
	default: // flush hasn't yet received the last wake-up
	}
}

// begin queues the frame for the active conversation, for a new connection.
func (q *liveQueue) begin() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.active != nil {
		q.queue = slices.DeleteFunc(q.queue, func(c control) bool { return c.isActive })
		q.queue = slices.Insert(q.queue, 0, control{q.active, true})
	}
}

// take removes the oldest frame. ok is false if the queue is empty.
func (q *liveQueue) take() (c control, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		return c, false
	}
	c = q.queue[0]
	q.queue = q.queue[1:]
	return c, true
}

// requeue puts a frame that could not be sent back at the front of the queue. If the queue is full by now, the frame is dropped.
func (q *liveQueue) requeue(c control) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) < queueLimit {
		q.queue = slices.Insert(q.queue, 0, c)
	}
}

// flush sends queued and new frames until the context is done or a write fails. A frame whose write failed is sent again on the next
// connection, although the gateway may already have received it.
func (q *liveQueue) flush(ctx context.Context, conn *websocket.Conn) error {
	q.begin()
	for {
		c, ok := q.take()
		if !ok {
			select {
			case <-q.wake:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		write, cancel := context.WithTimeout(ctx, frameLimit)
		err := conn.Write(write, websocket.MessageText, c.frame)
		cancel()
		if err != nil {
			q.requeue(c)
			return err
		}
	}
}
