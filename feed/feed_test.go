package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// message returns a user's message.
func message(id, text string) event.Event {
	return event.Event{Type: event.MessageAdd, Message: id, Body: &event.Body{Role: event.User, Parts: []event.Part{{Kind: event.KindText, Text: text}}}}
}

// answer returns the beginning of a turn that says something in part p of message m.
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

// open returns the feed of a log that has some events already.
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

func TestCursor(t *testing.T) {
	for _, c := range []struct {
		cursor Cursor
		epoch  string
		seq    int64
		ok     bool
	}{
		{NewCursor("e1", 0), "e1", 0, true},
		{NewCursor("0198c0de-0000-7000-8000-000000000000", 123), "0198c0de-0000-7000-8000-000000000000", 123, true},
		{NewCursor("a.b", 1<<59), "a.b", 1 << 59, true},
		{"", "", 0, false},
		{".1", "", 0, false},
		{"e", "", 0, false},
		{"e.", "", 0, false},
		{"e.-1", "", 0, false},
		{"e.+1", "", 0, false},
		{"e.01", "", 0, false},
		{"e.1 ", "", 0, false},
		{"e.9999999999999999999", "", 0, false},
	} {
		if epoch, seq, ok := c.cursor.Parse(); epoch != c.epoch || seq != c.seq || ok != c.ok {
			t.Errorf("%q: %q %d %v", c.cursor, epoch, seq, ok)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add("e1.0")
	f.Add("a.b.17")
	f.Fuzz(func(t *testing.T, s string) {
		if epoch, seq, ok := Cursor(s).Parse(); ok && NewCursor(epoch, seq) != Cursor(s) {
			t.Errorf("%q is %q %d", s, epoch, seq)
		}
	})
}

func TestEncodings(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	log.append(message("u", "hi\n"))
	_, f := open(t, log, Config{})
	defer f.Release()
	snapshot := poll(t, f, "", 0)
	const wantSnapshot = `{"type":"snapshot","conversation":"c","cursor":"e.1","epoch":"e","reset":true,"first":"u","transcript":{"seq":1,"messages":[{"id":"u","role":"user","ended":true,"parts":[{"id":"p1","kind":"text","ended":true,"text":"hi\n"}]}],"turns":[]}}`
	if got := encoded(t, snapshot, JSON); got != wantSnapshot {
		t.Errorf("got  %s\nwant %s", got, wantSnapshot)
	}
	publish(t, log, f, append(answer(), says(0, "a"), says(1, "b"))...)
	b := poll(t, f, snapshot.Cursor, 0)
	const want = `{"type":"batch","conversation":"c","cursor":"e.6","seq":6,"events":[{"seq":2,"turn":"t","type":"turn.start"},{"seq":3,"turn":"t","type":"message.start","message":"m","role":"assistant"},` +
		`{"seq":4,"turn":"t","type":"part.start","message":"m","part":"p","kind":"text"},{"seq":6,"first":5,"turn":"t","type":"part.append","message":"m","part":"p","offset":0,"text":"ab"}]}`
	for as, want := range map[Encoding]string{JSON: want, NDJSON: want + "\n", SSE: "id: e.6\ndata: " + want + "\n\n"} {
		if got := encoded(t, b, as); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestEncodeFails(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	_, f := open(t, log, Config{})
	defer f.Release()
	c := f.Cursor()
	publish(t, log, f, event.Event{Type: event.Record, Body: &event.Body{Kind: "k", Data: json.RawMessage("{")}})
	if j, err := poll(t, f, c, 0).Encode(SSE); err == nil {
		t.Errorf("no error: %s", j)
	}
}

func TestParseFrameRefuses(t *testing.T) {
	for _, s := range []string{"", "{", `{"type":"ack"}`, `{"type":"snapshot"}`, `{"type":"batch","events":{}}`} {
		if f, err := ParseFrame([]byte(s)); err == nil {
			t.Errorf("%q is %+v", s, f)
		}
	}
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
		if bytesOf, _ := one.Encode(SSE); a != b || &bytesOf[0] != &one.frame[0] {
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

func TestBudgetChoosesUptoFirst(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	_, f := open(t, log, Config{})
	defer f.Release()
	publish(t, log, f, answer()...)
	c := f.Cursor()
	for i := range 10 {
		publish(t, log, f, says(10*i, "0123456789"))
	}
	// 10 bytes and 8 for what is around them.
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
	log.settle()
	b := poll(t, cold, NewCursor("e", 5), 1)
	if len(b.Events) != 1 || b.Upto != 13 || b.Events[0].First != 4 || len(b.Events[0].Text) != 100 {
		t.Errorf("from the settled log: %s", encoded(t, b, JSON))
	}
}

func TestOperationThatSpansTheCursorIsWhole(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	log.append(answer()...)
	log.append(says(0, "ab"), message("u", "in between"), says(2, "cd"), endTurn())
	log.settle()
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
	_, f := open(t, log, Config{TailEvents: 1, chunk: 200, behind: 300, piece: 1 << 20})
	defer f.Release()
	// What was never merged can be had in any pieces.
	b := poll(t, f, NewCursor("e", 3), 0)
	if b.Reset || b.Upto >= f.Head() || b.Upto <= 3 {
		t.Errorf("unsettled: %s", encoded(t, b, JSON))
	}
	publish(t, log, f, endTurn())
	log.settle()
	// Else what is missing might have begun in the piece; the feed need not have been told.
	if b := poll(t, f, NewCursor("e", 3), 0); !b.Reset {
		t.Errorf("settled: %s", encoded(t, b, JSON))
	}
	if b := poll(t, f, NewCursor("e", f.Head()-4), 0); b.Reset {
		t.Errorf("near: %s", encoded(t, b, JSON))
	}
}

func TestPublishRefusesDisorder(t *testing.T) {
	for name, seqs := range map[string][]int64{"hole": {3}, "again": {1}, "inside": {2, 4}} {
		log := &fakeLog{epoch: "e"}
		log.append(message("u1", "a"))
		reg, f := open(t, log, Config{})
		var events []event.Event
		for _, seq := range seqs {
			events = append(events, event.Event{Seq: seq, Type: event.TurnStart, Turn: "t"})
		}
		if err := f.Publish(events); !errors.Is(err, ErrOrder) {
			t.Errorf("%s: error %v", name, err)
		}
		// Nothing was shown, readers are told, and the next one gets a new feed.
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
	f.Trimmed(1)
	f.Compacted(1)
	f.Release()
	if reg.Len() != 0 {
		t.Errorf("%d feeds are left", reg.Len())
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

func TestAcquireLoadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enter := make(chan struct{})
		log := &fakeLog{epoch: "e", onRead: func() { <-enter }}
		log.append(message("u", "a"))
		reg := NewRegistry(log, Config{})
		feeds := make(chan *Feed, 10)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				f, err := reg.Acquire(t.Context(), "c")
				if err != nil {
					t.Error(err)
				}
				feeds <- f
			})
		}
		// One that does not wait to the end leaves the others their turn.
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if f, err := reg.Acquire(ctx, "c"); err == nil {
				feeds <- f
			}
		})
		synctest.Wait()
		cancel()
		close(enter)
		wg.Wait()
		close(feeds)
		first := <-feeds
		for f := range feeds {
			if f != first {
				t.Error("two feeds of one conversation")
			}
			f.Release()
		}
		if log.reads > 2 || reg.Len() != 1 {
			t.Errorf("%d reads, %d feeds", log.reads, reg.Len())
		}
		first.Release()
	})
}

func TestAcquireFails(t *testing.T) {
	log := &fakeLog{}
	reg := NewRegistry(log, Config{})
	if _, err := reg.Acquire(t.Context(), "c"); !errors.Is(err, errNotFound) {
		t.Errorf("unknown: %v", err)
	}
	if reg.Len() != 0 {
		t.Error("a feed that was not loaded is kept")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	log.epoch = "e"
	if _, err := reg.Acquire(ctx, "c"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	reg.Close()
	if _, err := reg.Acquire(t.Context(), "c"); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestIdleFeeds(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	log.append(message("u", "a"))
	reg, f := open(t, log, Config{Idle: 2})
	f.Release()
	again := func() *Feed {
		t.Helper()
		f, err := reg.Acquire(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if g := again(); g != f {
		t.Error("an idle feed is not used again")
	}
	if log.reads != 2 {
		t.Errorf("%d reads, want the load and one look", log.reads)
	}
	f.Release()
	// What happened without it is noticed.
	log.append(message("v", "b"))
	f = again()
	if f.Head() != 2 || len(poll(t, f, "", 0).Snapshot.Messages) != 2 {
		t.Errorf("head %d", f.Head())
	}
	f.Release()
	log.epoch = "e2"
	f = again()
	if f.Cursor() != "e2.2" {
		t.Errorf("cursor %s", f.Cursor())
	}
	f.Release()
	for _, id := range []string{"d", "e", "f"} {
		g, err := reg.Acquire(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		g.Release()
	}
	if reg.Len() != 2 {
		t.Errorf("%d feeds are kept, want 2", reg.Len())
	}
	defer func() {
		if recover() == nil {
			t.Error("a feed can be released twice")
		}
	}()
	f.Release()
}

func TestRegistryTellsFeeds(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	reg, f := open(t, log, Config{})
	defer f.Release()
	publish(t, log, f, message("u", "a"), message("v", "b"))
	reg.Compacted("c", 2)
	reg.Compacted("other", 2)
	log.trim(1)
	reg.Trimmed("c", 1)
	reg.Trimmed("other", 1)
	if b := poll(t, f, NewCursor("e", 0), 0); !b.Reset || len(b.Snapshot.Messages) != 1 || b.Snapshot.Earlier {
		t.Errorf("%s", encoded(t, b, JSON))
	}
	if b := poll(t, f, NewCursor("e", 1), 0); b.Reset {
		t.Errorf("%s", encoded(t, b, JSON))
	}
	reg.Close()
	if _, err := f.Poll(t.Context(), f.Cursor(), 0); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}

// TestTruncateBehindTheWindow truncates to a message that the feed does not hold any more, and publishes more while the
// log is being read for the snapshot.
func TestTruncateBehindTheWindow(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	for i := range 20 {
		log.append(message(fmt.Sprintf("u%d", i), "x"))
	}
	_, f := open(t, log, Config{Window: transcript.Limits{Messages: 3}})
	defer f.Release()
	if n := len(f.fold.Messages); n > 6 {
		t.Fatalf("%d messages are held", n)
	}
	publish(t, log, f, event.Event{Type: event.ConversationTruncate, Message: "u4"})
	published := false
	log.onRead = func() {
		if !published {
			published = true
			publish(t, log, f, message("new", "y"))
		}
	}
	b := poll(t, f, NewCursor("e", 20), 0)
	var ids []string
	for _, m := range b.Snapshot.Messages {
		ids = append(ids, m.ID)
	}
	if got := strings.Join(ids, " "); got != "u3 u4 new" || b.Upto != 22 || !b.Snapshot.Earlier {
		t.Errorf("%s up to %d", got, b.Upto)
	}
	f.View(func(t_ *transcript.Transcript) {
		if t_.Message("u4") == nil {
			t.Error("the fold is still short")
		}
	})
}

func TestLoadKeepsTheWindowOnly(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	for i := range 1000 {
		log.append(message(fmt.Sprintf("u%d", i), strings.Repeat("x", 100)))
	}
	_, f := open(t, log, Config{chunk: 500, behind: 1 << 20, piece: 1 << 20})
	defer f.Release()
	if n := len(f.fold.Messages); n < 50 || n > 100 {
		t.Errorf("%d messages are held", n)
	}
	if n := len(poll(t, f, "", 0).Snapshot.Messages); n != 50 {
		t.Errorf("%d messages in a snapshot", n)
	}
	for i := range 5000 {
		publish(t, log, f, message(fmt.Sprintf("v%d", i), "x"))
	}
	if n := len(f.fold.Messages); n > 200 {
		t.Errorf("%d messages are held after publishing", n)
	}
	if n := len(f.tail.events); n > DefaultTailEvents*3/2 {
		t.Errorf("%d events in the tail", n)
	}
}

func TestPage(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	for i := range 20 {
		log.append(message(fmt.Sprintf("u%d", i), "x"))
	}
	_, f := open(t, log, Config{Window: transcript.Limits{Messages: 3}})
	defer f.Release()
	reads := log.reads
	for _, c := range []struct {
		before  string
		limit   int
		want    string
		earlier bool
		reads   bool
	}{
		{"", 2, "u18 u19", true, false},
		{"u19", 1, "u18", true, false},
		{"u18", 0, "u15 u16 u17", true, false},
		{"u5", 4, "u1 u2 u3 u4", true, true},
		{"u3", 4, "u0 u1 u2", false, true},
		{"u0", 4, "", false, true},
	} {
		p, err := f.Page(t.Context(), c.before, c.limit)
		if err != nil {
			t.Fatalf("before %s: %v", c.before, err)
		}
		var ids []string
		for _, m := range p.Messages {
			ids = append(ids, m.ID)
		}
		if got := strings.Join(ids, " "); got != c.want || p.Earlier != c.earlier || p.Seq != 20 || p.Epoch != "e" {
			t.Errorf("before %s: %s, earlier %v, as of %s.%d", c.before, got, p.Earlier, p.Epoch, p.Seq)
		}
		if c.reads != (log.reads > reads) {
			t.Errorf("before %s: %d reads of the log", c.before, log.reads-reads)
		}
		reads = log.reads
	}
	if _, err := f.Page(t.Context(), "nobody", 1); !errors.Is(err, ErrNoMessage) {
		t.Errorf("unknown message: %v", err)
	}
	p, err := f.Page(t.Context(), "u1", 9)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"conversation":"c","epoch":"e","seq":20,"first":"u0","transcript":{"seq":20,"messages":[{"id":"u0","role":"user","ended":true,"parts":[{"id":"p1","kind":"text","ended":true,"text":"x"}]}],"turns":[]}}`
	if j, err := p.AppendJSON(nil); err != nil || string(j) != want {
		t.Errorf("%s, error %v", j, err)
	}
}

func TestPageAfterTruncates(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	add := func(from, to int) {
		for i := from; i <= to; i++ {
			log.append(message(fmt.Sprintf("u%d", i), "x"))
		}
	}
	add(1, 30)
	log.append(event.Event{Type: event.ConversationTruncate, Message: "u10"}) // further back than a page keeps
	add(31, 40)
	log.append(event.Event{Type: event.ConversationTruncate, Message: "u35"}) // of later ones
	add(41, 50)
	_, f := open(t, log, Config{Window: transcript.Limits{Messages: 2}})
	defer f.Release()
	for _, settled := range []bool{false, true} {
		if settled {
			log.settle()
		}
		for before, want := range map[string]string{"u31": "u9 u10", "u9": "u7 u8", "u41": "u34 u35"} {
			p, err := f.Page(t.Context(), before, 2)
			if err != nil {
				t.Fatalf("before %s: %v", before, err)
			}
			if got := p.Messages[0].ID + " " + p.Messages[1].ID; got != want {
				t.Errorf("before %s: %s", before, got)
			}
		}
		for _, gone := range []string{"u11", "u30", "u36"} {
			if _, err := f.Page(t.Context(), gone, 2); !errors.Is(err, ErrNoMessage) {
				t.Errorf("before %s: %v", gone, err)
			}
		}
	}
}

// TestReadersRunBesideThePublisher has readers that poll, page and reload while events are published and settled.
func TestReadersRunBesideThePublisher(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	reg, f := open(t, log, Config{TailEvents: 20, Window: transcript.Limits{Messages: 4}, Idle: 1})
	const turns, words = 30, 40
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		defer f.Release()
		for i := range turns {
			id := fmt.Sprint(i)
			publish(t, log, f, message("u"+id, "q"), event.Event{Type: event.TurnStart, Turn: "t" + id, Body: &event.Body{Answers: "u" + id}},
				event.Event{Type: event.MessageStart, Turn: "t" + id, Message: "m" + id, Body: &event.Body{Role: event.Assistant}},
				event.Event{Type: event.PartStart, Turn: "t" + id, Message: "m" + id, Part: "p", Body: &event.Body{Kind: event.KindStatus}})
			length := 0
			for j := range words {
				e := event.Event{Type: event.PartAppend, Turn: "t" + id, Message: "m" + id, Part: "p", Offset: int64(length), Text: fmt.Sprint(j), Note: fmt.Sprint(j)}
				length += len(e.Text)
				publish(t, log, f, e)
			}
			publish(t, log, f, event.Event{Type: event.TurnEnd, Turn: "t" + id, Body: &event.Body{Outcome: event.Completed}})
			if i%3 == 0 {
				log.settle()
				f.Compacted(log.head)
			}
		}
	})
	final := make([]string, 8)
	for i := range final {
		wg.Go(func() {
			g, err := reg.Acquire(t.Context(), "c")
			if err != nil {
				t.Error(err)
				return
			}
			defer g.Release()
			var tr transcript.Transcript
			var c Cursor
			for n := 0; ; n++ {
				var b *Batch
				select {
				case <-done:
					b, err = g.Poll(t.Context(), c, 50*i)
				default:
					b, err = g.Next(t.Context(), c, 50*i)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if b == nil {
					break
				}
				j, err := b.Encode(JSON)
				if err != nil {
					t.Error(err)
					return
				}
				frame, err := ParseFrame(j)
				if err != nil {
					t.Error(err)
					return
				}
				if err := frame.Apply(&tr); err != nil {
					t.Error(err)
					return
				}
				c = frame.Cursor
				if n%17 == i { // reload
					tr, c = transcript.Transcript{}, ""
				}
			}
			for tr.Earlier {
				before := tr.Messages[0].ID
				p, err := g.Page(t.Context(), before, 7)
				if err != nil || !p.Add(&tr, before, c) {
					t.Errorf("page before %s: error %v", before, err)
					return
				}
			}
			s := tr.Snapshot(0)
			for _, m := range s.Messages {
				final[i] += m.ID + " " + m.Visible() + fmt.Sprint(m.History()) + "\n"
			}
		})
	}
	wg.Wait()
	var want transcript.Transcript
	r, err := log.Read(t.Context(), "c", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Events {
		if err := want.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	for _, m := range want.Messages {
		fmt.Fprintf(&b, "%s %s%v\n", m.ID, m.Visible(), m.History())
	}
	for i, got := range final {
		if got != b.String() {
			t.Errorf("reader %d holds\n%s\nthe log\n%s", i, got, b.String())
		}
	}
}

func TestSnapshotOfALogThatWasTrimmedAway(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	log.append(message("u", "a"), message("v", "b"))
	log.trim(2)
	_, f := open(t, log, Config{})
	defer f.Release()
	if b := poll(t, f, "", 0); b.Upto != 2 || b.Snapshot.Seq != 2 || b.Cursor != "e.2" {
		t.Errorf("%s", encoded(t, b, JSON))
	}
}
