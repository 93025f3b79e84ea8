// The truncates that can be undone. The log keeps what they removed until it is compacted, so the compaction waits for a while.

package gateway

import (
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

// undoLimit is how long a truncate can be undone. Clients offer it for ten seconds; the rest is for slow connections.
const undoLimit = 20 * time.Second

// undo is what is known of the newest truncate of a conversation while it can be undone.
type undo struct {
	truncate int64 // its seq
	after    string
	sessions []journal.KeyValue // of agents, which it deleted
	timer    *time.Timer
}

// undos has the truncates that can be undone. They are only in memory: a restart makes them final.
type undos struct {
	compactor *compactor

	mu      sync.Mutex
	pending map[string]undo // by conversation
	closed  bool
}

// add makes a truncate undoable, instead of an earlier one of the conversation.
func (u *undos) add(conversation string, x undo) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.remove(conversation)
	if u.closed {
		return
	}
	x.timer = time.AfterFunc(undoLimit, func() { u.take(conversation, x.truncate) })
	u.pending[conversation] = x
	u.compactor.hold(conversation, true)
}

// get returns the undoable truncate with a seq.
func (u *undos) get(conversation string, truncate int64) (x undo, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	x, ok = u.pending[conversation]
	return x, ok && x.truncate == truncate
}

// take makes a truncate final. It does nothing if that is no longer the undoable one.
func (u *undos) take(conversation string, truncate int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pending[conversation].truncate == truncate {
		u.remove(conversation)
	}
}

// drop makes the undoable truncate of a conversation final.
func (u *undos) drop(conversation string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.remove(conversation)
}

// remove is drop with mu held.
func (u *undos) remove(conversation string) {
	if x, ok := u.pending[conversation]; ok {
		x.timer.Stop()
		delete(u.pending, conversation)
		u.compactor.hold(conversation, false)
	}
}

// close makes all truncates final, so that their logs are compacted before the gateway ends.
func (u *undos) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for conversation := range u.pending {
		u.remove(conversation)
	}
}
