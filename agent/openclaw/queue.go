// The queue of frames between a connection and a turn. A snapshot replaces an older one of the same text that wasn't read yet, so
// the queue of a slow turn stays short.

package openclaw

import (
	"slices"
	"sync"
)

// The kinds of items.
const (
	itemFrame    = iota // a frame of a run
	itemGap             // frames are missing: read the history
	itemAsk             // the agent requests an approval
	itemResolved        // an approval was resolved
	itemSteer           // Steer was called
)

// item is an entry in a turn's queue. Which fields are set depends on kind.
type item struct {
	kind     int
	raw      []byte
	run      runFrame
	approval approval
	steer    *steerRequest
}

// maxQueue is the size of the frames that may be queued for a turn, in bytes.
const maxQueue = 32 << 20

// queue buffers what other goroutines send to a turn. Posting never blocks, because the goroutine that reads the connection
// posts; it is limited by bytes instead.
type queue struct {
	mu     sync.Mutex
	items  []item
	bytes  int
	closed bool
	wake   chan struct{} // holds one value while items are queued
}

// newQueue returns an open, empty queue.
func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// post appends an item and wakes the turn. It reports whether the item will be handled or answered; false means that the turn
// is over. A snapshot replaces the previous one of the same text segment. A frame that exceeds maxQueue is dropped and leaves
// an itemGap, which makes the turn read the history.
func (q *queue) post(i item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if n := len(q.items); n > 0 && i.replaces(&q.items[n-1]) {
		q.bytes += len(i.raw) - len(q.items[n-1].raw)
		q.items[n-1] = i
		return true
	}
	if i.kind == itemFrame && q.bytes+len(i.raw) > maxQueue {
		i = item{kind: itemGap}
		if n := len(q.items); n > 0 && q.items[n-1].kind == itemGap {
			return true
		}
	}
	q.items = append(q.items, i)
	q.bytes += len(i.raw)
	q.signal()
	return true
}

// replaces reports whether i contains everything that before contains. That holds for two snapshots of the same named segment,
// unless the older one names files.
func (i *item) replaces(before *item) bool {
	return i.kind == itemFrame && before.kind == itemFrame && i.run.Stream == "assistant" && before.run.Stream == "assistant" &&
		i.run.Run == before.run.Run && i.run.Data.Item != "" && i.run.Data.Item == before.run.Data.Item &&
		len(before.run.Data.Media) == 0
}

// take removes and returns all items.
func (q *queue) take() []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items, q.bytes = nil, 0
	return items
}

// putBack returns items that take removed to the front of the queue.
func (q *queue) putBack(items []item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(slices.Clip(items), q.items...)
	for i := range items {
		q.bytes += len(items[i].raw)
	}
	if len(q.items) > 0 {
		q.signal()
	}
}

// signal wakes the turn. The caller holds q.mu.
func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// outdated reports whether the item is a text snapshot that may be dropped if a newer history or snapshot contains its text. A
// retraction is not: no history repeats it.
func (i *item) outdated() bool {
	return i.kind == itemFrame && i.run.Stream == "assistant" && len(i.run.Data.Media) == 0 && !i.run.Data.Replace
}

// outdate drops the queued items for which repeated is true.
func (q *queue) outdate(repeated func(*item) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = slices.DeleteFunc(q.items, func(i item) bool {
		if repeated(&i) {
			q.bytes -= len(i.raw)
			return true
		}
		return false
	})
}

// close rejects further items and returns the queued ones.
func (q *queue) close() []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	items := q.items
	q.items = nil
	return items
}
