package feed

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"weak"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// message returns a message of a user.
func message(id, text string) event.Event {
	return event.Event{Type: event.MessageAdd, Message: id, Body: &event.Body{Role: event.User, Parts: []event.Part{{Kind: event.KindText, Text: text}}}}
}

// answer returns the start of a turn that writes text in part p of message m.
func answer() []event.Event {
	return []event.Event{
		{Type: event.TurnStart, Turn: "t"},
		{Type: event.MessageStart, Turn: "t", Message: "m", Body: &event.Body{Role: event.Assistant}},
		{Type: event.PartStart, Turn: "t", Message: "m", Part: "p", Body: &event.Body{Kind: event.KindText}},
	}
}

func says(offset int, text string) event.Event {
	return event.Event{Type: event.PartAppend, Turn: "t", Message: "m", Part: "p", Offset: int64(offset), Text: text}
}

func endTurn() event.Event {
	return event.Event{Type: event.TurnEnd, Turn: "t", Body: &event.Body{Outcome: event.Completed}}
}

// open returns the feed of a log that already has some events.
func open(t testing.TB, log *fakeLog, cfg Config) (*Registry, *Feed) {
	t.Helper()
	reg := NewRegistry(log, cfg)
	f, err := reg.Acquire(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	return reg, f
}

func publish(t testing.TB, log *fakeLog, f *Feed, events ...event.Event) {
	t.Helper()
	if err := f.Publish(log.append(events...)); err != nil {
		t.Fatal(err)
	}
}

func poll(t testing.TB, f *Feed, c Cursor, budget int) *Batch {
	t.Helper()
	b, err := f.Poll(t.Context(), c, budget)
	if err != nil {
		t.Fatalf("poll %s: %v", c, err)
	}
	return b
}

func encoded(t testing.TB, b *Batch, as Encoding) string {
	t.Helper()
	j, err := b.Encode(as)
	if err != nil {
		t.Fatal(err)
	}
	return string(j)
}

func TestReadersShareBatches(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	_, f := open(t, log, Config{TailEvents: 3})
	defer f.Release()
	start := f.Cursor()
	publish(t, log, f, append(answer(), says(0, "a"), says(1, "b"), says(2, "c"))...)
	for name, c := range map[string]Cursor{"snapshot": "", "from the tail": NewCursor("e", 4), "from the log": start} {
		one, two := poll(t, f, c, 0), poll(t, f, c, 0)
		if one != two {
			t.Errorf("%s: two batches", name)
		}
		a, b := encoded(t, one, SSE), encoded(t, two, SSE)
		if bytesOf, _ := one.Encode(SSE); a != b || &bytesOf[0] != &one.chunk[one.event] {
			t.Errorf("%s: encoded twice", name)
		}
	}
	if log.reads != 2 { // to load, and for the old cursor
		t.Errorf("%d reads of the log", log.reads)
	}
	if poll(t, f, NewCursor("e", 4), 0) == poll(t, f, NewCursor("e", 5), 0) {
		t.Error("readers at different places share a batch")
	}
}

// Readers who return together share one encoded batch even if the collector runs between them.
func TestLatestBatchSurvivesACollection(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	_, f := open(t, log, Config{})
	defer f.Release()
	publish(t, log, f, append(answer(), says(0, "a"), says(1, "b"))...)
	shared := weak.Make(poll(t, f, "e.1", 0))
	runtime.GC()
	if shared.Value() == nil || poll(t, f, "e.1", 0) != shared.Value() {
		t.Error("the batch was collected")
	}
	b := f.latest
	publish(t, log, f, says(2, "c"))
	if b == nil || f.latest != nil {
		t.Errorf("the latest batch is %v before and %v after new events", b, f.latest)
	}
	publish(t, log, f, says(3, strings.Repeat("x", maxLatest)))
	if poll(t, f, "e.1", 0); f.latest != nil {
		t.Error("a large batch stays in memory")
	}
}

func TestBudgetChoosesUptoFirst(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	_, f := open(t, log, Config{})
	defer f.Release()
	publish(t, log, f, answer()...)
	c := f.Cursor()
	for i := range 10 {
		publish(t, log, f, says(10*i, "0123456789"))
	}
	// 10 bytes of text and 8 of overhead.
	for budget, want := range map[int]int64{0: 13, 1: 4, 18: 4, 19: 5, 36: 5, 37: 6, 179: 13, 1000: 13} {
		b := poll(t, f, c, budget)
		if b.Upto != want || b.Cursor != NewCursor("e", want) || len(b.Events) != 1 || b.Events[0].Seq != want || len(b.Events[0].Text) != 10*int(want-3) {
			t.Errorf("budget %d: %s", budget, encoded(t, b, JSON))
		}
	}
	_, cold := open(t, log, Config{TailEvents: 1})
	defer cold.Release()
	for budget, want := range map[int]int64{0: 13, 1: 4, 18: 4, 19: 5, 37: 6, 1000: 13} {
		b := poll(t, cold, c, budget)
		if b.Upto != want || len(b.Events) != 1 || len(b.Events[0].Text) != 10*int(want-3) {
			t.Errorf("from the log, budget %d: %s", budget, encoded(t, b, JSON))
		}
	}
	log.compact()
	b := poll(t, cold, NewCursor("e", 5), 1)
	if len(b.Events) != 1 || b.Upto != 13 || b.Events[0].MergedFrom != 4 || len(b.Events[0].Text) != 100 {
		t.Errorf("from the compacted log: %s", encoded(t, b, JSON))
	}
}

func TestOperationSpanningCursor(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	log.append(answer()...)
	log.append(says(0, "ab"), message("u", "in between"), says(2, "cd"), endTurn())
	log.compact()
	_, f := open(t, log, Config{TailEvents: 1})
	defer f.Release()
	b := poll(t, f, NewCursor("e", 3), 1) // upto is that of the message
	if b.Upto != 5 || len(b.Events) != 2 || b.Events[1].Text != "abcd" || b.Events[1].Seq != 6 {
		t.Errorf("%s", encoded(t, b, JSON))
	}
}

func TestTooFarBehind(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	log.append(answer()...)
	for i := range 30 {
		log.append(message(fmt.Sprintf("u%d", i), strings.Repeat("x", 100)))
	}
	_, f := open(t, log, Config{TailEvents: 1, chunkSize: 200, behindLimit: 300, pieceSize: 1 << 20})
	defer f.Release()
	// A log that was never compacted can be read in pieces of any size.
	b := poll(t, f, NewCursor("e", 3), 0)
	if b.Reset || b.Upto >= f.Head() || b.Upto <= 3 {
		t.Errorf("not compacted: %s", encoded(t, b, JSON))
	}
	publish(t, log, f, endTurn())
	log.compact()
	// Otherwise a merged operation may begin in the piece and end after it. The feed notices this from the log itself.
	if b := poll(t, f, NewCursor("e", 3), 0); !b.Reset {
		t.Errorf("compacted: %s", encoded(t, b, JSON))
	}
	if b := poll(t, f, NewCursor("e", f.Head()-4), 0); b.Reset {
		t.Errorf("near: %s", encoded(t, b, JSON))
	}
}

func TestPublishOutOfOrder(t *testing.T) {
	for name, seqs := range map[string][]int64{"hole": {3}, "again": {1}, "inside": {2, 4}} {
		log := &fakeLog{epoch: "e"}
		log.append(message("u1", "a"))
		reg, f := open(t, log, Config{})
		var events []event.Event
		for _, seq := range seqs {
			events = append(events, event.Event{Seq: seq, Type: event.TurnStart, Turn: "t"})
		}
		if err := f.Publish(events); !errors.Is(err, errOrder) {
			t.Errorf("%s: error %v", name, err)
		}
		// The invalid events aren't shown, readers are notified, and the next one gets a new feed.
		if _, err := f.Poll(t.Context(), f.Cursor(), 0); !errors.Is(err, ErrLost) || f.Head() != 1 {
			t.Errorf("%s: poll: %v, head %d", name, err, f.Head())
		}
		g, err := reg.Acquire(t.Context(), "c")
		if err != nil || g == f {
			t.Errorf("%s: acquire: same %v, error %v", name, g == f, err)
		}
		f.Release()
		g.Release()
	}
}

func TestCloseLetsReadersFinish(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	reg, f := open(t, log, Config{})
	start := f.Cursor()
	publish(t, log, f, message("u", "a"), event.Event{Type: event.ConversationDelete})
	waiting := f.Notify()
	f.Close(ErrDeleted)
	f.Close(ErrLost) // the first one stays
	<-waiting
	<-f.Notify()
	b := poll(t, f, start, 0)
	if len(b.Events) != 2 {
		t.Errorf("%s", encoded(t, b, JSON))
	}
	for name, c := range map[string]Cursor{"all seen": b.Cursor, "new": "", "foreign": "x.1"} {
		if b, err := f.Poll(t.Context(), c, 0); !errors.Is(err, ErrDeleted) {
			t.Errorf("%s: %+v, error %v", name, b, err)
		}
	}
	if _, err := f.Page(t.Context(), "", 0); !errors.Is(err, ErrDeleted) {
		t.Errorf("page: %v", err)
	}
	if err := f.Publish(log.append(message("v", "b"))); !errors.Is(err, ErrDeleted) {
		t.Errorf("publish: %v", err)
	}
	f.setCompacted(1)
	f.Release()
	if reg.Len() != 0 {
		t.Errorf("%d feeds remain", reg.Len())
	}
}

func TestNextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{epoch: "e"}
		reg := NewRegistry(log, Config{})
		f, err := reg.Acquire(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Release()
		type result struct {
			b   *Batch
			err error
		}
		got := make(chan result, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		next := func(c Cursor) {
			b, err := f.Next(ctx, c, 0)
			got <- result{b, err}
		}
		go next(f.Cursor())
		synctest.Wait()
		select {
		case r := <-got:
			t.Fatalf("returned %+v", r)
		default:
		}
		publish(t, log, f, message("u", "a"))
		r := <-got
		if r.err != nil || len(r.b.Events) != 1 {
			t.Fatalf("%+v", r)
		}
		go next(r.b.Cursor)
		synctest.Wait()
		gone := errors.New("gone")
		cancel(gone)
		if r := <-got; r.b != nil || !errors.Is(r.err, gone) {
			t.Errorf("%+v", r)
		}
	})
}

