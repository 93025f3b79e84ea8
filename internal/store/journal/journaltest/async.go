package journaltest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// testAsync appends without waiting. Each batch gets one result, after which readers find its events.
func testAsync(t *testing.T, open Open) {
	j := open(t)
	a, ok := j.(journal.AsyncAppender)
	if !ok {
		return // it appends only with a wait
	}
	create(t, j, "c")
	batch := func(seq int64) journal.Batch {
		return journal.Batch{Conversation: "c", Expected: seq - 1, Events: []event.Event{{Seq: seq, At: 1, Type: event.TurnUpdate, Turn: "t", Body: &event.Body{Phase: "p"}}}}
	}
	const n = 50
	var results sync.WaitGroup
	for seq := range int64(n) {
		results.Add(1)
		must(t, a.AppendAsync(batch(seq+1), func(err error) {
			defer results.Done()
			if err != nil {
				t.Errorf("seq %d: %v", seq+1, err)
			}
		}))
	}
	results.Wait()
	if r := readAll(t, j, "c", 0); r.Head != n || len(r.Events) != n {
		t.Errorf("%d events up to %d, want %d", len(r.Events), r.Head, n)
	}
	fenced := make(chan error, 1)
	must(t, a.AppendAsync(batch(n), func(err error) { fenced <- err }))
	if err := <-fenced; !errors.Is(err, journal.ErrFenced) {
		t.Errorf("a second batch at one seq: %v", err)
	}
	if err := a.AppendAsync(journal.Batch{}, func(error) { t.Error("report was called for a batch that was refused") }); !errors.Is(err, journal.ErrInvalid) {
		t.Errorf("an invalid batch: %v", err)
	}
	must(t, j.Append(context.Background(), batch(n+1)))
	must(t, j.Close())
}
