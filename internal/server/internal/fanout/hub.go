package fanout

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leat-dev/leat/internal/store/feed"
)

type hubKey struct {
	feed     *feed.Feed
	encoding feed.Encoding
}

// hub has the groups of the viewers that read a feed in one encoding.
type hub struct {
	pool *Pool
	key  hubKey
	// Ends the watch of the feed.
	stop func()

	mu        sync.Mutex
	isRemoved bool
	// Replaced under mu, read without it, because the feed wakes the hub with its lock held.
	groups atomic.Pointer[[]*group]
}

func (h *hub) list() []*group {
	if l := h.groups.Load(); l != nil {
		return *l
	}
	return nil
}

// wake makes workers poll the feed for all groups.
func (h *hub) wake() {
	for _, g := range h.list() {
		g.wake()
	}
}

// join adds an up-to-date viewer to a group with its cursor. If the groups have other cursors, because the feed has changed at this
// moment, the viewer waits for one of them and is run again.
func (p *Pool) join(v *Viewer) {
	for {
		h := p.hub(v.reader.Feed, v.encoding)
		h.mu.Lock()
		if h.isRemoved {
			h.mu.Unlock()
			continue
		}
		if !h.add(v) {
			g := newGroup(h, v)
			g.add(v)
			groups := append(slices.Clip(h.list()), g)
			h.groups.Store(&groups)
			g.wake() // the feed may have changed before the group was in the list
		}
		h.mu.Unlock()
		return
	}
}

// add adds a viewer to a group that has space. The caller holds mu.
func (h *hub) add(v *Viewer) bool {
	var other *group // at another cursor
	for _, g := range h.list() {
		switch g.add(v) {
		case added:
			return true
		case atOther:
			other = g
		}
	}
	if other == nil {
		return false
	}
	other.wait(v)
	return true
}

// prune removes a group without viewers, and the hub with its last group.
func (h *hub) prune(g *group) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !g.close() {
		return // a viewer has joined meanwhile
	}
	groups := slices.DeleteFunc(slices.Clone(h.list()), func(o *group) bool { return o == g })
	h.groups.Store(&groups)
	if len(groups) == 0 && !h.isRemoved {
		h.isRemoved = true
		h.pool.remove(h)
	}
}
