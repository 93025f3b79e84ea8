package webhook

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// For any order of arrivals and failures, each delivery is sent until it succeeds, one at a time per conversation, in order of
// seq among those present, never before its time, and the window never exceeds its size.
func TestWindowRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 12
		w := newWindow(size)
		now := time.Unix(1000, 0)
		waiting := map[string]int64{}   // id: seq
		where := map[string]string{}    // id: conversation
		until := map[string]time.Time{} // conversation: not before
		out := map[string]*lane{}       // by conversation
		outItem := map[string]string{}  // conversation: id
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				c := fmt.Sprint("c", rapid.IntRange(0, 3).Draw(t, "conversation"))
				it := deliveryRef{fmt.Sprint(next), rapid.Int64Range(1, 20).Draw(t, "seq")}
				next++
				var at time.Time
				if rapid.Bool().Draw(t, "later") {
					at = now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "wait")) * time.Second)
				}
				first := true
				for _, of := range where {
					first = first && of != c
				}
				if ok := w.add(c, it, at); ok != (len(waiting) < size) {
					t.Fatalf("added: %v, %d are there", ok, len(waiting))
				} else if !ok {
					return
				}
				waiting[it.id], where[it.id] = it.seq, c
				if first {
					until[c] = at
				}
				if !w.add(c, it, at) || w.len() != len(waiting) {
					t.Fatalf("%d are there, want %d", w.len(), len(waiting))
				}
			},
			"take": func(t *rapid.T) {
				l, it, ok := w.take(now)
				if !ok {
					for id, c := range where {
						if out[c] == nil && !until[c].After(now) {
							t.Fatalf("%s of %s is ready and was not given out", id, c)
						}
					}
					return
				}
				c := l.conversation
				if where[it.id] != c || out[c] != nil || until[c].After(now) {
					t.Fatalf("%s of %s went out (%v, another one %v, not before %v)", it.id, c, where[it.id], out[c] != nil, until[c])
				}
				for id, seq := range waiting {
					if where[id] == c && seq < it.seq {
						t.Fatalf("seq %d of %s went out before %d", it.seq, c, seq)
					}
				}
				out[c], outItem[c] = l, it.id
			},
			"done": func(t *rapid.T) {
				if len(out) == 0 {
					t.Skip("none is out")
				}
				c := rapid.SampledFrom(slices.Sorted(maps.Keys(out))).Draw(t, "of")
				w.finish(out[c])
				id := outItem[c]
				delete(waiting, id)
				delete(where, id)
				delete(out, c)
				until[c] = time.Time{}
			},
			"later": func(t *rapid.T) {
				if len(out) == 0 {
					t.Skip("none is out")
				}
				c := rapid.SampledFrom(slices.Sorted(maps.Keys(out))).Draw(t, "of")
				at := now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "wait")) * time.Second)
				if rapid.Bool().Draw(t, "at once") {
					at = time.Time{}
				}
				w.reschedule(out[c], at)
				delete(out, c)
				until[c] = at
			},
			"wait": func(*rapid.T) {
				if at, ok := w.next(now); ok && at.After(now) {
					now = at
				}
			},
			"": func(t *rapid.T) {
				if w.len() != len(waiting) || w.len() > size {
					t.Fatalf("%d are there, want %d", w.len(), len(waiting))
				}
				lanes := map[string]bool{}
				for _, c := range where {
					lanes[c] = true
				}
				if len(w.lanes) != len(lanes) || len(w.ready)+len(w.delayed)+len(out) != len(lanes) {
					t.Fatalf("%d lanes, %d ready, %d delayed, %d out; want %d", len(w.lanes), len(w.ready), len(w.delayed), len(out), len(lanes))
				}
			},
		})
	})
}
