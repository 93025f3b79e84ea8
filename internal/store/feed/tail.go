package feed

import (
	"sort"

	"github.com/leat-dev/leat/event"
)

// tail holds the events (from, from+len(events)], without holes. Slices of it may be read outside the feed's
// lock: what was added is never written again.
type tail struct {
	from   int64
	events []event.Event
	sums   []int64 // sums[i] is what events[:i+1] cost since some beginning
	bytes  int     // that the events take in memory, about
}

// add takes the next event. One before which there is a hole begins a new tail: what was in the hole was merged into a
// later event, and a reader that stands before the hole may need that too. A merged event is as good as any other: what
// went into it lay before from, or it would have left a hole.
func (t *tail) add(e *event.Event, maxEvents, maxBytes int) {
	if e.Seq != t.from+int64(len(t.events))+1 {
		t.reset(e.Seq - 1)
	}
	sum := cost(e)
	if n := len(t.sums); n > 0 {
		sum += t.sums[n-1]
	}
	t.events, t.sums = append(t.events, *e), append(t.sums, sum)
	t.bytes += memory(e)
	// Half as much again as allowed is let grow, so that one in many adds pays for the copy.
	if len(t.events) > maxEvents+maxEvents/2 || t.bytes > maxBytes+maxBytes/2 {
		t.shrink(maxEvents, maxBytes)
	}
}

func (t *tail) reset(from int64) { *t = tail{from: from} }

// shrink drops the oldest events beyond a count or a size. It copies, for others may be reading the old ones.
func (t *tail) shrink(maxEvents, maxBytes int) {
	n, bytes := 0, t.bytes
	for n < len(t.events) && (len(t.events)-n > maxEvents || bytes > maxBytes) {
		bytes -= memory(&t.events[n])
		n++
	}
	if n == 0 {
		return
	}
	t.from += int64(n)
	t.bytes = bytes
	room := (len(t.events)-n)*3/2 + 2 // until the next time
	t.events = append(make([]event.Event, 0, room), t.events[n:]...)
	t.sums = append(make([]int64, 0, room), t.sums[n:]...)
}

// drop forgets the events up to a seq.
func (t *tail) drop(upto int64) {
	if upto > t.from {
		t.shrink(max(0, len(t.events)-int(upto-t.from)), t.bytes)
		t.from = max(t.from, upto)
	}
}

// after returns the events that follow a seq at or above from, up to where they have cost the budget: one at least if
// there is one. A budget of 0 is none.
func (t *tail) after(seq int64, budget int) []event.Event {
	i := int(seq - t.from)
	n := len(t.events)
	if budget > 0 && i < n {
		dropped := t.sums[i] - cost(&t.events[i])
		n = min(n, i+1+sort.Search(n-i, func(k int) bool { return t.sums[i+k]-dropped >= int64(budget) }))
	}
	return t.events[i:n:n]
}

// cost is what an event adds to a merged batch, about, in bytes.
func cost(e *event.Event) int64 {
	n := len(e.Text) + len(e.Note)
	for _, h := range e.History {
		n += len(h)
	}
	if e.Type != event.PartAppend {
		n += 128
	}
	if b := e.Body; b != nil {
		n += 64 + len(b.Data)
		for i := range b.Parts {
			n += 64 + len(b.Parts[i].Text) + len(b.Parts[i].Data)
		}
		for k, v := range b.Metadata {
			n += len(k) + len(v)
		}
	}
	return int64(n) + 8
}

// memory is what an event takes in the tail, about, in bytes.
func memory(e *event.Event) int { return 200 + int(cost(e)) }
