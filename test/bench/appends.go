package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/event"
)

// sink takes the appends of one stream.
type sink func(ctx context.Context, stream int, head int64, events []event.Event) error

// appendLoad lets every stream append until the time is over. Where pause is not 0 each one waits as long between the
// begins of two appends, and their turns end at different times; else they go on at once.
func appendLoad(ctx context.Context, z size, n int, pause time.Duration, to sink, turnOver func(stream int, head int64)) (l load, err error) {
	stop, cancel := context.WithTimeout(ctx, z.journalTime)
	defer cancel()
	var total atomic.Int64
	all := make([][]int64, z.journalStreams)
	errs := make([]error, z.journalStreams)
	l.streams = make([]turns, z.journalStreams)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range z.journalStreams {
		t := &l.streams[i]
		t.length = z.journalTurn
		if pause > 0 {
			t.later, t.length = t.length, around+1+i*t.length/z.journalStreams
		}
		wg.Go(func() {
			due := begin.Add(pause * time.Duration(i) / time.Duration(z.journalStreams))
			for stop.Err() == nil {
				if pause > 0 {
					wait(stop, time.Until(due))
					due = due.Add(pause)
				}
				events, over := t.next(n)
				start := time.Now()
				// What was begun is waited for: the context ends the load, not an append.
				if err := to(ctx, i, t.head, events); err != nil {
					errs[i] = err
					cancel()
					return
				}
				all[i] = append(all[i], int64(time.Since(start)))
				total.Add(int64(len(events)))
				t.head += int64(len(events))
				if over && turnOver != nil {
					turnOver(i, t.head)
				}
			}
		})
	}
	wg.Wait()
	l.took = time.Since(begin)
	l.events = total.Load()
	q := quantiles(flatten(all), 0.5, 0.99)
	l.p50, l.p99 = q[0], q[1]
	return l, errors.Join(errors.Join(errs...), ctx.Err())
}

// load is what appendLoad did.
type load struct {
	streams  []turns
	events   int64
	took     time.Duration
	p50, p99 time.Duration
}

func (l *load) rate() float64 { return float64(l.events) / l.took.Seconds() }

// around is how many events of a turn are no text: three before it and three after.
const around = 6

// turns makes the events of turn after turn of one stream.
type turns struct {
	length int // events in a turn
	later  int // events in the turns after the first; 0: as many
	head   int64
	at     int // events of the turn so far
	turn   int // turns that have ended
	offset int64
	text   int // bytes of text in all
}

// pieceText makes an event's JSON about 200 bytes long.
const pieceText = "the stream of a mill is led aside "

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
			t.text += len(pieceText)
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
			if t.later > 0 {
				t.length = t.later
			}
		}
	}
	return events, over
}
