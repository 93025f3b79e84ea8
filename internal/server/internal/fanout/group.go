package fanout

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/internal/server/internal/outgoing"
	"github.com/leat-dev/leat/internal/store/feed"
)

// maxGroup is the largest number of viewers in a group. A larger crowd has several groups, which several workers serve at once.
const maxGroup = 512

// batchBudget is the approximate size of a batch in bytes. Viewers in a group are up to date, so their batches are far smaller.
const batchBudget = 1 << 20

// group is viewers with the same cursor.
type group struct {
	job
	hub  *hub
	feed *feed.Feed
	// Unix nanoseconds; when every viewer has been sent something since.
	wroteAt atomic.Int64
	// The feed's count of changed accesses at the last decisions about the viewers.
	accesses int64

	mu       sync.Mutex
	isClosed bool
	cursor   feed.Cursor
	viewers  []*Viewer
	// Up-to-date viewers at other cursors, to be run again after the group.
	latecomers []*Viewer
}

// newGroup returns a group at the position of a viewer.
func newGroup(h *hub, v *Viewer) *group {
	g := &group{hub: h, feed: h.key.feed, cursor: v.cursor, accesses: v.accesses}
	g.pool, g.runner = h.pool, g
	g.wroteAt.Store(time.Now().UnixNano())
	return g
}

// The results of add.
type addition int

const (
	added   addition = iota
	atOther          // the group has another cursor
	full             // or closed
)

// add adds a viewer that has the group's cursor.
func (g *group) add(v *Viewer) addition {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.isClosed || len(g.viewers) >= maxGroup || g.accesses != v.accesses:
		return full
	case g.cursor != v.cursor:
		return atOther
	}
	v.index = int32(len(g.viewers))
	v.group.Store(g)
	g.viewers = append(g.viewers, v)
	return added
}

// wait has a viewer run again after the group.
func (g *group) wait(v *Viewer) {
	g.mu.Lock()
	g.latecomers = append(g.latecomers, v)
	g.mu.Unlock()
	g.wake()
}

// leave removes a viewer from its group, if it is in one. The viewer has the group's cursor from then on.
func (v *Viewer) leave() {
	g := v.group.Load()
	if g == nil {
		return
	}
	g.mu.Lock()
	if v.group.Load() == g {
		last := g.viewers[len(g.viewers)-1]
		g.viewers[v.index], last.index = last, v.index
		g.viewers[len(g.viewers)-1] = nil
		g.viewers = g.viewers[:len(g.viewers)-1]
		v.cursor = g.cursor
		v.group.Store(nil)
	}
	isEmpty := len(g.viewers) == 0
	g.mu.Unlock()
	if isEmpty {
		g.hub.prune(g)
	}
}

// close marks a group without viewers as closed. It returns false if it has some.
func (g *group) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isClosed = g.isClosed || len(g.viewers) == 0 && len(g.latecomers) == 0
	return g.isClosed
}

// isSilent reports whether a heartbeat is due before the next check.
func (g *group) isSilent() bool {
	silence := time.Since(time.Unix(0, g.wroteAt.Load()))
	return silence > g.pool.heartbeat-g.pool.heartbeat/beatsPerInterval
}

// run writes what is new in the feed to all viewers.
func (g *group) run(bool) (needsSlow bool) {
	g.mu.Lock()
	for g.step() {
	}
	latecomers, isEmpty := g.latecomers, len(g.viewers) == 0
	g.latecomers = nil
	g.mu.Unlock()
	for _, v := range latecomers {
		v.wake()
	}
	if isEmpty {
		g.hub.prune(g)
	}
	return false
}

// step writes one batch. It returns false if the feed has none. The caller holds mu.
func (g *group) step() bool {
	if len(g.viewers) == 0 {
		return false
	}
	if g.feed.Access() != g.accesses {
		g.scatter()
		return false
	}
	b, ok, err := g.feed.PollTail(g.cursor, batchBudget)
	if b == nil && ok && err == nil {
		if frame := g.pool.heartbeats[g.hub.key.encoding]; frame != nil && g.isSilent() {
			g.write(frame, g.cursor)
		}
		return false
	}
	var frame []byte
	if ok && err == nil {
		frame, err = b.Encode(g.hub.key.encoding)
	}
	if !ok || err != nil {
		g.scatter()
		return false
	}
	before, measured := g.cursor, g.viewers[0].measured
	if n := g.write(frame, b.Cursor); n > 0 {
		measured.WroteAll(before, b, len(frame), n)
	}
	return true
}

// scatter lets each viewer continue by itself: it may need the log, another feed or a new decision about its access. The caller holds mu.
func (g *group) scatter() {
	for i, v := range g.viewers {
		g.viewers[i] = nil
		g.release(v, g.cursor)
		v.wake()
	}
	g.viewers = nil
}

// release ends the membership of a viewer that is no longer in the list. The caller holds mu.
func (g *group) release(v *Viewer, c feed.Cursor) {
	v.cursor = c
	v.group.Store(nil) // last: the viewer may run at once
}

// write writes a frame after which the cursor is next, and returns to how many viewers. The caller holds mu.
func (g *group) write(frame []byte, next feed.Cursor) (n int) {
	remaining := g.viewers[:0]
	for _, v := range g.viewers {
		state, err := v.sink.TryWrite(frame)
		if err == nil && state != outgoing.Busy {
			n++
			v.bytes += int64(len(frame))
		}
		switch {
		case err != nil:
			g.release(v, g.cursor)
			v.Cancel(ErrDisconnected)
		case state == outgoing.Complete:
			v.index = int32(len(remaining))
			remaining = append(remaining, v)
		case state == outgoing.Pending:
			g.release(v, next)
		default:
			g.release(v, g.cursor)
		}
	}
	clear(g.viewers[len(remaining):])
	g.viewers = remaining
	g.cursor = next
	g.wroteAt.Store(time.Now().UnixNano())
	return n
}
