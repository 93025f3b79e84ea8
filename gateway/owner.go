package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/feed"
	"github.com/leat-dev/leat/journal"
	"github.com/leat-dev/leat/quota"
	"github.com/leat-dev/leat/transcript"
)

// owner is the one writer of a conversation. Whatever changes the conversation is a job; the writer goroutine, which
// lives while jobs wait, runs them in order and commits what they add.
type owner struct {
	g    *Gateway
	id   string
	feed *feed.Feed
	log  *slog.Logger // names the conversation
	refs int          // guarded by g.mu

	mu      sync.Mutex
	queue   []*job
	waiting int           // bytes in queue
	room    chan struct{} // closed and replaced when the queue was taken
	writing bool
	rest    chan struct{} // closed and replaced when the writer stops
	dead    error         // set once; the owner takes no job any more
	failing error         // why commits fail now
	current *run          // the turn that runs; changed by the writer alone
	left    bool          // shutdown has taken the turns away

	settled atomic.Int64

	parents parents

	// The writer's own.
	summary journal.Summary
	head    int64
	watch   observer
}

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

// tx collects what the jobs of one commit add.
type tx struct {
	o        *owner
	events   []event.Event
	put      []journal.KeyValue
	summary  *journal.Summary
	terminal bool
	past     bool     // what it adds was said elsewhere, before: nobody is told of that
	trace    string   // traceparent of the job that runs
	after    []func() // run once the commit is shown
	grants   []*quota.Grant
	ended    []string // turns
}

// add appends an event; its seq is the owner's to give.
func (t *tx) add(e event.Event) int64 {
	e.Seq = t.o.head + int64(len(t.events)) + 1
	if e.At == 0 {
		e.At = now()
	}
	t.events = append(t.events, e)
	if !t.past && speaks(&e) {
		t.edit().Spoken = e.Seq
	}
	return e.Seq
}

// set writes a key with the commit; the last value of a key wins.
func (t *tx) set(key string, value []byte, expires int64) {
	for i := range t.put {
		if t.put[i].Key == key {
			t.put[i].Value, t.put[i].Expires = value, expires
			return
		}
	}
	t.put = append(t.put, journal.KeyValue{Key: key, Value: value, Expires: expires})
}

// edit returns the summary to change; it is written with the commit.
func (t *tx) edit() *journal.Summary {
	if t.summary == nil {
		s := t.o.summary
		s.Open = append([]string(nil), s.Open...)
		t.summary = &s
	}
	return t.summary
}

func (t *tx) then(fn func()) { t.after = append(t.after, fn) }

func newOwner(g *Gateway, s journal.Summary, f *feed.Feed) *owner {
	o := &owner{g: g, id: s.ID, feed: f, log: g.log.With("conversation", s.ID), summary: s, head: s.Head, room: make(chan struct{}), rest: make(chan struct{})}
	o.settled.Store(s.Settled)
	o.watch.o = o
	return o
}

// release gives the owner back; the last to do so drops it from memory unless it has work.
func (o *owner) release() {
	o.g.mu.Lock()
	o.refs--
	last := o.refs == 0 && o.g.owners[o.id] == o
	if last {
		o.mu.Lock()
		last = !o.writing && o.current == nil && o.dead == nil
		if last {
			o.dead = ErrClosed
			delete(o.g.owners, o.id)
			o.g.cfg.Metrics.Owners.Set(float64(len(o.g.owners)))
		}
		o.mu.Unlock()
	}
	o.g.mu.Unlock()
	if last {
		if o.head > o.settled.Load() && len(o.summary.Open) == 0 {
			o.g.settle.add(o.id, o.head)
		}
		o.feed.Release()
	}
}

// hold takes another reference; the caller has one.
func (o *owner) hold() {
	o.g.mu.Lock()
	o.refs++
	o.g.mu.Unlock()
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

// commit makes a tx durable and shows it. A full disk is tried again for a while; what else fails is final.
func (o *owner) commit(t *tx) error {
	if len(t.events) == 0 && len(t.put) == 0 && t.summary == nil {
		return nil
	}
	b := journal.Batch{Conversation: o.id, Expected: o.head, Events: t.events, Put: t.put, Summary: t.summary, Terminal: t.terminal}
	o.bill(&b)
	recordings := o.record(t, &b)
	begin := time.Now()
	wait := 50 * time.Millisecond
	var asked, durable time.Time
	for {
		asked = time.Now()
		err := o.g.journal.Append(o.g.life, b)
		if err == nil {
			durable = time.Now()
			o.g.cfg.Metrics.CommitSeconds.Observe(durable.Sub(asked).Seconds())
			break
		}
		o.g.cfg.Metrics.CommitFailed.Inc()
		if !errors.Is(err, journal.ErrFull) || time.Since(begin) > commitLimit || o.g.life.Err() != nil {
			recorded(recordings, err)
			t.settled(err)
			return fmt.Errorf("commit: %w", err)
		}
		o.setFailing(err)
		o.log.Warn("commit failed; trying again", "err", err)
		select {
		case <-time.After(wait):
		case <-o.g.life.Done():
		}
		wait = min(2*wait, 2*time.Second)
	}
	defer recorded(recordings, nil) // once it is shown: a recorder may look at the conversation
	t.settled(nil)
	o.setFailing(nil)
	o.head += int64(len(t.events))
	spoken := t.summary != nil && t.summary.Spoken > o.summary.Spoken
	if t.summary != nil {
		o.mu.Lock()
		o.summary = *t.summary
		o.mu.Unlock()
	}
	if len(t.events) > 0 {
		if err := o.feed.Publish(t.events); err != nil {
			return fmt.Errorf("show: %w", err)
		}
		o.watch.committed(t.events, asked, durable)
		if t.past {
			o.g.arrived(&o.summary)
		} else {
			o.watched(&o.summary, t.events)
		}
	}
	if spoken {
		o.g.positions.spoken(&o.summary)
	}
	return nil
}

func (o *owner) setFailing(err error) {
	o.mu.Lock()
	o.failing = err
	o.mu.Unlock()
}

// fail gives the conversation up: what is in memory may be ahead of the log, so all of it goes. Recovery reads the log anew.
func (o *owner) fail(err error) {
	o.log.Error("conversation given up", "err", err)
	o.mu.Lock()
	o.dead = err
	r := o.current
	o.mu.Unlock()
	o.g.forget(o)
	if r != nil {
		r.lose(err)
	}
	o.watch.gone(err)
	o.feed.Close(feed.ErrLost)
	o.feed.Release()
	o.g.reopen.add(o.id)
}

// kill ends the owner of a deleted conversation. It runs in the writer.
func (o *owner) kill(err error) {
	o.mu.Lock()
	o.dead = err
	o.mu.Unlock()
	o.g.forget(o)
	o.feed.Close(feed.ErrDeleted)
	o.feed.Release()
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

// queued counts the turns that wait for another one.
func (o *owner) queued() (n int) {
	open := o.info().Open
	if len(open) == 0 {
		return 0
	}
	o.feed.View(func(t *transcript.Transcript) {
		for _, id := range open {
			if turn := t.Turn(id); turn != nil && turn.State == transcript.Queued {
				n++
			}
		}
	})
	return n
}

// info returns the committed summary.
func (o *owner) info() journal.Summary {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.summary
	return s
}
