// One commit of a writer: the batch goes to the journal first, and only then to the feed, the watchers and the metrics. So no
// reader gets an event that a crash could take back.

package gateway

import (
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// write is the writer's goroutine. It returns when the queue is empty, or closed because a commit has failed.
func (w *writer) write() {
	w.retain()
	w.writeQueued()
}

// writeQueued runs and commits the jobs in the queue. All jobs that are queued at one moment share one tx and therefore one commit:
// under load, the cost of a sync is divided among them. At the end it drops the reference of the writer's goroutine.
func (w *writer) writeQueued() {
	for jobs := w.take(); jobs != nil; jobs = w.take() {
		c := w.run(jobs)
		w.finish(c, w.append(c))
	}
	w.release()
}

// writeText runs and commits one job in the goroutine of its caller, and returns before the commit is durable. It is the path of most of
// an agent's text: no goroutine is started, and none waits for the journal. A commit that causes more than the new events to be shown
// continues in a goroutine, because its consequences may wait.
func (w *writer) writeText(j *job) {
	w.retain()
	c := w.run([]*job{j})
	async, ok := w.core.journal.(journal.AsyncAppender)
	if !ok || !c.tx.isPlain() || len(c.outboxed) > 0 || w.core.life.Err() != nil {
		w.continueWith(func() { w.finish(c, w.append(c)) })
		return
	}
	if c.isEmpty() {
		w.textWritten()
		return
	}
	c.submittedAt = time.Now()
	err := async.AppendAsync(c.batch, func(err error) {
		if err == nil {
			c.durableAt = time.Now()
			err = w.show(c)
			if err == nil {
				w.textWritten()
				return
			}
			w.continueWith(func() { w.fail(err) })
			return
		}
		w.continueWith(func() { w.finish(c, err) })
	})
	if err != nil {
		w.continueWith(func() { w.finish(c, err) })
	}
}

// textWritten ends writeText. If more jobs were queued meanwhile, the goroutine takes over.
func (w *writer) textWritten() {
	if !w.stopIfEmpty() {
		w.continueWith(func() {})
		return
	}
	w.release()
	w.core.tasks.finish()
}

// continueWith starts the goroutine, which calls fn first, and ends writeText.
func (w *writer) continueWith(fn func()) {
	w.core.tasks.Go(func() { // it can't fail in a task
		fn()
		w.writeQueued()
	})
	w.core.tasks.finish()
}

// commit is a commit of a writer.
type commit struct {
	jobs                              []*job
	tx                                *tx
	batch                             journal.Batch
	outboxed                          []outboxEntries
	startedAt, submittedAt, durableAt time.Time
}

// isEmpty reports whether there is nothing to commit.
func (c *commit) isEmpty() bool {
	return len(c.tx.events) == 0 && len(c.tx.keys) == 0 && c.tx.summary == nil
}

// run runs jobs in one tx and returns the commit. Jobs see the changes of the jobs before them. A job that returns an error must not
// have changed the tx, except for reservations, which are cancelled here.
func (w *writer) run(jobs []*job) *commit {
	t := &tx{conversation: w.id, head: w.head, committed: &w.summary, limits: w.core.limits}
	for _, j := range jobs {
		t.trace = j.trace
		reserved := len(t.reservations)
		if j.err = j.do(t); j.err != nil {
			t.cancelReservations(reserved)
		}
	}
	c := &commit{jobs: jobs, tx: t, startedAt: time.Now()}
	if c.isEmpty() {
		return c
	}
	c.batch = journal.Batch{Conversation: w.id, Expected: w.head, Events: t.events, Keys: t.keys, Summary: t.summary, Terminal: t.terminal}
	// Costs and outbox entries are computed from the final events, and become durable with them.
	billing{w}.bill(t, &c.batch)
	c.outboxed = w.addOutboxes(t, &c.batch)
	return c
}

// append passes a commit to the journal and returns when it is durable.
func (w *writer) append(c *commit) error {
	if c.isEmpty() {
		return nil
	}
	c.submittedAt = time.Now()
	err := w.core.journal.Append(w.core.life, c.batch)
	c.durableAt = time.Now()
	return err
}

// finish ends a commit for which the journal has returned err, and reports the result to the jobs.
func (w *writer) finish(c *commit, err error) {
	err = w.complete(c, err)
	// The result of a job is that of its commit, so no caller learns of a change that is not durable.
	for _, j := range c.jobs {
		if j.err == nil {
			j.err = err
		}
		j.finish(j.err)
	}
	if err != nil {
		w.fail(err)
		return
	}
	// Callbacks run after the commit, in the writer's goroutine and in order. They start agents and timers, which must not run
	// for turns that were never stored.
	for _, fn := range c.tx.after {
		fn()
	}
}

// complete shows a commit that the journal has stored. If the disk was full, it retries for commitLimit; any other error is final, and
// the caller drops the writer.
func (w *writer) complete(c *commit, err error) error {
	if c.isEmpty() {
		return err
	}
	metrics, wait := w.core.metrics, 50*time.Millisecond
	// Only a full disk is retried: the journal then has stored nothing. After any other error it is unknown what was stored, so the
	// writer is dropped and the next one reads the log again.
	for err != nil {
		metrics.CommitFailed.Inc()
		if !errors.Is(err, journal.ErrFull) || time.Since(c.startedAt) > commitLimit || w.core.life.Err() != nil {
			finishOutboxes(c.outboxed, err)
			c.tx.finishReservations(err)
			return fmt.Errorf("commit: %w", err)
		}
		w.setCommitErr(err)
		w.log.Warn("commit failed; trying again", "error", err)
		select {
		case <-time.After(wait):
		case <-w.core.life.Done():
		}
		wait = min(2*wait, 2*time.Second)
		err = w.append(c)
	}
	defer finishOutboxes(c.outboxed, nil) // after readers can see the events, because an outbox may read the conversation
	return w.show(c)
}

// show makes memory follow a commit that is durable, and shows it. The order matters: quota, memory and the feed, and then watchers.
// If publishing fails, the feed no longer matches the log, and the caller drops the writer.
func (w *writer) show(c *commit) error {
	t, metrics := c.tx, w.core.metrics
	metrics.CommitSeconds.Observe(c.durableAt.Sub(c.submittedAt).Seconds())
	t.finishReservations(nil)
	w.setCommitErr(nil)
	w.head += int64(len(t.events))
	hasSpoken := t.summary != nil && t.summary.SpokenSeq > w.summary.SpokenSeq
	if t.summary != nil {
		w.summaryMu.Lock()
		w.summary = *t.summary
		w.summaryMu.Unlock()
	}
	if len(t.events) > 0 {
		if err := w.feed.Publish(t.events); err != nil {
			return fmt.Errorf("show: %w", err)
		}
		if len(t.restored) == 0 {
			w.observer.committed(t.events, c.submittedAt, c.durableAt)
		}
		w.messageIDs.committed(t.events)
		if t.isBackfill {
			notifyCreated(w.core.cfg.Watchers, &w.summary)
		} else {
			w.notifyWatchers(&w.summary, t.events)
		}
	}
	if hasSpoken {
		w.core.positions.notifyUnread(&w.summary)
	}
	if t.unshared {
		w.feed.AccessChanged()
	}
	return nil
}

// outboxEntries are the keys that one outbox adds to a commit.
type outboxEntries struct {
	outbox Outbox
	keys   []journal.KeyValue
}

// addOutboxes adds the entries of all outboxes to the batch. A backfill causes none.
func (w *writer) addOutboxes(t *tx, b *journal.Batch) []outboxEntries {
	if len(b.Events) == 0 || t.isBackfill {
		return nil
	}
	var outboxes []outboxEntries
	for _, outbox := range w.core.cfg.Outboxes {
		if keys := outbox.Entries(t.current(), b.Events); len(keys) > 0 {
			b.Keys = append(b.Keys, keys...)
			outboxes = append(outboxes, outboxEntries{outbox, keys})
		}
	}
	return outboxes
}

// finishOutboxes reports the result of the commit to the outboxes that added to it.
func finishOutboxes(outboxes []outboxEntries, err error) {
	for _, entries := range outboxes {
		entries.outbox.Finish(entries.keys, err)
	}
}

// notifyWatchers notifies the watchers of a commit.
func (w *writer) notifyWatchers(s *journal.Summary, events []event.Event) {
	for _, watcher := range w.core.cfg.Watchers {
		watcher.Committed(s, events)
	}
}
