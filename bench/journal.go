package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/journal"
	"github.com/leat-dev/leat/journal/sqlite"
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
	own, err := journalAppends(ctx, e)
	if err != nil {
		return nil, err
	}
	return []measure{
		{name: "streams", value: float64(e.size.journalStreams)},
		{name: "events an append", value: float64(e.size.journalEvents)},
		{name: "JSON of an event", unit: "B", value: own.eventBytes},
		{name: "bare file, group commit: durable events a second", value: file.rate},
		{name: "bare file: an append p50", unit: "ms", value: millis(file.p50)},
		{name: "bare file: an append p99", unit: "ms", value: millis(file.p99)},
		{name: "leat: durable events a second, settling on", value: own.rate, least: journalTarget},
		{name: "leat: an append p50", unit: "ms", value: millis(own.p50)},
		{name: "leat: an append p99", unit: "ms", value: millis(own.p99)},
		{name: "leat: settled meanwhile, share of what ended", value: own.settled},
		{name: "leat: events a second until all is settled", value: own.sustained},
		{name: "CPU an event, encoding and settling included", unit: "µs", value: own.cpu},
	}, nil
}

type appended struct {
	rate, sustained float64 // events a second
	p50, p99        time.Duration
	settled         float64
	eventBytes      float64
	cpu             float64 // µs an event
}

// sink takes the appends of one stream.
type sink func(ctx context.Context, stream int, head int64, events []event.Event) error

// load lets every stream append until the time is over and returns how many events were taken.
func appendLoad(ctx context.Context, z size, to sink, turnOver func(stream int, head int64)) (n int64, samples []int64, err error) {
	stop, cancel := context.WithTimeout(ctx, z.journalTime)
	defer cancel()
	var total atomic.Int64
	all := make([][]int64, z.journalStreams)
	errs := make([]error, z.journalStreams)
	var wg sync.WaitGroup
	for i := range z.journalStreams {
		wg.Go(func() {
			t := turns{length: z.journalTurn}
			for stop.Err() == nil {
				events, over := t.next(z.journalEvents)
				begin := time.Now()
				// What was begun is waited for: the context ends the load, not an append.
				if err := to(ctx, i, t.head, events); err != nil {
					errs[i] = err
					cancel()
					return
				}
				all[i] = append(all[i], int64(time.Since(begin)))
				total.Add(int64(len(events)))
				t.head += int64(len(events))
				if over && turnOver != nil {
					turnOver(i, t.head)
				}
			}
		})
	}
	wg.Wait()
	return total.Load(), flatten(all), errors.Join(errors.Join(errs...), ctx.Err())
}

// turns makes the events of turn after turn of one stream.
type turns struct {
	length int // events in a turn
	head   int64
	at     int // events of the turn so far
	turn   int
	offset int64
}

// pieceText makes an event's JSON about 200 bytes long.
const pieceText = "the stream of a mill is led aside "

const around = 6 // events that are no text: three before it and three after

func (t *turns) next(n int) (events []event.Event, over bool) {
	events = make([]event.Event, 0, n)
	for range n {
		e := event.Event{
			Seq: t.head + int64(len(events)) + 1, At: 1_795_194_262_752,
			Turn: fmt.Sprintf("019a7c3e-0000-7000-8000-%012d", t.turn), Message: fmt.Sprintf("019a7c3e-0001-7000-8000-%012d", t.turn), Part: "p1",
		}
		switch t.at {
		case 0:
			e.Type, e.Message, e.Part, e.Body = event.TurnStart, "", "", &event.Body{Agent: "bench"}
		case 1:
			e.Type, e.Part, e.Body = event.MessageStart, "", &event.Body{Role: event.Assistant}
		case 2:
			e.Type, e.Body = event.PartStart, &event.Body{Kind: event.KindText}
			t.offset = 0
		default:
			e.Type, e.Offset, e.Text = event.PartAppend, t.offset, pieceText
			t.offset += int64(len(pieceText))
		case t.length - 3:
			e.Type, e.Body = event.PartEnd, &event.Body{}
		case t.length - 2:
			e.Type, e.Part, e.Body = event.MessageEnd, "", &event.Body{}
		case t.length - 1:
			e.Type, e.Message, e.Part, e.Body = event.TurnEnd, "", "", &event.Body{Outcome: event.Completed}
		}
		events = append(events, e)
		if t.at++; t.at == t.length {
			t.at, over = 0, true
			t.turn++
		}
	}
	return events, over
}

