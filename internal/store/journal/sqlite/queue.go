// The batches that wait for the writer. It takes all of them into one transaction, up to a limit.

package sqlite

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leat-dev/leat/internal/store/journal"
)

// request is a task for the writer: either batch, op or pause is set.
type request struct {
	batch *batch
	// op writes in the next transaction. If it returns an error other than t.err, it must not have written anything. size estimates the
	// bytes that it writes.
	op   func(*tx) error
	size int
	// pause runs between transactions.
	pause func() error

	state  atomic.Int32 // stateWaiting, stateTaken or abandoned
	result chan error   // receives exactly one result, unless report is set
	report func(error)  // called with the result; only for batches
}

// answer reports the result of the request.
func (r *request) answer(err error) {
	report := r.report
	if report == nil {
		r.result <- err
		return
	}
	if err != nil {
		err = fmt.Errorf("append to %s: %w", r.batch.conversation, err)
	}
	r.recycle()
	report(err)
}

// The states of a request.
const (
	stateWaiting = iota
	stateTaken
	abandoned
)

const (
	// maxCommit limits the queued batches in one commit, in bytes, so that a burst doesn't delay other batches for a second.
	maxCommit = 16 << 20
	// maxOps limits compacted chunks and other operations in one commit, in bytes: a few milliseconds.
	maxOps = 1 << 20
)

// queue holds the requests for the writer. Batches and operations are separate lists, so that a burst of compactions doesn't
// delay appends.
type queue struct {
	mu      sync.Mutex // protects the fields below
	batches []*request
	ops     []*request
	closed  bool

	wake chan struct{} // receives a value when a request is added or the queue is closed
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// do passes a request to the writer and waits for its result. If ctx ends before the writer has taken the request, the request
// is withdrawn and has no effect. Afterwards do waits for the result regardless of ctx. A caller that gives up after the writer
// has taken the request would not know whether its batch was stored.
func (q *queue) do(ctx context.Context, r *request) error {
	// Without this check the writer could take the request of an ended context before the select below withdraws it.
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := q.push(r); err != nil {
		return err
	}
	select {
	case err := <-r.result:
		return err
	case <-ctx.Done():
		// The writer and this caller compete for the state. The first change decides whether the request is executed.
		if r.state.CompareAndSwap(stateWaiting, abandoned) {
			return ctx.Err()
		}
		return <-r.result
	}
}

// push adds a request without waiting for its result.
func (q *queue) push(r *request) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return journal.ErrClosed
	}
	if r.batch != nil {
		q.batches = append(q.batches, r)
	} else {
		q.ops = append(q.ops, r)
	}
	signal(q.wake)
	return nil
}

// signal wakes the goroutine that receives from wake, a channel of capacity 1. It never blocks: if a value is pending already, the
// goroutine will see this change too.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// take returns the requests of the next commit, in order of arrival, batches first. It omits withdrawn requests. closed means
// that the queue is closed and empty. If requests remain, it signals again, so the writer continues with the next group.
func (q *queue) take() (group []*request, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batches, group = takeUpTo(q.batches, group, maxCommit)
	q.ops, group = takeUpTo(q.ops, group, maxOps)
	if len(q.batches)+len(q.ops) > 0 {
		signal(q.wake)
	}
	return group, q.closed && len(group)+len(q.batches)+len(q.ops) == 0
}

// isShort reports whether fewer requests wait than make a large commit.
func (q *queue) isShort() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.batches) < shortQueue && len(q.ops) == 0 && !q.closed
}

// takeUpTo moves requests from one list to another until their size reaches the limit, and returns the remaining ones. It takes
// at least one, however large.
func takeUpTo(from, to []*request, limit int) (remainder, group []*request) {
	for i, r := range from {
		// The limit is checked before a request and not after it, so the first is taken whatever its size.
		if limit <= 0 {
			return from[i:], to
		}
		if r.state.CompareAndSwap(stateWaiting, stateTaken) {
			to = append(to, r)
			limit -= r.size
		}
	}
	return nil, to
}

// close refuses new requests. Queued ones are still executed. It is called once, by Close.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	signal(q.wake)
}
