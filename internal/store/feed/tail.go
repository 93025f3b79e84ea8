// The recent events of a feed. Old ones are dropped at the limits; readers behind them read the log.

package feed

import (
	"sort"

	"github.com/leat-dev/leat/event"
)

// tail holds consecutive events (from, from+len(events)]. Slices of it may be read without the feed's lock, because added events
// are never overwritten.
type tail struct {
	from   int64
	events []event.Event
	sums   []int64 // sums[i] is the total cost up to events[i], from some starting point
	bytes  int     // approximate memory of the events
}

// add appends the next event. If its seq leaves a gap, a new tail begins there: events in the gap were merged into a later one, and
// a reader before the gap may need them too. A merged event without a gap is added like any other, because everything merged into
// it lies before from.
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
	// The tail may grow to one and a half times its limit, so that only some calls copy it.
	if len(t.events) > maxEvents+maxEvents/2 || t.bytes > maxBytes+maxBytes/2 {
		t.shrink(maxEvents, maxBytes)
	}
}

// reset empties the tail and lets it begin after from.
func (t *tail) reset(from int64) { *t = tail{from: from} }

// shrink drops the oldest events beyond the limits. It copies the others, because readers may be using the old slice.
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
	room := (len(t.events)-n)*3/2 + 2 // room until the next shrink
	t.events = append(make([]event.Event, 0, room), t.events[n:]...)
	t.sums = append(make([]int64, 0, room), t.sums[n:]...)
}

// after returns the events after a seq, up to a cost of budget, but at least one if there is one. A budget of 0 means no limit. seq
// must not be below from.
func (t *tail) after(seq int64, budget int) []event.Event {
	i := int(seq - t.from)
	n := len(t.events)
	if budget > 0 && i < n {
		before := t.sums[i] - cost(&t.events[i])
		n = min(n, i+1+sort.Search(n-i, func(k int) bool { return t.sums[i+k]-before >= int64(budget) }))
	}
	return t.events[i:n:n]
}

// cost is the approximate size that an event adds to a merged batch, in bytes.
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

// memory is the approximate memory that an event takes in the tail, in bytes.
func memory(e *event.Event) int { return 200 + int(cost(e)) }
