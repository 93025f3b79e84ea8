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
	// queueLimit is how many control frames wait for a connection; when there are more, the oldest is dropped.
	queueLimit = 32
	// frameLimit is how long a connection may take one frame.
	frameLimit = 10 * time.Second
)

// liveQueue holds the control frames that no connection has taken yet. That of the conversation which the user looks at is there
// once, and goes out on each new connection.
type liveQueue struct {
	onDrop func(frame json.RawMessage) // may be nil

	mu    sync.Mutex
	queue []control
	looks json.RawMessage // the last frame of a look; nil: there was none
	wake  chan struct{}
}

// control is a frame that waits.
type control struct {
	frame    json.RawMessage
	isActive bool
}

func newLiveQueue(onDrop func(json.RawMessage)) *liveQueue {
	return &liveQueue{onDrop: onDrop, wake: make(chan struct{}, 1)}
}

func (q *liveQueue) setActive(frame json.RawMessage) {
	q.mu.Lock()
	q.looks = frame
	q.queue = slices.DeleteFunc(q.queue, func(c control) bool { return c.isActive })
	q.mu.Unlock()
	q.add(control{frame, true})
}

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
	default: // flush has yet to look
	}
}

// begin has a new connection told first what the user looks at.
func (q *liveQueue) begin() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.looks != nil {
		q.queue = slices.DeleteFunc(q.queue, func(c control) bool { return c.isActive })
		q.queue = slices.Insert(q.queue, 0, control{q.looks, true})
	}
}

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

// back puts a frame back that could not be sent.
func (q *liveQueue) requeue(c control) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) < queueLimit {
		q.queue = slices.Insert(q.queue, 0, c)
	}
}

// flush sends what waits and what comes, until the context ends or a frame can't be sent.
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
