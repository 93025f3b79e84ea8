package gateway

import (
	"context"
	"fmt"

	"github.com/leat-dev/leat/agent"
)

// job is one change of a conversation.
type job struct {
	// do runs in the writer. It checks first and adds to the tx last: an error means that it added nothing.
	do func(*tx) error
	// alone runs the job in a commit of its own, after all before it is committed and shown.
	alone bool
	bytes int
	trace string     // traceparent of who asked for it
	done  chan error // buffered; nil when nobody waits
	err   error
}

// submit queues a command and waits until it is committed, or failed. While commits fail it is refused.
func (o *owner) submit(ctx context.Context, alone bool, do func(*tx) error) error {
	o.mu.Lock()
	err := o.refuse()
	o.mu.Unlock()
	if err != nil {
		return err
	}
	return o.await(ctx, alone, do)
}

// await queues a job and waits until it is committed, or failed. While commits fail it waits with all the others: what a
// turn that runs says, and its end, is not lost because the disk is full for a moment.
func (o *owner) await(ctx context.Context, alone bool, do func(*tx) error) error {
	j := &job{do: do, alone: alone, trace: agent.TraceParent(ctx), done: make(chan error, 1)}
	o.mu.Lock()
	if err := o.dead; err != nil {
		o.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	o.push(j)
	o.mu.Unlock()
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refuse says why no command can be taken. o.mu is held.
func (o *owner) refuse() error {
	if o.dead != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, o.dead)
	}
	if o.failing != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, o.failing)
	}
	return nil
}

// post queues a job that nobody waits for, whatever waits already.
func (o *owner) post(do func(*tx) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead == nil {
		o.push(&job{do: do, alone: true})
	}
}

// feedIn queues a job of so many bytes, and blocks while too much waits.
func (o *owner) feedIn(ctx context.Context, bytes int, do func(*tx) error) error {
	for {
		o.mu.Lock()
		if o.dead != nil {
			err := o.dead
			o.mu.Unlock()
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if o.waiting == 0 || o.waiting+bytes <= maxWaiting {
			o.push(&job{do: do, bytes: bytes})
			o.mu.Unlock()
			return nil
		}
		room := o.room
		o.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// push appends a job and sees to it that a writer runs. o.mu is held.
func (o *owner) push(j *job) {
	o.queue = append(o.queue, j)
	o.waiting += j.bytes
	if !o.writing {
		o.writing = true
		o.g.tasks.Go(o.write)
	}
}

// take returns the next jobs that share a commit. o.mu is held.
func (o *owner) take() []*job {
	n := 0
	for n < len(o.queue) && !o.queue[n].alone {
		n++
	}
	if n == 0 {
		n = 1
	}
	jobs := o.queue[:n:n]
	o.queue = o.queue[n:]
	for _, j := range jobs {
		o.waiting -= j.bytes
	}
	close(o.room)
	o.room = make(chan struct{})
	return jobs
}

// write runs while jobs wait.
func (o *owner) write() {
	o.hold()
	for {
		o.mu.Lock()
		if len(o.queue) == 0 || o.dead != nil {
			o.writing = false
			rest := o.queue
			o.queue, o.waiting = nil, 0
			close(o.rest)
			o.rest = make(chan struct{})
			err := o.dead
			o.mu.Unlock()
			for _, j := range rest {
				j.finish(fmt.Errorf("%w: %w", ErrUnavailable, err))
			}
			break
		}
		jobs := o.take()
		o.mu.Unlock()

		t := &tx{o: o}
		for _, j := range jobs {
			t.trace = j.trace
			granted := len(t.grants)
			if j.err = j.do(t); j.err != nil {
				t.giveBack(granted)
			}
		}
		err := o.commit(t)
		for _, j := range jobs {
			if j.err == nil {
				j.err = err
			}
			j.finish(j.err)
		}
		if err != nil {
			o.fail(err)
			continue
		}
		for _, fn := range t.after {
			fn()
		}
	}
	o.release()
}

func (j *job) finish(err error) {
	if j.done != nil {
		j.done <- err
	}
}

// idle waits until no job waits.
func (o *owner) idle(ctx context.Context) error {
	for {
		o.mu.Lock()
		writing, rest := o.writing, o.rest
		o.mu.Unlock()
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
