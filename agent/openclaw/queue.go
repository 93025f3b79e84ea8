package openclaw

import (
	"slices"
	"sync"
)

// What may wait for a turn.
const (
	itemFrame    = iota // a frame of a run
	itemGap             // frames went missing
	itemAsk             // an approval is asked for
	itemResolved        // an approval was given or refused
	itemSteer           // a message is to be followed too
)

// item is one thing that waits for a turn.
type item struct {
	kind     int
	raw      []byte
	run      runFrame
	approval approval
	steer    *steerRequest
}

// maxQueue bounds what may wait for a turn, in bytes of frames: what comes beyond is dropped, and looked up later.
const maxQueue = 32 << 20

// queue is what waits for a turn. Who adds to it never waits.
type queue struct {
	mu     sync.Mutex
	items  []item
	bytes  int
	closed bool
	wake   chan struct{} // has one, while something waits
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// post adds an item, and reports whether somebody will take it. A snapshot of a named segment takes the place of the one
// before it.
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

// replaces reports whether nothing is lost where i takes the place of the one before it.
func (i *item) replaces(before *item) bool {
	return i.kind == itemFrame && before.kind == itemFrame && i.run.Stream == "assistant" && before.run.Stream == "assistant" &&
		i.run.Run == before.run.Run && i.run.Data.Item != "" && i.run.Data.Item == before.run.Data.Item &&
		len(before.run.Data.Media) == 0
}

// take returns what waits, which may be nothing.
func (q *queue) take() []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items, q.bytes = nil, 0
	return items
}

// putBack returns items that were taken to the front of the queue.
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

// signal says that something waits.
func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// outdated reports whether the item is a snapshot of a text that a newer history, or the next snapshot, has too. A retraction
// is not: no history repeats it.
func (i *item) outdated() bool {
	return i.kind == itemFrame && i.run.Stream == "assistant" && len(i.run.Data.Media) == 0 && !i.run.Data.Replace
}

// outdate drops the snapshots that wait and that a newer history repeats. A history has no rows of a run whose first message is not
// complete.
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

// close refuses what comes from now on, and returns what waits.
func (q *queue) close() []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	items := q.items
	q.items = nil
	return items
}
