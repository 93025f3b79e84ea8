// Reading: from any seq, in pages, and while the log changes.

package journaltest

import (
	"context"
	"sync"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// testRead checks reads from positions at the start, inside and at the end of a log, and above its head. A position above the head
// is no error: a reader may have a cursor of a log that lost events.
func testRead(t *testing.T, open Open) {
	j := start(t, open)
	_, err := j.Read(context.Background(), "c", 0, 0)
	wantError(t, "read a conversation that doesn't exist", err, journal.ErrNotFound)
	create(t, j, "c")
	create(t, j, "other")
	// The appends alternate between two conversations, so that the events of one are not next to each other on the disk.
	w, other := Writer{Pick: Seeded(5)}, Writer{Pick: Seeded(6)}
	for range 60 {
		appendEvents(t, j, "c", w.Next()...)
		appendEvents(t, j, "other", other.Next()...)
	}
	n := int64(len(w.Log))
	// A read returns the events after the position, so it never contains the event at it.
	for _, after := range []int64{0, 1, n / 2, n - 1} {
		sameEvents(t, "tail", readAll(t, j, "c", after).Events, w.Log[after:])
	}
	for _, after := range []int64{n, n + 1, n + 1000} {
		if r := readAll(t, j, "c", after); len(r.Events) != 0 || r.Head != n {
			t.Errorf("after %d at head %d: %d events, head %d", after, n, len(r.Events), r.Head)
		}
	}
}

// testReadLimit reads a partly compacted log in pages of several sizes. No event may be missing, and no page may end inside a
// commit.
func testReadLimit(t *testing.T, open Open) {
	j := start(t, open)
	create(t, j, "c")
	w := Writer{Pick: Seeded(7)}
	commits := map[int64]bool{} // seqs after which a commit ends
	next := func() {
		events := w.Next()
		appendEvents(t, j, "c", events...)
		commits[int64(len(w.Log))] = true
	}
	// Compaction requires that no turn runs, so the first part ends with a turn.
	for len(w.Log) < 400 || w.Open > 0 {
		next()
	}
	upto := int64(len(w.Log))
	must(t, j.Compact(context.Background(), "c", upto))
	// The second part stays as written and may end inside a turn.
	for len(w.Log) < 800 {
		next()
	}
	complete := readAll(t, j, "c", 0)
	// The limit is in bytes. A page has at least one event, so a limit of 1 gives the smallest pages that there are.
	for _, limit := range []int{1, 100, 5000, 1 << 20} {
		var events []event.Event
		after, pages := int64(0), 0
		for {
			r, err := j.Read(context.Background(), "c", after, limit)
			must(t, err)
			if r.HasMore && len(r.Events) == 0 {
				t.Fatalf("limit %d: HasMore is set for an empty page", limit)
			}
			events = append(events, r.Events...)
			pages++
			if !r.HasMore {
				break
			}
			after = r.Events[len(r.Events)-1].Seq
			// In the compacted part commits no longer exist, so a page may end after any event there.
			if after > upto && !commits[after] {
				t.Fatalf("limit %d: a page ends at %d, inside a commit", limit, after)
			}
		}
		sameEvents(t, "pages", events, complete.Events)
		if limit == 1 && pages < 100 {
			t.Errorf("limit 1: only %d pages", pages)
		}
	}
}

// testReadWhile reads a log repeatedly while it grows and is compacted, as a reader with a cursor does. The three readers use
// different limits. No reader may get an event twice, or a gap in the events above Compacted, and each fold must equal the fold of
// the log.
func testReadWhile(t *testing.T, open Open) {
	j := start(t, open)
	create(t, j, "c")
	// Without truncates: a reader behind one can't continue from its cursor, but needs a snapshot, which journals don't have.
	w := Writer{Pick: Seeded(8), WholeTexts: true}
	finished := make(chan struct{})
	var readers sync.WaitGroup
	logs := make([][]event.Event, 3)
	for i := range logs {
		readers.Go(func() {
			var tr transcript.Transcript
			after := int64(0)
			// After the writer has finished, each reader reads once more, so that it ends with the whole log.
			for last := false; ; {
				r, err := j.Read(context.Background(), "c", after, 500*i)
				if err != nil {
					t.Error(err)
					return
				}
				for i := range r.Events {
					e := &r.Events[i]
					if e.Seq <= after || e.Seq > r.Head {
						t.Errorf("event %d in a read after %d with head %d", e.Seq, after, r.Head)
						return
					}
					// Compaction leaves out seqs, so gaps below Compacted are expected.
					if e.Seq > r.Compacted && e.Seq != after+1 && (i == 0 || r.Events[i-1].Seq > r.Compacted) {
						t.Errorf("gap before %d in the live part, compacted is %d", e.Seq, r.Compacted)
						return
					}
					after = e.Seq
					// The reader folds each event at once. An event that doesn't fit what the reader has so far fails here.
					if err := tr.Apply(e); err != nil {
						t.Error(err)
						return
					}
				}
				logs[i] = append(logs[i], r.Events...)
				if !r.HasMore {
					// If the last events of a range were compacted into earlier ones, the reader has all of the log without having
					// seen the seq of the head.
					after = max(after, r.Head)
				}
				if last && !r.HasMore {
					return
				}
				select {
				case <-finished:
					last = true
				default:
				}
			}
		})
	}
	for range 250 {
		appendEvents(t, j, "c", w.Next()...)
		if w.Open == 0 {
			if err := j.Compact(context.Background(), "c", int64(len(w.Log))); err != nil {
				t.Error(err)
			}
		}
	}
	close(finished)
	readers.Wait()
	for _, log := range logs {
		sameFold(t, "follower", log, w.Log)
	}
}