func journalAppends(ctx context.Context, e *env) (a appended, err error) {
	dir, err := os.MkdirTemp(e.dir, "journal")
	if err != nil {
		return a, err
	}
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
	n, samples, err := appendLoad(ctx, e.size, func(ctx context.Context, i int, head int64, events []event.Event) error {
		return j.Append(ctx, journal.Batch{Conversation: id(i), Expected: head, Events: events})
	}, s.add)
	took := time.Since(begin)
	ended, settled := s.progress()
	err = errors.Join(err, s.finish())
	all := time.Since(begin)
	after, uerr := usageOf(os.Getpid())
	if err = errors.Join(err, uerr); err != nil {
		return a, err
	}
	e.logf("%d events in %.1f s, all settled %.1f s later", n, took.Seconds(), (all - took).Seconds())
	if err := verify(ctx, j, id(0), e.size); err != nil {
		return a, err
	}
	q := quantiles(samples, 0.5, 0.99)
	sample, err := eventSize()
	return appended{
		rate: float64(n) / took.Seconds(), sustained: float64(n) / all.Seconds(), p50: q[0], p99: q[1],
		settled: float64(settled) / float64(max(1, ended)), eventBytes: sample,
		cpu: micros(after.since(before).cpu()) / float64(n),
	}, err
}

func eventSize() (float64, error) {
	t := turns{length: 512, at: 100}
	events, _ := t.next(1)
	b, err := events[0].AppendJSON(nil)
	return float64(len(b)), err
}

// verify reads one stream back: all texts of its turns have to be whole.
func verify(ctx context.Context, j journal.Journal, id string, z size) error {
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
	turns, rest := int(r.Head)/z.journalTurn, int(r.Head)%z.journalTurn
	want := (turns*(z.journalTurn-around) + max(0, min(rest-3, z.journalTurn-around))) * len(pieceText)
	if text != want || ends != turns {
		return fmt.Errorf("stream %s holds %d bytes and %d ends of %d events; want %d and %d", id, text, ends, r.Head, want, turns)
	}
	return nil
}

// settler settles streams one after another; a stream that waits already is settled up to its latest turn.
type settler struct {
	mu      sync.Mutex
	order   []int
	upto    map[int]int64
	last    map[int]int64 // what was asked for, by stream
	have    map[int]int64 // what is settled
	wake    chan struct{}
	closed  bool
	done    chan struct{}
	settle  func(int, int64) error
	ctx     context.Context
	failure error
}

func newSettler(ctx context.Context, settle func(int, int64) error) *settler {
	s := &settler{
		upto: map[int]int64{}, last: map[int]int64{}, have: map[int]int64{},
		wake: make(chan struct{}, 1), done: make(chan struct{}), settle: settle, ctx: ctx,
	}
	go s.run()
	return s
}

func (s *settler) add(stream int, head int64) {
	s.mu.Lock()
	if _, ok := s.upto[stream]; !ok {
		s.order = append(s.order, stream)
	}
	s.upto[stream], s.last[stream] = head, head
	s.mu.Unlock()
	s.signal()
}

func (s *settler) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *settler) run() {
	defer close(s.done)
	for {
		s.mu.Lock()
		if len(s.order) == 0 {
			closed := s.closed
			s.mu.Unlock()
			if closed {
				return
			}
			select {
			case <-s.wake:
			case <-s.ctx.Done():
				return
			}
			continue
		}
		stream := s.order[0]
		upto := s.upto[stream]
		s.order = s.order[1:]
		delete(s.upto, stream)
		s.mu.Unlock()
		err := s.settle(stream, upto)
		s.mu.Lock()
		s.have[stream] = upto
		s.failure = errors.Join(s.failure, err)
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// progress returns how many events were to be settled and how many are.
func (s *settler) progress() (asked, settled int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream, upto := range s.last {
		asked += upto
		settled += s.have[stream]
	}
	return asked, settled
}

// finish settles what waits.
func (s *settler) finish() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.signal()
	<-s.done
	return s.failure
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
	begin := time.Now()
	n, samples, err := appendLoad(ctx, e.size, func(_ context.Context, _ int, _ int64, events []event.Event) error {
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
	took := time.Since(begin)
	close(requests)
	<-written
	q := quantiles(samples, 0.5, 0.99)
	return appended{rate: float64(n) / took.Seconds(), p50: q[0], p99: q[1]}, err
}
