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
	// outside are the turns of runs that it adds whole: their upstream began them and they are over.
	outside map[string]bool
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

// current is the summary as this tx will leave it.
func (t *tx) current() *journal.Summary {
	if t.summary != nil {
		return t.summary
	}
	return &t.o.summary
}

func (t *tx) then(fn func()) { t.after = append(t.after, fn) }

// commit makes a tx durable and shows it. A full disk is tried again for a while; what else fails is final.
func (o *owner) commit(t *tx) error {
	if len(t.events) == 0 && len(t.put) == 0 && t.summary == nil {
		return nil
	}
	b := journal.Batch{Conversation: o.id, Expected: o.head, Events: t.events, Put: t.put, Summary: t.summary, Terminal: t.terminal}
	o.bill(t, &b)
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
		o.log.Warn("commit failed; trying again", "error", err)
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
		o.older.committed(t.events)
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
