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
	// All jobs that are queued at this moment share one tx and therefore one commit: under load, the cost of a sync is divided
	// among them. Jobs see the changes of the jobs before them. A job that returns an error must not have changed the tx, except
	// for reservations, which are cancelled here.
	for jobs := w.take(); jobs != nil; jobs = w.take() {
		t := &tx{conversation: w.id, head: w.head, committed: &w.summary, limits: w.core.limits}
		for _, j := range jobs {
			t.trace = j.trace
			reserved := len(t.reservations)
			if j.err = j.do(t); j.err != nil {
				t.cancelReservations(reserved)
			}
		}
		// The result of a job is that of its commit, so no caller learns of a change that is not durable.
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
		// Callbacks run after the commit, in the writer's goroutine and in order. They start agents and timers, which must not run
		// for turns that were never stored.
		for _, fn := range t.after {
			fn()
		}
	}
	w.release()
}

// commit makes a tx durable and shows it. The order matters: the journal first, then quota, memory and the feed, and then
// watchers. If the disk is full, it retries for commitLimit; any other error is final, and the caller drops
// the writer.
func (w *writer) commit(t *tx) error {
	if len(t.events) == 0 && len(t.keys) == 0 && t.summary == nil {
		return nil
	}
	b := journal.Batch{Conversation: w.id, Expected: w.head, Events: t.events, Keys: t.keys, Summary: t.summary, Terminal: t.terminal}
	// Costs and outbox entries are computed from the final events, and become durable with them.
	billing{w}.bill(t, &b)
	outboxed := w.addOutboxes(t, &b)
	metrics := w.core.metrics
	begin := time.Now()
	wait := 50 * time.Millisecond
	var submittedAt, durable time.Time
	// Only a full disk is retried: the journal then has stored nothing. After any other error it is unknown what was stored, so the
	// writer is dropped and the next one reads the log again.
	for {
		submittedAt = time.Now()
		err := w.core.journal.Append(w.core.life, b)
		if err == nil {
			durable = time.Now()
			metrics.CommitSeconds.Observe(durable.Sub(submittedAt).Seconds())
			break
		}
		metrics.CommitFailed.Inc()
		if !errors.Is(err, journal.ErrFull) || time.Since(begin) > commitLimit || w.core.life.Err() != nil {
			finishOutboxes(outboxed, err)
			t.finishReservations(err)
			return fmt.Errorf("commit: %w", err)
		}
		w.setCommitErr(err)
		w.log.Warn("commit failed; trying again", "error", err)
		select {
		case <-time.After(wait):
		case <-w.core.life.Done():
		}
		wait = min(2*wait, 2*time.Second)
	}
	defer finishOutboxes(outboxed, nil) // after readers can see the events, because an outbox may read the conversation
	t.finishReservations(nil)
	w.setCommitErr(nil)
	// From here on the commit is durable, and memory follows it. If publishing fails, the feed no longer matches the log, and the
	// writer is dropped as well.
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
		w.observer.committed(t.events, submittedAt, durable)
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
