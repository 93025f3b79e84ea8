package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/event"
)

// sink stores events of a stream whose last seq is head. It returns after they are durable.
type sink func(ctx context.Context, stream int, head int64, events []event.Event) error

// appendLoad makes every stream append n events at a time until journalTime has passed. Each stream has at most one append in progress.
//
// If pause is 0, a stream continues as soon as an append returns. Otherwise pause is the interval between the starts of its appends; the
// streams start at evenly distributed times, and their first turns have different lengths, so that turns end at different times as they do
// in a gateway. onTurnEnd, if set, is called after each turn with the seq of its last event.
func appendLoad(ctx context.Context, z size, n int, pause time.Duration, store sink, onTurnEnd func(stream int, head int64)) (l load, err error) {
	stop, cancel := context.WithTimeout(ctx, z.journalTime)
	defer cancel()
	// Each stream has its own slices, so that the goroutines share only a counter and the sink.
	var total atomic.Int64
	latencies := make([][]int64, z.journalStreams) // nanoseconds, by stream
	errs := make([]error, z.journalStreams)
	l.streams = make([]turns, z.journalStreams)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range z.journalStreams {
		t := &l.streams[i]
		t.length = z.journalTurn
		if pause > 0 {
			// The first turn has at least the events around a text and one of text.
			t.later, t.length = t.length, around+1+i*t.length/z.journalStreams
		}
		wg.Go(func() {
			// An append that took longer than the pause is followed by the next one at once, until the schedule is reached again.
			// So a slow journal is not given fewer events than a fast one.
			due := begin.Add(pause * time.Duration(i) / time.Duration(z.journalStreams))
			for stop.Err() == nil {
				if pause > 0 {
					wait(stop, time.Until(due))
					due = due.Add(pause)
				}
				events, hasEnded := t.next(n)
				start := time.Now()
				// The end of the load must not cancel an append in progress, so it gets ctx instead of stop.
				if err := store(ctx, i, t.head, events); err != nil {
					errs[i] = err
					cancel()
					return
				}
				latencies[i] = append(latencies[i], int64(time.Since(start)))
				total.Add(int64(len(events)))
				t.head += int64(len(events))
				if hasEnded && onTurnEnd != nil {
					onTurnEnd(i, t.head)
				}
			}
		})
	}
	wg.Wait()
	l.took = time.Since(begin)
	l.events = total.Load()
	// The latencies of all streams are one sample: a quantile of every stream would hide that a few streams wait for the others.
	q := quantiles(slices.Concat(latencies...), 0.5, 0.99)
	l.p50, l.p99 = q[0], q[1]
	return l, errors.Join(errors.Join(errs...), ctx.Err())
}

// load is the result of appendLoad.
type load struct {
	streams  []turns
	events   int64
	took     time.Duration
	p50, p99 time.Duration
}

func (l *load) rate() float64 { return float64(l.events) / l.took.Seconds() }

// around is the number of events of a turn that aren't text: three before the text and three after it.
const around = 6

// turns generates the events of one stream: a sequence of turns with one text part each.
type turns struct {
	length int // events in a turn
	later  int // events in each turn after the first, or 0 for the same length
	head   int64
	at     int   // events of the current turn so far
	turn   int   // turns that have ended
	offset int64 // bytes of text in the current part
	text   int   // bytes of text in all turns
}

// pieceText makes an event's JSON about 200 bytes long.
const pieceText = "the stream of a mill is led aside "

// next returns the next n events. The caller advances head after it has stored them. hasEnded reports whether a turn ended with or before the
// last of them.
func (t *turns) next(n int) (events []event.Event, hasEnded bool) {
	events = make([]event.Event, 0, n)
	for range n {
		e := event.Event{
			Seq: t.head + int64(len(events)) + 1, At: 1_795_194_262_752,
			Turn: fmt.Sprintf("019a7c3e-0000-7000-8000-%012d", t.turn), Message: fmt.Sprintf("019a7c3e-0001-7000-8000-%012d", t.turn), Part: "p1",
		}
		// Go tries default last, wherever it is written. A turn has at least seven events, so no two cases are equal.
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
			t.text += len(pieceText)
		case t.length - 3:
			e.Type, e.Body = event.PartEnd, &event.Body{}
		case t.length - 2:
			e.Type, e.Part, e.Body = event.MessageEnd, "", &event.Body{}
		case t.length - 1:
			e.Type, e.Message, e.Part, e.Body = event.TurnEnd, "", "", &event.Body{Outcome: event.Completed}
		}
		events = append(events, e)
		// A batch may contain the end of one turn and the beginning of the next, as in a gateway whose commits are slow.
		if t.at++; t.at == t.length {
			t.at, hasEnded = 0, true
			t.turn++
			if t.later > 0 {
				t.length = t.later
			}
		}
	}
	return events, hasEnded
}
