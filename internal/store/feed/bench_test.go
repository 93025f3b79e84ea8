package feed

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/leat-dev/leat/event"
)

// BenchmarkFanOut publishes one event, which 2,000 readers take as SSE. The result is per delivery to one reader.
func BenchmarkFanOut(b *testing.B) {
	const readers = 2000
	log := &fakeLog{epoch: "e"}
	_, f := open(b, log, Config{})
	defer f.Release()
	publish(b, log, f, answer()...)
	cursors := make([]Cursor, readers)
	for i := range cursors {
		cursors[i] = f.Cursor()
	}
	b.ReportAllocs()
	n, offset := 0, 0
	e := make([]event.Event, 1)
	for b.Loop() {
		if n == 0 {
			e[0] = says(offset, "a few words ")
			e[0].Seq = f.head + 1
			offset += len(e[0].Text)
			if err := f.Publish(e); err != nil {
				b.Fatal(err)
			}
			n = readers
		}
		n--
		batch, err := f.Poll(context.Background(), cursors[n], 1<<16)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := batch.Encode(SSE); err != nil {
			b.Fatal(err)
		}
		cursors[n] = batch.Cursor
	}
}

// BenchmarkWakeUp is BenchmarkFanOut with 2,000 goroutines waiting in Next. The result is per event for all of them.
func BenchmarkWakeUp(b *testing.B) {
	const readers = 2000
	log := &fakeLog{epoch: "e"}
	_, f := open(b, log, Config{})
	defer f.Release()
	publish(b, log, f, answer()...)
	ctx, cancel := context.WithCancel(context.Background())
	var wg, turn sync.WaitGroup
	for range readers {
		c := f.Cursor()
		wg.Go(func() {
			for {
				batch, err := f.Next(ctx, c, 1<<16)
				if err != nil {
					return
				}
				if _, err := batch.Encode(SSE); err != nil {
					b.Error(err)
				}
				c = batch.Cursor
				turn.Done()
			}
		})
	}
	offset := 0
	e := make([]event.Event, 1)
	for b.Loop() {
		e[0] = says(offset, "a few words ")
		e[0].Seq = f.Head() + 1
		offset += len(e[0].Text)
		turn.Add(readers)
		if err := f.Publish(e); err != nil {
			b.Fatal(err)
		}
		turn.Wait()
	}
	cancel()
	wg.Wait()
}

// long returns a feed with a running turn of 100,000 events of 20 bytes.
func long(b *testing.B) (*fakeLog, *Feed) {
	log := &fakeLog{epoch: "e"}
	_, f := open(b, log, Config{})
	publish(b, log, f, answer()...)
	for i := range 100_000 {
		publish(b, log, f, says(20*i, fmt.Sprintf("token number %06d ", i)))
	}
	return log, f
}

// BenchmarkJoin builds and encodes the snapshot of a running turn of 100,000 events, for the first of several readers that
// join.
func BenchmarkJoin(b *testing.B) {
	_, f := long(b)
	defer f.Release()
	text := 20 * 100_000
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		clear(f.cache)
		batch, err := f.Poll(context.Background(), "", 0)
		if err != nil {
			b.Fatal(err)
		}
		j, err := batch.Encode(SSE)
		if err != nil {
			b.Fatal(err)
		}
		size = len(j)
	}
	b.ReportMetric(float64(size)/float64(text), "x-text")
}

// BenchmarkCatchUp merges the whole tail for a reader that had stalled.
func BenchmarkCatchUp(b *testing.B) {
	_, f := long(b)
	defer f.Release()
	c := NewCursor(f.epoch, f.tail.from)
	b.ReportAllocs()
	for b.Loop() {
		clear(f.cache)
		batch, err := f.Poll(context.Background(), c, 0)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := batch.Encode(SSE); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBehind catches up with 10,000 missed events of a running turn, for readers who don't share their cursors.
func BenchmarkBehind(b *testing.B) {
	for _, size := range []int{20, 200} {
		for _, parts := range []int{1, 2} {
			b.Run(fmt.Sprintf("%d bytes, %d parts at once", size, parts), func(b *testing.B) {
				log := &fakeLog{epoch: "e"}
				_, f := open(b, log, Config{})
				defer f.Release()
				publish(b, log, f, answer()...)
				publish(b, log, f, event.Event{Turn: "t", Type: event.PartStart, Message: "m", Part: "p2", Body: &event.Body{Kind: event.KindReasoning}})
				word := strings.Repeat("some words ", size/11+1)[:size-1] + "\n"
				for i := range 20_000 {
					e := says(i/parts*size, word)
					if i%parts == 1 {
						e.Part = "p2"
					}
					publish(b, log, f, e)
				}
				c := f.CursorAt(f.head - 10_000)
				b.ReportAllocs()
				for b.Loop() {
					clear(f.cache)
					for c := c; ; {
						batch, err := f.Poll(context.Background(), c, 1<<20)
						if err != nil {
							b.Fatal(err)
						}
						if batch == nil {
							break
						}
						if _, err := batch.Encode(SSE); err != nil {
							b.Fatal(err)
						}
						c = batch.Cursor
					}
				}
			})
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	log := &fakeLog{epoch: "e"}
	_, f := open(b, log, Config{})
	defer f.Release()
	publish(b, log, f, answer()...)
	b.ReportAllocs()
	e := make([]event.Event, 1)
	offset := 0
	for b.Loop() {
		e[0] = says(offset, "a few words ")
		e[0].Seq = f.head + 1
		offset += len(e[0].Text)
		if err := f.Publish(e); err != nil {
			b.Fatal(err)
		}
	}
}
