package gateway

import (
	"context"
	"fmt"

	"github.com/leat-dev/leat/agent"
)

// job is one change to a conversation.
type job struct {
	// do runs in the writer's goroutine. It must make all its checks before it adds to the tx: if it returns an error, it has
	// added nothing.
	do func(*tx) error
	// alone runs the job in a commit of its own, after all jobs before it are committed and shown.
	alone bool
	bytes int
	trace string     // traceparent of the request
	done  chan error // buffered; nil if the caller doesn't wait
	err   error
}

// submit queues a command and waits until it is committed or has failed. While commits fail, commands are refused.
func (w *writer) submit(ctx context.Context, alone bool, do func(*tx) error) error {
	w.mu.Lock()
	err := w.refuse()
	w.mu.Unlock()
	if err != nil {
		return err
	}
	return w.await(ctx, alone, do)
}

// await queues a job and waits until it is committed or has failed. Unlike submit, it waits while commits fail, so that the
// operations and the end of a running turn aren't lost when the disk is full for a moment.
func (w *writer) await(ctx context.Context, alone bool, do func(*tx) error) error {
	j := &job{do: do, alone: alone, trace: agent.TraceParent(ctx), done: make(chan error, 1)}
	w.mu.Lock()
	if err := w.closeErr; err != nil {
		w.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	w.push(j)
	w.mu.Unlock()
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refuse returns why no command can be accepted. w.mu is locked.
func (w *writer) refuse() error {
	if w.closeErr != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, w.closeErr)
	}
	if w.failing != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, w.failing)
	}
	return nil
}

// post queues a job and returns at once, however long the queue is.
func (w *writer) post(do func(*tx) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closeErr == nil {
		w.push(&job{do: do, alone: true})
	}
}

// feedIn queues a job that adds about bytes of text. It blocks while more than maxWaiting bytes are queued.
func (w *writer) feedIn(ctx context.Context, bytes int, do func(*tx) error) error {
	for {
		w.mu.Lock()
		if w.closeErr != nil {
			err := w.closeErr
			w.mu.Unlock()
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if w.queuedBytes == 0 || w.queuedBytes+bytes <= maxWaiting {
			w.push(&job{do: do, bytes: bytes})
			w.mu.Unlock()
			return nil
		}
		room := w.room
		w.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// push appends a job and starts the writer's goroutine if it isn't running. w.mu is locked.
func (w *writer) push(j *job) {
	w.queue = append(w.queue, j)
	w.queuedBytes += j.bytes
	if !w.isRunning {
		w.isRunning = true
		w.g.tasks.Go(w.write)
	}
}

// take removes and returns the next jobs that share a commit. w.mu is locked.
func (w *writer) take() []*job {
	n := 0
	for n < len(w.queue) && !w.queue[n].alone {
		n++
	}
	if n == 0 {
		n = 1
	}
	jobs := w.queue[:n:n]
	w.queue = w.queue[n:]
	for _, j := range jobs {
		w.queuedBytes -= j.bytes
	}
	close(w.room)
	w.room = make(chan struct{})
	return jobs
}

// write is the writer's goroutine. It returns when the queue is empty.
func (w *writer) write() {
	w.retain()
	for {
		w.mu.Lock()
		if len(w.queue) == 0 || w.closeErr != nil {
			w.isRunning = false
			rest := w.queue
			w.queue, w.queuedBytes = nil, 0
			close(w.stopped)
			w.stopped = make(chan struct{})
			err := w.closeErr
			w.mu.Unlock()
			for _, j := range rest {
				j.finish(fmt.Errorf("%w: %w", ErrUnavailable, err))
			}
			break
		}
		jobs := w.take()
		w.mu.Unlock()

		t := &tx{writer: w}
		for _, j := range jobs {
			t.trace = j.trace
			granted := len(t.reservations)
			if j.err = j.do(t); j.err != nil {
				t.cancelReservations(granted)
			}
		}
		err := w.commit(t)
		for _, j := range jobs {
			if j.err == nil {
				j.err = err
			}
			j.finish(j.err)
		}
		if err != nil {
			w.fail(err)
			continue
		}
		for _, fn := range t.after {
			fn()
		}
	}
	w.release()
}

func (j *job) finish(err error) {
	if j.done != nil {
		j.done <- err
	}
}

// idle waits until the queue is empty.
func (w *writer) idle(ctx context.Context) error {
	for {
		w.mu.Lock()
		writing, rest := w.isRunning, w.stopped
		w.mu.Unlock()
		if !writing {
			return nil
		}
		select {
		case <-rest:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
