package feed

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// TestTailEqualsTheLog compares the batches that a tail takes from the fold with those that the log's events merge into. They must be
// equal to the byte, not only in their effect.
func TestTailEqualsTheLog(t *testing.T) {
	merged, pinned, fromLog := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		w := &writer{r: r, o: newOracle()}
		log := &fakeLog{epoch: "e"}
		cfg := Config{TailEvents: pick(r, 20, 1000), TailBytes: pick(r, 4<<10, 1<<20), Window: transcript.Limits{Messages: pick(r, 2, 50), Bytes: 1 << 20}}
		f, err := NewRegistry(log, cfg).Acquire(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { f.Release() }()
		var written []event.Event
		for log.head < 150 {
			events := w.next()
			for i := range events {
				events[i].At = 1000 + 7*(log.head+int64(i))
			}
			for _, e := range log.append(events...) {
				w.o.apply(e)
			}
			written = append(written, events...)
			if err := f.Publish(events); err != nil {
				t.Fatal(err)
			}
			if w.turn == "" && r.IntN(20) == 0 {
				log.compact()
				f.setCompacted(log.head)
				if r.IntN(2) == 0 { // the tail is filled from the log
					f.Release()
					if f, err = NewRegistry(log, cfg).Acquire(t.Context(), "c"); err != nil {
						t.Fatal(err)
					}
					for _, e := range log.rows {
						written[e.Seq-1] = e
					}
				}
			}
			if log.compacted > 0 && r.IntN(20) == 0 {
				log.trim(r.Int64N(log.compacted) / 2)
			}
			for i := range f.tail.marks {
				seq := f.tail.from + 1 + int64(i)
				if e := f.tail.marks[i].event(seq); !reflect.DeepEqual(written[seq-1], e) {
					t.Fatalf("event %d (-written +tail):\n%s", seq, cmp.Diff(written[seq-1], e))
				}
			}
			if f.tail.from >= f.head {
				continue
			}
			after, budget := f.tail.from+r.Int64N(f.head-f.tail.from), pick(r, 0, 1, 50, 500)
			f.mu.Lock()
			b := f.recent(after, budget)
			for _, m := range f.tail.marks {
				pinned += m.run.pinned
			}
			checkOrder(t, f, written, after, b.Upto)
			want := transcript.Merge(written[after:b.Upto], f.history)
			if !reflect.DeepEqual(want, b.Events) || b.Oldest != written[after].At {
				t.Fatalf("after %d up to %d (-log +tail):\n%s", after, b.Upto, cmp.Diff(want, b.Events))
			}
			merged += int(b.Upto-after) - len(b.Events)
			if after < max(log.compacted, log.trimmed) {
				continue
			}
			fromLog++
			if l, err := f.readBatch(t.Context(), after, budget, true); err != nil || l.Upto != b.Upto || !reflect.DeepEqual(l.Events, b.Events) {
				t.Fatalf("after %d with budget %d: up to %d of the log, %d of the tail, error %v\n%s", after, budget, l.Upto, b.Upto, err, cmp.Diff(l.Events, b.Events))
			}
		}
	})
	t.Logf("%d events merged, %d bytes pinned, %d batches of the log", merged, pinned, fromLog)
	if merged == 0 || pinned == 0 || fromLog == 0 {
		t.Error("no log reached the interesting states")
	}
}

// An append that the fold ignores, all or in part, must reach readers as the log has it.
// checkOrder compares the events in order with those that were written: each is one of them, or neighbouring appends to one text.
func checkOrder(t *rapid.T, f *Feed, written []event.Event, after, upto int64) {
	for _, e := range f.tail.inOrder(after, upto) {
		first := e.FirstSeq()
		if reflect.DeepEqual(written[e.Seq-1], e) {
			first = e.Seq // it may have been merged before, by a compaction
		} else {
			text := ""
			for _, w := range written[first-1 : e.Seq] {
				if w.Type != event.PartAppend || w.Message != e.Message || w.Part != e.Part || w.Field != e.Field {
					t.Fatalf("%v was merged into %v", w, e)
				}
				text += w.Text
			}
			if text != e.Text || written[first-1].Offset != e.Offset || written[e.Seq-1].At != e.At {
				t.Fatalf("events %d to %d became %v", first, e.Seq, e)
			}
		}
		if first != after+1 {
			t.Fatalf("%d follows %d", first, after)
		}
		after = e.Seq
	}
	if after != upto {
		t.Fatalf("in order up to %d, want %d", after, upto)
	}
}

func TestTailHasWhatTheFoldIgnores(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	_, f := open(t, log, Config{})
	defer f.Release()
	events := append(answer(), says(0, "ab"), says(0, "xy"), says(1, "yc"), says(2, "cd"), says(3, "de"), says(9, "e"), says(5, ""), says(-1, "abcdef"), endTurn(), says(5, "f"))
	publish(t, log, f, events...)
	for i, e := range events {
		if d := cmp.Diff(e, f.tail.marks[i].event(e.Seq)); d != "" {
			t.Errorf("event %d (-published +tail):\n%s", e.Seq, d)
		}
	}
	if d := cmp.Diff(transcript.Merge(events, nil), poll(t, f, f.CursorAt(0), 0).Events); d != "" {
		t.Errorf("(-log +tail):\n%s", d)
	}
}

// Notes belong to the part, so a note on one text must not be lost when appends to another one, before and after it, are merged.
func TestTailKeepsNotes(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	_, f := open(t, log, Config{})
	defer f.Release()
	noted := says(0, "a")
	noted.Note = "one"
	other := says(0, "o")
	other.Field, other.Note = event.Stderr, "two"
	events := append(answer(), noted, says(1, "b"), other, says(2, "c"))
	publish(t, log, f, events...)
	if d := cmp.Diff(transcript.Merge(events, nil), poll(t, f, f.CursorAt(0), 0).Events); d != "" {
		t.Errorf("(-log +tail):\n%s", d)
	}
}

// A tail holds the missed events of a reader who was away for minutes, in bounded memory. What the fold drops counts.
func TestTailIsBounded(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	_, f := open(t, log, Config{})
	defer f.Release()
	publish(t, log, f, answer()...)
	const size = 200
	word := strings.Repeat("x", size)
	for i := range 30_000 {
		publish(t, log, f, says(size*i, word))
	}
	reads := log.reads
	b := poll(t, f, f.CursorAt(f.head-10_000), 0)
	if len(b.Events) != 1 || len(b.Events[0].Text) != 10_000*size || log.reads != reads {
		t.Errorf("%d events of %d bytes, %d reads", len(b.Events), len(b.Events[0].Text), log.reads-reads)
	}
	if n := f.tail.bytes; n > defaultTailBytes*3/2 || n < defaultTailBytes/2 {
		t.Errorf("%d bytes", n)
	}
	retract := says(0, "")
	retract.Type = event.PartReplace
	publish(t, log, f, retract)
	if n := f.tail.bytes; n > defaultTailBytes*3/2 {
		t.Errorf("%d bytes after the text was replaced", n)
	}
	publish(t, log, f, says(0, "once more"))
	if b := poll(t, f, f.CursorAt(f.head-2), 0); len(b.Events) != 1 || b.Events[0].Type != event.PartReplace || b.Events[0].Text != "once more" {
		t.Errorf("after the retraction: %+v", b.Events)
	}
	f.tail.shrink(0, 0)
	if f.tail.bytes != 0 || len(f.tail.open) != 0 {
		t.Errorf("an empty tail has %d bytes and %d runs", f.tail.bytes, len(f.tail.open))
	}
}
