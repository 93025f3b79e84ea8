package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

const journalTarget = 400_000 // target: at least this many events a second

// benchJournal appends from many streams concurrently. Each stream has one append of several events in progress, like a
// conversation's writer, which collects events during a commit. Logs are compacted one after another when a turn has ended, as in
// the gateway.
func benchJournal(ctx context.Context, e *env) ([]measure, error) {
	file, err := fileAppends(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	own, err := journalAppends(ctx, e, e.size.journalEvents, 0)
	if err != nil {
		return nil, err
	}
	one, err := journalAppends(ctx, e, 1, time.Second/journalPace)
	if err != nil {
		return nil, err
	}
	size, err := eventSize()
	if err != nil {
		return nil, err
	}
	return []measure{
		{name: "streams", value: float64(e.size.journalStreams)},
		{name: "JSON of an event", unit: "B", value: size},
		{name: "events an append, pipelined", value: float64(e.size.journalEvents)},
		{name: "plain file, group commit: durable events a second", value: file.rate()},
		{name: "plain file: an append p50", unit: "ms", value: millis(file.p50)},
		{name: "plain file: an append p99", unit: "ms", value: millis(file.p99)},
		{name: "leat: durable events a second, with compaction", value: own.rate(), least: journalTarget},
		{name: "leat: an append p50", unit: "ms", value: millis(own.p50)},
		{name: "leat: an append p99", unit: "ms", value: millis(own.p99)},
		{name: "leat: compacted at the end of the load, share", value: own.compacted},
		{name: "leat: events a second until all is compacted", value: own.sustained},
		{name: "leat: CPU an event, with encoding and compaction", unit: "µs", value: own.cpu},
		{name: "one event an append: events a second in total", value: one.rate()},
		{name: "leat: such an append p50", unit: "ms", value: millis(one.p50)},
		{name: "leat: such an append p99", unit: "ms", value: millis(one.p99)},
		{name: "leat: then compacted at the end of the load, share", value: one.compacted},
	}, nil
}

// journalPace is the number of events a second of a stream that appends single events. It is about the token rate of a fast model.
const journalPace = 50

// appended is the result of one load on the journal.
type appended struct {
	load
	sustained float64 // events a second, including the time until everything was compacted
	compacted float64 // at the end of the load: compacted events relative to events of ended turns
	cpu       float64 // µs an event
}

// journalAppends measures a new journal under the load of [appendLoad], and verifies one stream at the end. The CPU time includes the load
// generator, which runs in the same process.
func journalAppends(ctx context.Context, e *env, n int, pause time.Duration) (a appended, err error) {
	dir, err := os.MkdirTemp(e.dir, "journal")
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	j, err := sqlite.Open(sqlite.Options{Dir: dir, Sync: sqlite.Full})
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	id := func(i int) string { return fmt.Sprintf("stream-%04d", i) }
	// Creating the streams is not part of the load.
	err = each(e.size.journalStreams, func(i int) error {
		return j.Append(ctx, journal.Batch{Conversation: id(i), Create: true, Summary: &journal.Summary{ID: id(i), Created: 1, Updated: 1}})
	})
	if err != nil {
		return a, err
	}
	c := newCompactor(ctx, func(stream int, upto int64) error { return j.Compact(ctx, id(stream), upto) })
	// The journal runs in this process, so its CPU time can't be separated from the load's. The generator's part is the same for
	// every version of the journal.
	before, err := usageOf(os.Getpid())
	if err != nil {
		return a, err
	}
	begin := time.Now()
	a.load, err = appendLoad(ctx, e.size, n, pause, func(ctx context.Context, i int, head int64, events []event.Event) error {
		return j.Append(ctx, journal.Batch{Conversation: id(i), Expected: head, Events: events})
	}, c.add)
	requested, compacted := c.progress()
	err = errors.Join(err, c.finish())
	total := time.Since(begin)
	after, uerr := usageOf(os.Getpid())
	if err = errors.Join(err, uerr); err != nil {
		return a, err
	}
	e.logf("%d events in %.1f s, compaction finished %.1f s later", a.events, a.took.Seconds(), (total - a.took).Seconds())
	// A journal could reach a high rate of appends by putting off its compactions. This figure counts the time until they are done.
	a.sustained = float64(a.events) / total.Seconds()
	a.compacted = float64(compacted) / float64(max(1, requested))
	a.cpu = micros(after.since(before).cpu()) / float64(a.events)
	return a, verify(ctx, j, id(0), &a.streams[0])
}

// eventSize returns the bytes of a text event's JSON.
func eventSize() (float64, error) {
	t := turns{length: 512, at: 100}
	events, _ := t.next(1)
	b, err := events[0].AppendJSON(nil)
	return float64(len(b)), err
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

// fileAppends is the baseline: the same JSON appended to a plain file. All waiting appends share one write and one fdatasync, the
// group commit that a database can't be faster than on the same disk.
func fileAppends(ctx context.Context, e *env) (a appended, err error) {
	f, err := os.Create(filepath.Join(e.dir, "bare"))
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	type request struct {
		b    []byte
		done chan error
	}
	// The channel has space for one append of each stream, so no stream waits for a place in it.
	requests := make(chan request, e.size.journalStreams)
	written := make(chan struct{})
	go func() {
		defer close(written)
		var buf []byte
		var waiting []chan error
		for r := range requests {
			buf, waiting = append(buf[:0], r.b...), append(waiting[:0], r.done)
			// Everything that arrived during the last write and sync is written together. No append waits for another one to
			// arrive.
			for n := len(requests); n > 0; n-- {
				r := <-requests
				buf, waiting = append(buf, r.b...), append(waiting, r.done)
			}
			_, err := f.Write(buf)
			if err == nil {
				err = syscall.Fdatasync(int(f.Fd()))
			}
			for _, w := range waiting {
				w <- err
			}
		}
	}()
	a.load, err = appendLoad(ctx, e.size, e.size.journalEvents, 0, func(_ context.Context, _ int, _ int64, events []event.Event) error {
		var b []byte
		for i := range events {
			var err error
			if b, err = events[i].AppendJSON(b); err != nil {
				return err
			}
			b = append(b, '\n')
		}
		done := make(chan error, 1)
		requests <- request{b, done}
		return <-done
	}, nil)
	close(requests)
	<-written
	return a, err
}
