package webhook

import (
	"container/heap"
	"slices"
	"time"
)

// window is what is held in memory of one hook's deliveries: the oldest that wait, in a lane for each conversation. Of
// each lane one delivery is out at a time. It is pure: it is told the time, and whoever has it guards it.
type window struct {
	max     int // deliveries
	ids     map[string]bool
	lanes   map[string]*lane
	ready   []*lane
	delayed delays
}

// lane is the deliveries of one conversation in order, of which the first is to be sent next, or is out.
type lane struct {
	conversation string
	items        []deliveryRef
	busy         bool      // the first one is out
	notBefore    time.Time // not before
}

type deliveryRef struct {
	id  string
	seq int64
}

func newWindow(size int) *window {
	return &window{max: size, ids: map[string]bool{}, lanes: map[string]*lane{}}
}

func (w *window) len() int   { return len(w.ids) }
func (w *window) full() bool { return len(w.ids) >= w.max }

// add takes a delivery that may be sent at a time, and reports whether there was room. A known one changes nothing.
func (w *window) add(conversation string, ref deliveryRef, notBefore time.Time) bool {
	if w.ids[ref.id] {
		return true
	}
	if w.full() {
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

// take gives the delivery out that has been ready for the longest. ok is false where none is.
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

// next returns when a delivery will be ready; ok is false where none is waited for.
func (w *window) next(current time.Time) (at time.Time, ok bool) {
	switch {
	case len(w.ready) > 0:
		return current, true
	case len(w.delayed) > 0:
		return w.delayed[0].notBefore, true
	}
	return at, false
}

// done drops the delivery of a lane that was out. The next of the lane is ready then.
func (w *window) finish(l *lane) {
	delete(w.ids, l.items[0].id)
	l.items = slices.Delete(l.items, 0, 1)
	if len(l.items) == 0 {
		delete(w.lanes, l.conversation)
		return
	}
	w.reschedule(l, time.Time{})
}

// later has the delivery of a lane that was out sent again, not before a time.
func (w *window) reschedule(l *lane, notBefore time.Time) {
	l.busy, l.notBefore = false, notBefore
	// One that came before it may have been added while it was out.
	for i := 1; i < len(l.items) && l.items[i-1].seq > l.items[i].seq; i++ {
		l.items[i-1], l.items[i] = l.items[i], l.items[i-1]
	}
	if notBefore.IsZero() {
		w.ready = append(w.ready, l)
		return
	}
	heap.Push(&w.delayed, l)
}

// delays is a heap of lanes, the earliest first.
type delays []*lane

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
