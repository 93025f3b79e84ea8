// The deliveries of a hook that are in memory, in lanes by conversation: order is kept within a lane only.

package webhook

import (
	"container/heap"
	"slices"
	"time"
)

// window holds the oldest waiting deliveries of one hook, in a lane for each conversation. Of each lane, one delivery is in
// flight at a time. It has no clock and no lock: callers pass the time and serialize the calls. Deliveries that don't fit stay
// in the journal, and the queue loads them when the window is half empty.
type window struct {
	max     int // maximum number of deliveries
	ids     map[string]bool
	lanes   map[string]*lane
	ready   []*lane
	delayed delays
}

// lane holds the deliveries of one conversation, in order of seq. The first is in flight or the next to be sent.
type lane struct {
	conversation string
	items        []deliveryRef
	busy         bool      // the first delivery is in flight
	notBefore    time.Time // earliest time of the next attempt
}

// deliveryRef identifies a delivery and its place in the lane. The rest is read from the journal when the delivery is sent.
type deliveryRef struct {
	id  string
	seq int64
}

func newWindow(size int) *window {
	return &window{max: size, ids: map[string]bool{}, lanes: map[string]*lane{}}
}

func (w *window) len() int { return len(w.ids) }

// add adds a delivery that is due at notBefore, and reports whether there was room. It ignores a delivery that is already in
// the window. Deliveries are sorted by seq within a lane, but none is inserted before the one in flight. notBefore only counts for a
// new lane: in an existing one the first delivery decides.
func (w *window) add(conversation string, ref deliveryRef, notBefore time.Time) bool {
	if w.ids[ref.id] {
		return true
	}
	if w.len() >= w.max {
		return false
	}
	w.ids[ref.id] = true
	l := w.lanes[conversation]
	if l == nil {
		l = &lane{conversation: conversation, notBefore: notBefore}
		w.lanes[conversation] = l
		heap.Push(&w.delayed, l)
	}
	start := 0
	if l.busy {
		start = 1
	}
	at := len(l.items)
	for at > start && l.items[at-1].seq > ref.seq {
		at--
	}
	l.items = slices.Insert(l.items, at, ref)
	return true
}

// take returns the delivery that has been due the longest and marks its lane as busy. ok is false if none is due.
func (w *window) take(at time.Time) (l *lane, ref deliveryRef, ok bool) {
	for len(w.delayed) > 0 && !w.delayed[0].notBefore.After(at) {
		w.ready = append(w.ready, heap.Pop(&w.delayed).(*lane))
	}
	if len(w.ready) == 0 {
		return nil, ref, false
	}
	l = w.ready[0]
	w.ready[0] = nil
	w.ready = w.ready[1:]
	l.busy = true
	return l, l.items[0], true
}

// next returns the time at which the next delivery is due. ok is false if none waits.
func (w *window) next(current time.Time) (at time.Time, ok bool) {
	switch {
	case len(w.ready) > 0:
		return current, true
	case len(w.delayed) > 0:
		return w.delayed[0].notBefore, true
	}
	return at, false
}

// finish removes the in-flight delivery of a lane. The next one of the lane is due immediately.
func (w *window) finish(l *lane) {
	delete(w.ids, l.items[0].id)
	l.items = slices.Delete(l.items, 0, 1)
	if len(l.items) == 0 {
		delete(w.lanes, l.conversation)
		return
	}
	w.reschedule(l, time.Time{})
}

// reschedule makes the in-flight delivery of a lane due again at notBefore.
func (w *window) reschedule(l *lane, notBefore time.Time) {
	l.busy, l.notBefore = false, notBefore
	// An older delivery may have been added meanwhile: move the first to its place.
	for i := 1; i < len(l.items) && l.items[i-1].seq > l.items[i].seq; i++ {
		l.items[i-1], l.items[i] = l.items[i], l.items[i-1]
	}
	if notBefore.IsZero() {
		w.ready = append(w.ready, l)
		return
	}
	heap.Push(&w.delayed, l)
}

// delays is a heap of lanes, earliest first. It implements [heap.Interface].
type delays []*lane

// The methods of heap.Interface.
func (d delays) Len() int           { return len(d) }
func (d delays) Less(i, j int) bool { return d[i].notBefore.Before(d[j].notBefore) }
func (d delays) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *delays) Push(x any)        { *d = append(*d, x.(*lane)) }
func (d *delays) Pop() any {
	old := *d
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	return l
}
