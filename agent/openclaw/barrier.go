// Whether a turn has begun upstream. A history that was read before the gateway accepted the message proves nothing about its turn.

package openclaw

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
)

// A conversation shows messages in the order in which they begin. After a lost connection, a watch may read a run from the history before a
// turn shows an older run. The watch then waits: it records the newer run after the turn has begun.

// turnKey identifies a turn by its conversation and its key, see [agent.Input].
type turnKey struct{ conversation, key string }

// maxBeginnings is how many turns are remembered as begun.
const maxBeginnings = 4096

// beginning returns a channel that is closed when the first message of a turn is durable, or when the turn ends without one. The
// turn and the watches that wait for it share the channel, whichever of them asks first. When the map is full it is cleared: a
// watch that finds no channel doesn't wait, so the worst result is two messages in reversed order. The caller holds a.mu.
func (a *gatewayAgent) beginning(k turnKey) chan struct{} {
	c := a.beginnings[k]
	if c == nil {
		if len(a.beginnings) >= maxBeginnings {
			clear(a.beginnings)
		}
		c = make(chan struct{})
		a.beginnings[k] = c
	}
	return c
}

// trackBeginning registers the turn as one that has yet to begin. A turn that is resumed after a restart may have begun before;
// its stored runs show that, and it is marked at once. The caller holds a.mu.
func (t *turn) trackBeginning() {
	t.begins = t.a.beginning(turnKey{t.in.Conversation, t.in.Key})
	select {
	case <-t.begins:
		t.hasBegunMessage.Store(true)
	default:
		if t.hasBegun() {
			t.markBegun()
		}
	}
}

// markBegun records that the turn has begun or ended. The caller holds a.mu.
func (t *turn) markBegun() {
	if !t.hasBegunMessage.Swap(true) {
		close(t.begins)
	}
}

// recordBegun makes the first message durable, or the end without one, and then marks the turn. Only durable order counts: a
// crash in between would otherwise reverse it.
func (t *turn) recordBegun() error {
	if t.hasBegunMessage.Load() {
		return nil
	}
	if err := t.emitter.Flush(); err != nil && !t.isEnded {
		return err
	}
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	t.markBegun()
	return nil
}

// hasBegun reports whether a run of the turn has begun a message.
func (t *turn) hasBegun() bool {
	return slices.ContainsFunc(t.st.Runs, func(r *run) bool { return r.HasMessage })
}

// barrier is a run that has rows although its turn has not begun. The entries after it have to wait for the turn.
type barrier struct {
	at     int // index of the first entry that waits
	key    string
	begins chan struct{}
}

// unbegunTurn returns the channel of a turn in progress that has not begun. If the turn has begun, or isn't known to be in
// progress, the result is nil. A run that was recorded as in progress counts even if no turn is registered: after a restart,
// Observe is called a little later.
func (w *watch) unbegunTurn(key string) chan struct{} {
	w.a.mu.Lock()
	defer w.a.mu.Unlock()
	k := turnKey{w.conversation, key}
	if w.a.beginnings[k] == nil && !w.cursor.isInProgress(key) {
		return nil
	}
	c := w.a.beginning(k)
	select {
	case <-c:
		return nil
	default:
		return c
	}
}

// isInProgress reports whether the run with that key was recorded while it was in progress.
func (c *cursor) isInProgress(key string) bool { return slices.Contains(c.InProgress, key) }

// awaitBarrier waits until the turn of a barrier has begun, at most catchUpLimit. Before it waits, it reports that everything up to the
// turn is recorded, because the turn may itself wait for this watch in catchUp.
func (w *watch) awaitBarrier(ctx context.Context, conn *connection, b barrier) error {
	w.mu.Lock()
	w.progress.reachedTurn, w.progress.reachedLink = b.key, conn
	w.progress.notify()
	w.mu.Unlock()
	limit := time.NewTimer(catchUpLimit)
	defer limit.Stop()
	select {
	case <-b.begins:
	case <-limit.C: // the turn begins later; further entries don't wait for it
		w.a.mu.Lock()
		delete(w.a.beginnings, turnKey{w.conversation, b.key})
		w.a.mu.Unlock()
	case <-conn.closed:
		return errLost
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// recordInOrder records entries. Those after a barrier are recorded after its turn has begun. Each group before a barrier is
// committed with the old cursor, and only the last group with the new one. If the process ends in between, the next read finds
// the same entries again, and Leat recognizes those that are recorded by their keys.
func (w *watch) recordInOrder(ctx context.Context, conn *connection, entries []agent.Entry, barriers []barrier, at cursor) error {
	from := 0
	for _, b := range barriers {
		if b.at == len(entries) {
			break // no entry is behind it
		}
		if b.at > from {
			if err := w.addEntries(ctx, entries[from:b.at], w.cursor); err != nil {
				return err
			}
			from = b.at
		}
		if err := w.awaitBarrier(ctx, conn, b); err != nil {
			return err
		}
	}
	return w.addEntries(ctx, entries[from:], at)
}

// addEntries records entries and the cursor in one commit.
func (w *watch) addEntries(ctx context.Context, entries []agent.Entry, at cursor) error {
	b, err := json.Marshal(at)
	if err != nil {
		return err
	}
	if err := w.sessions.Add(ctx, w.conversation, entries, b); err != nil {
		return fmt.Errorf("record entries: %w", err)
	}
	return nil
}
