package sqlite

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/leat-dev/leat/internal/store/journal"
)

// request is what a goroutine asks of the writer: one of batch, op and pause.
type request struct {
	batch *batch
	// op writes in the next transaction. It checks before it writes: an error that is not the database's own must leave
	// the transaction as it was. size is about how many bytes it writes.
	op   func(*tx) error
	size int
	// pause runs between transactions.
	pause func() error

	state  atomic.Int32 // waiting, taken or abandoned
	result chan error   // takes one
}

// The states of a request.
const (
	stateWaiting = iota
	stateTaken
	abandoned
)

const (
	// maxCommit bounds what one commit takes of waiting batches, in bytes, so that one burst does not make the others wait
	// for a second.
	maxCommit = 16 << 20
	// maxOps bounds what one commit takes of settled chunks and other work besides batches, in bytes: some milliseconds.
	maxOps = 1 << 20
)

// queue is what waits for the writer.
type queue struct {
	mu      sync.Mutex // protects what follows
	batches []*request
	ops     []*request
	closed  bool

	wake chan struct{} // has a value when something waits or the queue was closed
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// do hands a request to the writer and waits for its result. When the context ends before the writer took the request,
// it is taken back and nothing of it happens; afterwards its fate is waited for.
func (q *queue) do(ctx context.Context, r *request) error {
	if err := q.push(r); err != nil {
		return err
	}
	select {
	case err := <-r.result:
		return err
	case <-ctx.Done():
		if r.state.CompareAndSwap(stateWaiting, abandoned) {
			return ctx.Err()
		}
		return <-r.result
	}
}

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
	q.signal()
	return nil
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns what the next commit holds, in order of arrival, batches first. Requests that were taken back are left
// out. done says that nothing waits and nothing will.
func (q *queue) take() (group []*request, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batches, group = takeUpTo(q.batches, group, maxCommit)
	q.ops, group = takeUpTo(q.ops, group, maxOps)
	if len(q.batches)+len(q.ops) > 0 {
		q.signal()
	}
	return group, q.closed && len(group)+len(q.batches)+len(q.ops) == 0
}

func takeUpTo(from, to []*request, limit int) (remainder, group []*request) {
	for i, r := range from {
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

// close refuses what comes from now on; what waits is still done.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}
