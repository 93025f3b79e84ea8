package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

// benchAppends measures row P5. The journal and the baseline run in this process, so the load is part of both.
func benchAppends(ctx context.Context, e *env, t *table) error {
	size, err := rowSize(ctx, e)
	if err != nil {
		return fmt.Errorf("size of a stored event: %w", err)
	}
	file, err := fileAppends(ctx, e, size)
	if err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	t.add("P5", "raw, file", file.rate())
	t.add("P5 p50", "raw, file", millis(file.p50))
	t.add("P5 p99", "raw, file", millis(file.p99))
	t.add("P5 compacted", "raw, file", file.rate())
	own, sustained, err := journalAppends(ctx, e)
	if err != nil {
		return err
	}
	t.add("P5", "Leat", own.rate())
	t.add("P5 p50", "Leat", millis(own.p50))
	t.add("P5 p99", "Leat", millis(own.p99))
	t.add("P5 compacted", "Leat", sustained)
	e.logf("appends of %d bytes: file %.0f a second, journal %.0f, and %.0f until all is compacted", size, file.rate(), own.rate(), sustained)
	return nil
}

// open opens a new journal in a new folder. Each commit is synced.
func (e *env) open() (j *sqlite.Journal, dir string, err error) {
	if dir, err = os.MkdirTemp(e.dir, "journal"); err != nil {
		return nil, "", err
	}
	j, err = sqlite.Open(sqlite.Options{Dir: dir, Sync: sqlite.Full})
	if err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	return j, dir, nil
}

func streamID(i int) string { return fmt.Sprintf("stream-%04d", i) }

func createStream(ctx context.Context, j *sqlite.Journal, i int) error {
	id := streamID(i)
	return j.Append(ctx, journal.Batch{Conversation: id, Create: true, Summary: &journal.Summary{ID: id, Created: 1, Updated: 1}})
}

// rowSize returns the bytes that the journal stores for an event of the load, before compaction. The baseline writes as many.
func rowSize(ctx context.Context, e *env) (n int, err error) {
	j, dir, err := e.open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, j.Close(), os.RemoveAll(dir)) }()
	if err := createStream(ctx, j, 0); err != nil {
		return 0, err
	}
	before, _ := j.StoredBytes("", "")
	const events = 100
	t := turns{length: 2 * events, later: 2 * events}
	for range events {
		next, _ := t.next()
		if err := j.Append(ctx, journal.Batch{Conversation: streamID(0), Expected: t.head, Events: []event.Event{next}}); err != nil {
			return 0, err
		}
		t.head++
	}
	after, _ := j.StoredBytes("", "")
	return int(after-before) / events, nil
}

// journalAppends measures a new journal under the load of [appendLoad], and verifies one stream at the end. Logs are compacted one after
// another when a turn has ended, as in the gateway. sustained is the rate with the time until the last compaction: a journal could reach a
// high rate by putting off its compactions.
func journalAppends(ctx context.Context, e *env) (l load, sustained float64, err error) {
	j, dir, err := e.open()
	if err != nil {
		return l, 0, err
	}
	defer func() { err = errors.Join(err, j.Close(), os.RemoveAll(dir)) }()
	// Creating the streams is not part of the load.
	err = each(e.size.appendStreams, func(i int) error { return createStream(ctx, j, i) })
	if err != nil {
		return l, 0, err
	}
	c := newCompactor(ctx, func(stream int, upto int64) error { return j.Compact(ctx, streamID(stream), upto) })
	begin := time.Now()
	l, err = appendLoad(ctx, e.size, func(ctx context.Context, i int, head int64, e *event.Event) error {
		return j.Append(ctx, journal.Batch{Conversation: streamID(i), Expected: head, Events: []event.Event{*e}})
	}, c.add)
	err = errors.Join(err, c.finish())
	sustained = float64(l.events) / time.Since(begin).Seconds()
	if err != nil {
		return l, 0, err
	}
	return l, sustained, verify(ctx, j, streamID(0), &l.streams[0])
}

// verify reads a stream back and compares its number of events, bytes of text and turns with those appended. Compaction merges events, so
// they can't be compared one by one.
func verify(ctx context.Context, j journal.Journal, id string, t *turns) error {
	r, err := j.Read(ctx, id, 0, 0)
	if err != nil {
		return err
	}
	text, ends := 0, 0
	for i := range r.Events {
		switch r.Events[i].Type {
		case event.PartAppend, event.PartReplace:
			text += len(r.Events[i].Text)
		case event.TurnEnd:
			ends++
		}
	}
	if r.Head != t.head || text != t.text || ends != t.turn {
		return fmt.Errorf("stream %s has %d bytes of text and %d ended turns in %d events; want %d, %d and %d", id, text, ends, r.Head, t.text, t.turn, t.head)
	}
	return nil
}
