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

// sink stores an event of a stream whose last seq is head. It returns after the event is durable.
type sink func(ctx context.Context, stream int, head int64, e *event.Event) error

// appendLoad lets every stream append one event after another until appendTime has passed: the next one as soon as the last one is
// durable. onTurnEnd, if set, is called after each turn with the seq of its last event.
func appendLoad(ctx context.Context, z size, store sink, onTurnEnd func(stream int, head int64)) (l load, err error) {
	stop, cancel := context.WithTimeout(ctx, z.appendTime)
	defer cancel()
	// Each stream has its own slices, so that the goroutines share only a counter and the sink.
	var total atomic.Int64
	latencies := make([][]int64, z.appendStreams) // nanoseconds, by stream
	errs := make([]error, z.appendStreams)
	l.streams = make([]turns, z.appendStreams)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range z.appendStreams {
		t := &l.streams[i]
		// The first turns have different lengths, so that turns end at different times, as in a gateway.
		t.later, t.length = z.appendTurn, around+1+i*z.appendTurn/z.appendStreams
		wg.Go(func() {
			for stop.Err() == nil {
				e, hasEnded := t.next()
				start := time.Now()
				// The end of the load must not cancel an append in progress, so it gets ctx instead of stop.
				if err := store(ctx, i, t.head, &e); err != nil {
					errs[i] = err
					cancel()
					return
				}
				latencies[i] = append(latencies[i], int64(time.Since(start)))
				total.Add(1)
				t.head++
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
	later  int // events in each turn after the first
	head   int64
	at     int   // events of the current turn so far
	turn   int   // turns that have ended
	offset int64 // bytes of text in the current part
	text   int   // bytes of text in all turns
}

// pieceText makes an event's JSON about 200 bytes long.
const pieceText = "the stream of a mill is led aside "

// next returns the next event. The caller advances head after it has stored it. hasEnded reports whether the event ends a turn.
func (t *turns) next() (e event.Event, hasEnded bool) {
	e = event.Event{
		Seq: t.head + 1, At: 1_795_194_262_752,
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
	if t.at++; t.at == t.length {
		t.at, hasEnded = 0, true
		t.turn++
		t.length = t.later
	}
	return e, hasEnded
}
