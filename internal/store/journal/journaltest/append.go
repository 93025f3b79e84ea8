// Writing: what Append stores, what it refuses, and which of several writers at one seq succeeds. Also the helpers with which the
// other files of the suite fill a log.

package journaltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"

	"pgregory.net/rapid"
)

// create creates a conversation whose title is its id.
func create(t rapid.TB, j journal.Journal, id string) {
	t.Helper()
	if err := j.Append(context.Background(), journal.Batch{Conversation: id, Create: true, Summary: &journal.Summary{Title: id}}); err != nil {
		t.Fatalf("create %s: %v", id, err)
	}
}

// appendEvents appends events as one batch. Their seqs must be set.
func appendEvents(t rapid.TB, j journal.Journal, id string, events ...event.Event) {
	t.Helper()
	// A [Writer] may produce no events in a step. An empty batch would be valid, but it would add a commit without any seq.
	if len(events) == 0 {
		return
	}
	if err := j.Append(context.Background(), journal.Batch{Conversation: id, Expected: events[0].Seq - 1, Events: events}); err != nil {
		t.Fatalf("append to %s: %v", id, err)
	}
}

// readAll reads the log after a seq without a limit, and fails if the result is incomplete.
func readAll(t rapid.TB, j journal.Journal, id string, after int64) journal.Range {
	t.Helper()
	r, err := j.Read(context.Background(), id, after, 0)
	if err != nil {
		t.Fatalf("read %s: %v", id, err)
	}
	if r.HasMore {
		t.Fatalf("read %s without a limit: HasMore is set", id)
	}
	return r
}

// Seeded returns a Pick function for a [Writer]. The same seed always yields the same numbers.
func Seeded(state uint64) func(int) int {
	r := rand.New(rand.NewPCG(state, state))
	return func(n int) int { return r.IntN(n) }
}

// testAppend checks that the events of many batches are read back unchanged.
func testAppend(t *testing.T, open Open) {
	j := start(t, open)
	create(t, j, "c")
	w := Writer{Pick: Seeded(1)}
	// The writer's batches have one or several events of several turns, so that commits begin and end anywhere in a message.
	for range 200 {
		appendEvents(t, j, "c", w.Next()...)
	}
	r := readAll(t, j, "c", 0)
	sameEvents(t, "read back", r.Events, w.Log)
	// Appending alone compacts and trims nothing, and every log has an epoch from its creation on.
	if r.Head != int64(len(w.Log)) || r.Compacted != 0 || r.Trimmed != 0 || r.Epoch == "" {
		t.Errorf("range is %+v", journal.Range{Epoch: r.Epoch, Head: r.Head, Compacted: r.Compacted, Trimmed: r.Trimmed})
	}
}

