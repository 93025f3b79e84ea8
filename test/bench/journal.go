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

const journalTarget = 400_000 // events a second

// benchJournal appends from many streams at once, each with one append of several events under way, as a conversation's
// owner does that hands on what came in during the last commit. A turn that has ended is settled, one after another, as
// the gateway's settler does.
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
		{name: "bare file, group commit: durable events a second", value: file.rate()},
		{name: "bare file: an append p50", unit: "ms", value: millis(file.p50)},
		{name: "bare file: an append p99", unit: "ms", value: millis(file.p99)},
		{name: "leat: durable events a second, settling on", value: own.rate(), least: journalTarget},
		{name: "leat: an append p50", unit: "ms", value: millis(own.p50)},
		{name: "leat: an append p99", unit: "ms", value: millis(own.p99)},
		{name: "leat: settled meanwhile, share of what ended", value: own.settled},
		{name: "leat: events a second until all is settled", value: own.sustained},
		{name: "leat: CPU an event, encoding and settling included", unit: "µs", value: own.cpu},
		{name: "one event an append, events a second in all", value: one.rate()},
		{name: "leat: such an append p50", unit: "ms", value: millis(one.p50)},
		{name: "leat: such an append p99", unit: "ms", value: millis(one.p99)},
		{name: "leat: settled meanwhile then, share of what ended", value: one.settled},
	}, nil
}

// journalPace is how many events a stream appends in a second where it waits between them: those of a fast model.
const journalPace = 50

type appended struct {
	load
	sustained float64 // events a second until all was settled
	settled   float64 // share of what had ended, at the end of the load
	cpu       float64 // µs an event
}

// journalAppends measures the journal under a load: n events an append, as appendLoad makes them.
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
	err = each(e.size.journalStreams, func(i int) error {
		return j.Append(ctx, journal.Batch{Conversation: id(i), Create: true, Summary: &journal.Summary{ID: id(i), Created: 1, Updated: 1}})
	})
	if err != nil {
		return a, err
	}
	s := newSettler(ctx, func(stream int, upto int64) error { return j.Compact(ctx, id(stream), upto) })
	before, err := usageOf(os.Getpid())
	if err != nil {
		return a, err
	}
	begin := time.Now()
	a.load, err = appendLoad(ctx, e.size, n, pause, func(ctx context.Context, i int, head int64, events []event.Event) error {
		return j.Append(ctx, journal.Batch{Conversation: id(i), Expected: head, Events: events})
	}, s.add)
	ended, settled := s.progress()
	err = errors.Join(err, s.finish())
	all := time.Since(begin)
	after, uerr := usageOf(os.Getpid())
	if err = errors.Join(err, uerr); err != nil {
		return a, err
	}
	e.logf("%d events in %.1f s, all settled %.1f s later", a.events, a.took.Seconds(), (all - a.took).Seconds())
	a.sustained = float64(a.events) / all.Seconds()
	a.settled = float64(settled) / float64(max(1, ended))
	a.cpu = micros(after.since(before).cpu()) / float64(a.events)
	return a, verify(ctx, j, id(0), &a.streams[0])
}

func eventSize() (float64, error) {
	t := turns{length: 512, at: 100}
	events, _ := t.next(1)
	b, err := events[0].AppendJSON(nil)
	return float64(len(b)), err
}

// verify reads one stream back: all that was appended has to be there.
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
		return fmt.Errorf("stream %s holds %d bytes and %d ends in %d events; want %d, %d and %d", id, text, ends, r.Head, t.text, t.turn, t.head)
	}
	return nil
}

// fileAppends is the baseline: the same JSON appended to a bare file, all that waits in one write and one sync.
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
	requests := make(chan request, e.size.journalStreams)
	written := make(chan struct{})
	go func() {
		defer close(written)
		var buf []byte
		var waiting []chan error
		for r := range requests {
			buf, waiting = append(buf[:0], r.b...), append(waiting[:0], r.done)
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