// PollTail gives what Poll gives, and never reads the log. Watchers are called when readers are woken.
func TestPollTail(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	_, f := open(t, log, Config{})
	defer f.Release()
	calls := 0
	stop := f.Watch(func() { calls++ })
	other := f.Watch(func() {})
	start := f.Cursor()
	publish(t, log, f, append(answer(), says(0, "a"), says(1, "b"), says(2, "c"))...)
	f.AccessChanged()
	if other(); calls != 2 {
		t.Errorf("%d calls", calls)
	}
	reads := log.reads
	for _, c := range []Cursor{"", "nonsense", "other.4", NewCursor("e", 99)} {
		if b, ok, err := f.PollTail(c, 0); ok || b != nil || err != nil {
			t.Errorf("%q: %v, %v, %v", c, b, ok, err)
		}
	}
	b, ok, err := f.PollTail(NewCursor("e", 4), 0)
	if !ok || err != nil || b != poll(t, f, NewCursor("e", 4), 0) {
		t.Errorf("from the tail: %v, %v, %v", b, ok, err)
	}
	if b, ok, err := f.PollTail(f.Cursor(), 0); !ok || b != nil || err != nil {
		t.Errorf("at the head: %v, %v, %v", b, ok, err)
	}
	f.mu.Lock()
	f.tail.shrink(1, 0)
	f.mu.Unlock()
	if b, ok, err := f.PollTail(start, 0); ok || b != nil || err != nil {
		t.Errorf("before the tail: %v, %v, %v", b, ok, err)
	}
	if log.reads != reads {
		t.Errorf("%d reads of the log", log.reads-reads)
	}
	f.Close(fmt.Errorf("%w: test", ErrDeleted))
	if _, ok, err := f.PollTail(f.Cursor(), 0); !ok || !errors.Is(err, ErrDeleted) {
		t.Errorf("closed: %v, %v", ok, err)
	}
	if stop(); calls != 3 || len(f.watchers) != 0 {
		t.Errorf("%d calls, %d watchers", calls, len(f.watchers))
	}
}
