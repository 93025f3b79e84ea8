package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

var errNotFound = errors.New("fake log: not found")

// fakeLog is the log of one conversation as a journal stores it: compacted rows, and live rows as written.
type fakeLog struct {
	mu        sync.Mutex
	epoch     string
	terms     []Term
	rows      []event.Event // up to compacted
	live      []event.Event // all above, and some below that no read returns
	head      int64
	compacted int64
	trimmed   int64
	truncated int64
	reads     int
	onRead    func() // called before each read, without the lock
	afterRead func() // called after it, before the reader has the stretch in hand
}

func (l *fakeLog) Read(ctx context.Context, conversation string, after int64, limit int) (Stretch, error) {
	if l.onRead != nil {
		l.onRead()
	}
	if err := ctx.Err(); err != nil {
		return Stretch{}, err
	}
	s, err := l.read(conversation, after, limit)
	if l.afterRead != nil {
		l.afterRead()
	}
	return s, err
}

func (l *fakeLog) read(conversation string, after int64, limit int) (Stretch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if l.epoch == "" {
		return Stretch{}, fmt.Errorf("%w: %s", errNotFound, conversation)
	}
	s := Stretch{Epoch: l.epoch, Head: l.head, Compacted: l.compacted, Trimmed: l.trimmed, Truncated: l.truncated, Terms: slices.Clone(l.terms)}
	size := 0
	add := func(events []event.Event, from int64) {
		for _, e := range events {
			if e.Seq <= max(after, from, l.trimmed) {
				continue
			}
			if limit > 0 && size >= limit {
				s.HasMore = true
				return
			}
			size += 40 + len(e.Text)
			s.Events = append(s.Events, e)
		}
	}
	add(l.rows, 0)
	if !s.HasMore {
		add(l.live, l.compacted)
	}
	return s, nil
}

// append writes events and assigns their seqs.
func (l *fakeLog) append(events ...event.Event) []event.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range events {
		l.head++
		events[i].Seq = l.head
		if events[i].Type == event.ConversationTruncate {
			l.truncated = l.head
		}
	}
	l.live = append(l.live, events...)
	return events
}

// compact compacts everything up to the head.
func (l *fakeLog) compact() {
	l.mu.Lock()
	defer l.mu.Unlock()
	live := slices.DeleteFunc(slices.Clone(l.live), func(e event.Event) bool { return e.Seq <= l.compacted })
	l.rows = transcript.Compact(append(slices.Clone(l.rows), live...))
	l.compacted, l.live = l.head, nil
}

func (l *fakeLog) trim(upto int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trimmed = max(l.trimmed, upto)
	l.rows = slices.DeleteFunc(slices.Clone(l.rows), func(e event.Event) bool { return e.Seq <= l.trimmed })
	l.live = slices.DeleteFunc(slices.Clone(l.live), func(e event.Event) bool { return e.Seq <= l.trimmed })
}

// copyOf returns a backup of the log.
func (l *fakeLog) copyOf() *fakeLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &fakeLog{
		epoch: l.epoch, terms: slices.Clone(l.terms), rows: slices.Clone(l.rows), live: slices.Clone(l.live),
		head: l.head, compacted: l.compacted, trimmed: l.trimmed, truncated: l.truncated,
	}
}
