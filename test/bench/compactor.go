package main

import (
	"context"
	"errors"
	"sync"
)

// compactor compacts streams one after another, in the order of the first request. A stream that already waits is compacted once,
// up to its latest request, like in the gateway. newCompactor starts its goroutine and finish ends it.
type compactor struct {
	mu      sync.Mutex
	order   []int         // streams that wait
	upto    map[int]int64 // requested seq of each waiting stream
	wake    chan struct{}
	closed  bool
	done    chan struct{} // closed when run has returned
	compact func(int, int64) error
	ctx     context.Context
	failure error
}

func newCompactor(ctx context.Context, compact func(int, int64) error) *compactor {
	c := &compactor{
		upto: map[int]int64{},
		wake: make(chan struct{}, 1), done: make(chan struct{}), compact: compact, ctx: ctx,
	}
	go c.run()
	return c
}

// add requests the compaction of a stream up to a seq. It doesn't wait.
func (c *compactor) add(stream int, head int64) {
	c.mu.Lock()
	if _, ok := c.upto[stream]; !ok {
		c.order = append(c.order, stream)
	}
	// A stream that waits already keeps its place in the order, so that busy streams can't delay the others.
	c.upto[stream] = head
	c.mu.Unlock()
	c.signal()
}

// signal wakes run. One pending wake is enough, because run takes everything that waits before it waits again.
func (c *compactor) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run compacts waiting streams until finish is called and none waits, ctx ends, or a compaction fails.
func (c *compactor) run() {
	defer close(c.done)
	for {
		c.mu.Lock()
		if len(c.order) == 0 {
			// The flag is read together with the empty list: an add before finish is always seen.
			closed := c.closed
			c.mu.Unlock()
			if closed {
				return
			}
			select {
			case <-c.wake:
			case <-c.ctx.Done():
				return
			}
			continue
		}
		stream := c.order[0]
		upto := c.upto[stream]
		c.order = c.order[1:]
		delete(c.upto, stream)
		c.mu.Unlock()
		// The lock is not held here, so appends don't wait for a compaction.
		err := c.compact(stream, upto)
		c.mu.Lock()
		c.failure = errors.Join(c.failure, err)
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// finish waits until all requested compactions are done, ends the goroutine, and returns the errors.
func (c *compactor) finish() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.signal()
	<-c.done
	return c.failure
}
