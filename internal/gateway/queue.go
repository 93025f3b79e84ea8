// The queue of a writer: jobs of commands and of runs, executed one after another.

package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leat-dev/leat/agent"
)

// queue is the queue of the jobs that change one conversation. A goroutine that exists while there are jobs runs them in order; jobs that
// need not be alone share a commit. Text that arrives while no job is queued needs no goroutine. So an idle
// conversation has no goroutine. Its methods may be called by any goroutine, except take, stop and stopIfEmpty, which
// belong to what runs the jobs.
type queue struct {
	goWrite func() bool // starts the goroutine, which calls take until it returns nil; false if the gateway has stopped
	// mayWrite reports whether a job may be run without the goroutine, and writeNow runs it. It returns before the job is committed.
	mayWrite func() bool
	writeNow func(*job)

	mu         sync.Mutex
	jobs       []*job
	jobBytes   int           // of text in jobs
	room       chan struct{} // closed and replaced when jobs are taken
	isRunning  bool          // the goroutine, or the commit of writeNow
	idleSignal chan struct{} // closed and replaced when the goroutine ends
	closeErr   error         // set once; from then on every job is refused
	commitErr  error         // why commits fail at the moment; nil if they don't
}

// job is one change to a conversation.
type job struct {
	// do runs in the writer's goroutine. It must make all its checks before it adds to the tx: if it returns an error, it has
	// added nothing.
	do func(*tx) error
	// alone runs the job in a commit of its own, after all jobs before it are committed and shown.
	alone  bool
	bytes  int        // of the text that it adds, about
	trace  string     // traceparent of the request
	result chan error // buffered; nil if the caller doesn't wait
	err    error
}

// refusal is the error of a job that a queue refuses because of err. A deleted conversation is not found; after any other error the command
// may succeed with the conversation's next writer. ErrUnavailable invites the caller to try again.
func refusal(err error) error {
	if errors.Is(err, ErrNotFound) {
		return ErrNotFound
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// finish reports the result of a job to its caller. It never blocks, since the channel has room for the only result.
func (j *job) finish(err error) {
	if j.result != nil {
		j.result <- err
	}
}

// submit queues a command, alone, and waits until it is committed or has failed. While commits fail, commands are
// refused. Commands have a person who can try again, so they aren't kept waiting for a disk that is full.
func (q *queue) submit(ctx context.Context, do func(*tx) error) error {
	q.mu.Lock()
	err := q.closeErr
	if err == nil {
		err = q.commitErr
	}
	q.mu.Unlock()
	if err != nil {
		return refusal(err)
	}
	return q.await(ctx, true, do)
}

// await queues a job and waits until it is committed or has failed. Unlike submit, it waits while commits fail, so that the
// operations and the end of a running turn aren't lost when the disk is full for a moment. If ctx ends, the job may still run, so the
// caller must not read what the job writes.
func (q *queue) await(ctx context.Context, alone bool, do func(*tx) error) error {
	j := &job{do: do, alone: alone, trace: agent.TraceParent(ctx), result: make(chan error, 1)}
	q.mu.Lock()
	if err := q.closeErr; err != nil {
		q.mu.Unlock()
		return refusal(err)
	}
	q.push(j)
	q.mu.Unlock()
	select {
	case err := <-j.result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// post queues a job and returns at once, however long the queue is. A closed queue drops the job. Its job runs alone.
// Its error isn't reported to anyone, so the job handles errors itself.
func (q *queue) post(do func(*tx) error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closeErr == nil {
		q.push(&job{do: do, alone: true})
	}
}

// postText queues a job that adds about that many bytes of text, and doesn't wait for its commit. It blocks while more than maxWaiting
// bytes are queued, which slows a fast agent down to the speed of the disk. A job that alone exceeds maxWaiting is
// accepted if no other one waits, so a large emission can't block forever.
func (q *queue) postText(ctx context.Context, bytes int, do func(*tx) error) error {
	for {
		q.mu.Lock()
		if q.closeErr != nil {
			err := q.closeErr
			q.mu.Unlock()
			return refusal(err)
		}
		if q.jobBytes == 0 || q.jobBytes+bytes <= maxWaiting {
			j := &job{do: do, bytes: bytes}
			if !q.isRunning && q.mayWrite() {
				q.isRunning = true
				q.mu.Unlock()
				q.writeNow(j)
				return nil
			}
			q.push(j)
			q.mu.Unlock()
			return nil
		}
		room := q.room
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// push appends a job and starts the goroutine if it isn't running. If the gateway has stopped, the job is refused. q.mu is locked.
func (q *queue) push(j *job) {
	if !q.isRunning && !q.goWrite() {
		q.closeErr = ErrClosed
		j.finish(refusal(ErrClosed))
		return
	}
	q.isRunning = true
	q.jobs = append(q.jobs, j)
	q.jobBytes += j.bytes
}

// take removes and returns the next jobs that share a commit. It returns nil if there are none or the queue is closed; then the goroutine
// must end, because the next job starts another one. It takes either one job that is alone, or all jobs up to the
// next one of that kind.
func (q *queue) take() []*job {
	q.mu.Lock()
	if len(q.jobs) == 0 || q.closeErr != nil {
		rejectedJobs, err := q.jobs, q.closeErr
		q.jobs, q.jobBytes = nil, 0
		q.stop()
		q.mu.Unlock()
		for _, j := range rejectedJobs {
			j.finish(refusal(err))
		}
		return nil
	}
	defer q.mu.Unlock()
	n := 0
	for n < len(q.jobs) && !q.jobs[n].alone {
		n++
	}
	n = max(n, 1)
	jobs := q.jobs[:n:n]
	q.jobs = q.jobs[n:]
	for _, j := range jobs {
		q.jobBytes -= j.bytes
	}
	close(q.room)
	q.room = make(chan struct{})
	return jobs
}

// stop notes that nothing runs the jobs. q.mu is locked.
func (q *queue) stop() {
	q.isRunning = false
	close(q.idleSignal)
	q.idleSignal = make(chan struct{})
}

// stopIfEmpty notes that the commit of writeNow has ended. It returns false if more jobs wait, which need the goroutine.
func (q *queue) stopIfEmpty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) > 0 || q.closeErr != nil {
		return false
	}
	q.stop()
	return true
}

// idle waits until the queue is empty and its goroutine has ended.
func (q *queue) idle(ctx context.Context) error {
	for {
		q.mu.Lock()
		isRunning, idleSignal := q.isRunning, q.idleSignal
		q.mu.Unlock()
		if !isRunning {
			return nil
		}
		select {
		case <-idleSignal:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// close refuses all jobs from now on, those that wait included. A job that is being committed still gets its own
// result.
func (q *queue) close(err error) {
	q.mu.Lock()
	q.closeErr = err
	q.mu.Unlock()
}

// closeIfIdle closes the queue if it is empty and open. It returns false if it isn't.
func (q *queue) closeIfIdle(err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isRunning || q.closeErr != nil {
		return false
	}
	q.closeErr = err
	return true
}

// setCommitErr notes why commits fail at the moment; nil notes that they don't.
func (q *queue) setCommitErr(err error) {
	q.mu.Lock()
	q.commitErr = err
	q.mu.Unlock()
}

// load returns how many jobs wait, how many bytes of text they add, and whether commits fail at the moment.
func (q *queue) load() (jobs, bytes int, isFailing bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.jobs), q.jobBytes, q.commitErr != nil
}
