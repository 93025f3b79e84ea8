package gateway

import (
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// tx collects what the jobs of one commit add.
type tx struct {
	writer       *writer
	events       []event.Event
	put          []journal.KeyValue
	summary      *journal.Summary
	terminal     bool
	isBackfill   bool     // its events are older messages from elsewhere, about which watchers are not notified
	trace        string   // traceparent of the job that runs
	after        []func() // run once the commit is shown
	reservations []*quota.Reservation
	// unshared says that a subject loses access. Its readers are disconnected before the command returns, so that the caller can rely on it.
	unshared bool
	ended    []string // turns
	// outside are the turns of runs that it adds whole: their upstream began them and they are over.
	outside map[string]bool
}

// add appends an event with the next seq of the log, and returns the seq.
func (t *tx) add(e event.Event) int64 {
	e.Seq = t.writer.head + int64(len(t.events)) + 1
	if e.At == 0 {
		e.At = now()
	}
	t.events = append(t.events, e)
	if !t.isBackfill && speaks(&e) {
		t.edit().SpokenSeq = e.Seq
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
		s := t.writer.summary
		s.Open = append([]string(nil), s.Open...)
		t.summary = &s
	}
	return t.summary
}

// current is the summary as this tx will leave it.
func (t *tx) current() *journal.Summary {
	if t.summary != nil {
		return t.summary
	}
	return &t.writer.summary
}

func (t *tx) then(fn func()) { t.after = append(t.after, fn) }

// commit makes a tx durable and shows it. A full disk is tried again for a while; what else fails is final.
func (w *writer) commit(t *tx) error {
	if len(t.events) == 0 && len(t.put) == 0 && t.summary == nil {
		return nil
	}
	b := journal.Batch{Conversation: w.id, Expected: w.head, Events: t.events, Keys: t.put, Summary: t.summary, Terminal: t.terminal}
	billing{w}.bill(t, &b)
	outboxed := w.addOutboxes(t, &b)
	begin := time.Now()
	wait := 50 * time.Millisecond
	var asked, durable time.Time
	for {
		asked = time.Now()
		err := w.g.journal.Append(w.g.life, b)
		if err == nil {
			durable = time.Now()
			w.metrics.CommitSeconds.Observe(durable.Sub(asked).Seconds())
			break
		}
		w.metrics.CommitFailed.Inc()
		if !errors.Is(err, journal.ErrFull) || time.Since(begin) > commitLimit || w.g.life.Err() != nil {
			finishOutboxes(outboxed, err)
			t.finishReservations(err)
			return fmt.Errorf("commit: %w", err)
		}
		w.setFailing(err)
		w.log.Warn("commit failed; trying again", "error", err)
		select {
		case <-time.After(wait):
		case <-w.g.life.Done():
		}
		wait = min(2*wait, 2*time.Second)
	}
	defer finishOutboxes(outboxed, nil) // after readers can see the events, because an outbox may read the conversation
	t.finishReservations(nil)
	w.setFailing(nil)
	w.head += int64(len(t.events))
	spoken := t.summary != nil && t.summary.SpokenSeq > w.summary.SpokenSeq
	if t.summary != nil {
		w.mu.Lock()
		w.summary = *t.summary
		w.mu.Unlock()
	}
	if len(t.events) > 0 {
		if err := w.feed.Publish(t.events); err != nil {
			return fmt.Errorf("show: %w", err)
		}
		w.observer.committed(t.events, asked, durable)
		w.messageIDs.committed(t.events)
		if t.isBackfill {
			notifyCreated(w.g.cfg.Watchers, &w.summary)
		} else {
			w.notifyWatchers(&w.summary, t.events)
		}
	}
	if spoken {
		w.g.positions.spoken(&w.summary)
	}
	if t.unshared {
		w.feed.AccessChanged()
	}
	return nil
}

func (w *writer) setFailing(err error) {
	w.mu.Lock()
	w.failing = err
	w.mu.Unlock()
}