// testAppendMany appends to many conversations concurrently, so that their batches share commits.
func testAppendMany(t *testing.T, open Open) {
	j := start(t, open)
	// More conversations than a commit waits for, so that batches of different conversations share commits in changing
	// combinations.
	const conversations, batches = 40, 25
	var writers [conversations]Writer
	var wg sync.WaitGroup
	for i := range writers {
		w := &writers[i]
		w.Pick = Seeded(uint64(i))
		id := fmt.Sprint("c", i)
		wg.Go(func() {
			ctx := context.Background()
			if err := j.Append(ctx, journal.Batch{Conversation: id, Create: true, Summary: &journal.Summary{}}); err != nil {
				t.Error(err)
				return
			}
			// A conversation has one writer, as in the gateway, so its batches are in order. Only different conversations compete.
			for n := range batches {
				events := w.Next()
				b := journal.Batch{Conversation: id, Expected: int64(len(w.Log) - len(events)), Events: events}
				// Each batch overwrites the key, so the value at the end shows whether the last batch of this conversation was the
				// last to be stored.
				b.Keys = []journal.KeyValue{{Key: id + "/n", Value: fmt.Append(nil, n)}}
				// t.Error instead of t.Fatal: Fatal may only be called by the goroutine of the test.
				if err := j.Append(ctx, b); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for i := range writers {
		id := fmt.Sprint("c", i)
		sameEvents(t, id, readAll(t, j, id, 0).Events, writers[i].Log)
		if v, err := j.Get(context.Background(), id+"/n"); err != nil || string(v) != fmt.Sprint(batches-1) {
			t.Errorf("%s/n = %q, %v", id, v, err)
		}
	}
}

// testCreate checks that only Create makes a conversation, that it may include events, and that a refused creation leaves
// nothing.
func testCreate(t *testing.T, open Open) {
	j := start(t, open)
	ctx := context.Background()
	wantError(t, "append to a conversation that doesn't exist", j.Append(ctx, journal.Batch{Conversation: "c"}), journal.ErrNotFound)
	w := Writer{Pick: Seeded(3)}
	b := journal.Batch{Conversation: "c", Create: true, Summary: &journal.Summary{Title: "a"}, Events: w.Next()}
	if err := j.Append(ctx, b); err != nil {
		t.Fatalf("create with events: %v", err)
	}
	// A creation whose response was lost is repeated by its caller, who must learn that the conversation exists.
	wantError(t, "create again", j.Append(ctx, b), journal.ErrExists)
	sameEvents(t, "created", readAll(t, j, "c", 0).Events, w.Log)
	create(t, j, "d")
	c, d := readAll(t, j, "c", 0), readAll(t, j, "d", 0)
	// The epoch is the part of a cursor that keeps it from being used with another log.
	if c.Epoch == d.Epoch {
		t.Errorf("two conversations have epoch %q", c.Epoch)
	}
	if d.Head != 0 || len(d.Events) != 0 {
		t.Errorf("a new conversation has head %d and %d events", d.Head, len(d.Events))
	}
	// A new log has no events, so a creation can expect 0 only.
	wantError(t, "create at 4", j.Append(ctx, journal.Batch{Conversation: "e", Create: true, Expected: 4, Summary: &journal.Summary{}}), journal.ErrFenced)
	_, err := j.Conversation(ctx, "e")
	wantError(t, "conversation of a refused creation", err, journal.ErrNotFound)
}

// testInvalid checks that a malformed batch is refused with ErrInvalid and nothing of it is stored.
func testInvalid(t *testing.T, open Open) {
	j := start(t, open)
	create(t, j, "c")
	// The events themselves are valid. Journals check the seqs of a batch, but leave the content of events to their writers.
	e := func(seq int64) event.Event {
		return event.Event{Seq: seq, Type: event.MessageAdd, Message: "m", Body: &event.Body{Role: event.User}}
	}
	// Each batch has one fault. The rest of it is valid, so that no other check refuses it.
	for name, b := range map[string]journal.Batch{
		"no conversation":    {Events: []event.Event{e(1)}},
		"long id":            {Conversation: strings.Repeat("c", event.MaxID+1), Create: true, Summary: &journal.Summary{}},
		"create, no summary": {Conversation: "d", Create: true},
		"hole":               {Conversation: "c", Events: []event.Event{e(1), e(3)}},
		"not from expected":  {Conversation: "c", Expected: 1, Events: []event.Event{e(1)}},
		"empty key":          {Conversation: "c", Keys: []journal.KeyValue{{Value: []byte("v")}}},
		"long key":           {Conversation: "c", Keys: []journal.KeyValue{{Key: strings.Repeat("k", journal.MaxKey+1), Value: []byte("v")}}},
	} {
		if err := j.Append(context.Background(), b); !errors.Is(err, journal.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r := readAll(t, j, "c", 0); r.Head != 0 {
		t.Errorf("head is %d", r.Head)
	}
}

// testFence checks that a batch is refused unless Expected is the head, even a batch without events.
func testFence(t *testing.T, open Open) {
	j := start(t, open)
	create(t, j, "c")
	w := Writer{Pick: Seeded(4)}
	next := w.Next()
	appendEvents(t, j, "c", next...)
	head := int64(len(next))
	// Below the head another writer has written the seq already; above it the batch would leave a gap.
	for _, expected := range []int64{0, head - 1, head + 1, head + 100} {
		e := event.Event{Seq: expected + 1, Type: event.Record, Body: &event.Body{RecordKind: "x"}}
		if err := j.Append(context.Background(), journal.Batch{Conversation: "c", Expected: expected, Events: []event.Event{e}}); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("expected %d at head %d: %v", expected, head, err)
		}
	}
	// A batch of keys alone comes from the same writer as events. If another writer has taken over the log, its keys are out of
	// date too.
	wantError(t, "a batch without events", j.Append(context.Background(), journal.Batch{Conversation: "c", Expected: head - 1}), journal.ErrFenced)
	sameEvents(t, "after refusals", readAll(t, j, "c", 0).Events, next)
}

// testFenceRace runs writers that all append at the same seq. Exactly one of them may succeed in each round.
func testFenceRace(t *testing.T, open Open) {
	j := start(t, open)
	create(t, j, "c")
	const writers, rounds = 8, 30
	for round := range rounds {
		// The writers of a round append different events at the same seq, as two gateways would that both believe that they own the
		// conversation.
		var winners atomic.Int32
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				e := event.Event{Seq: int64(round + 1), Type: event.Record, Body: &event.Body{RecordKind: fmt.Sprint("w", i)}}
				err := j.Append(context.Background(), journal.Batch{Conversation: "c", Expected: int64(round), Events: []event.Event{e}})
				switch {
				case err == nil:
					winners.Add(1)
				case !errors.Is(err, journal.ErrFenced):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		// No winner means that a free seq was refused. More than one means that two batches were stored at the same seq.
		if winners.Load() != 1 {
			t.Fatalf("seq %d was written %d times", round+1, winners.Load())
		}
	}
	if r := readAll(t, j, "c", 0); r.Head != rounds || len(r.Events) != rounds {
		t.Errorf("head %d, %d events", r.Head, len(r.Events))
	}
}

// testAtomic checks that nothing of a refused batch is stored: no event, key or summary.
func testAtomic(t *testing.T, open Open) {
	j := start(t, open)
	create(t, j, "c")
	ctx := context.Background()
	appendEvents(t, j, "c", event.Event{Seq: 1, Type: event.Record, Body: &event.Body{RecordKind: "x"}})
	b := journal.Batch{
		Conversation: "c", Expected: 0, Events: []event.Event{{Seq: 1, Type: event.Record, Body: &event.Body{RecordKind: "y"}}},
		Keys: []journal.KeyValue{{Key: "k", Value: []byte("v")}}, Summary: &journal.Summary{Title: "new"},
	}
	if err := j.Append(ctx, b); !errors.Is(err, journal.ErrFenced) {
		t.Fatal(err)
	}
	_, err := j.Get(ctx, "k")
	wantError(t, "key", err, journal.ErrNotFound)
	if s, err := j.Conversation(ctx, "c"); err != nil || s.Title != "c" {
		t.Errorf("summary: %+v, %v", s, err)
	}
	// The refused batch had the seq of an existing event, which must not be overwritten.
	if k := readAll(t, j, "c", 0).Events[0].Get().RecordKind; k != "x" {
		t.Errorf("event: %s", k)
	}
}

// testContext checks that calls with an ended context change nothing.
func testContext(t *testing.T, open Open) {
	j := start(t, open)
	create(t, j, "c")
	appendEvents(t, j, "c", event.Event{Seq: 1, Type: event.Record, Body: &event.Body{RecordKind: "x"}})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	// Each call would succeed with a context that hasn't ended, so the error can only come from the context.
	for name, err := range map[string]error{
		"append":  j.Append(ctx, journal.Batch{Conversation: "c", Expected: 1, Summary: &journal.Summary{Title: "no"}}),
		"compact": j.Compact(ctx, "c", 1),
		"trim":    j.Trim(ctx, "c", 1),
		"delete":  j.Delete(ctx, "c"),
	} {
		wantError(t, name, err, context.Canceled)
	}
	_, err := j.Read(ctx, "c", 0, 0)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	r := readAll(t, j, "c", 0)
	// The context of these reads has not ended: they show the state after the refused calls.
	if s, err := j.Conversation(context.Background(), "c"); err != nil || s.Title != "c" || r.Compacted != 0 || r.Trimmed != 0 || r.Head != 1 {
		t.Errorf("a cancelled call had an effect: %+v, %+v, %v", s, r, err)
	}
}

// testClose checks that every method fails with ErrClosed after Close, and that Close may be repeated.
func testClose(t *testing.T, open Open) {
	// Not start, which closes the journal at the end of the test: this test closes it itself.
	j := open(t)
	create(t, j, "c")
	if err := j.Healthy(); err != nil {
		t.Errorf("healthy: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	ctx := context.Background()
	// The key and the turn don't exist. A closed journal must say that it is closed, not that it found nothing: a caller would
	// take the latter for the truth.
	_, get := j.Get(ctx, "k")
	_, keys := j.Keys(ctx, "")
	_, rd := j.Read(ctx, "c", 0, 0)
	_, conversation := j.Conversation(ctx, "c")
	_, conversations := j.Conversations(ctx, journal.Query{})
	_, trace := j.Trace(ctx, "c", "t")
	for name, err := range map[string]error{
		"append": j.Append(ctx, journal.Batch{Conversation: "c"}), "get": get, "keys": keys, "read": rd, "conversation": conversation,
		"conversations": conversations, "compact": j.Compact(ctx, "c", 1), "trace": trace, "trim": j.Trim(ctx, "c", 1),
		"delete": j.Delete(ctx, "c"), "healthy": j.Healthy(),
	} {
		wantError(t, name+" after close", err, journal.ErrClosed)
	}
	if err := j.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
}
