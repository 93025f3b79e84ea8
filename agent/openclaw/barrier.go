package openclaw

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent"
)

// A conversation shows messages in the order in which they begin. If the connection was lost, a run that began later upstream may be read
// first; it is recorded only after the turns in progress whose runs came before it have begun.

// turnKey identifies a turn by its conversation and its key, see [agent.Input].
type turnKey struct{ conversation, key string }

// maxBegun bounds the turns that the agent remembers to have begun.
const maxBeginnings = 4096

// beginning returns a channel that is closed when the first message of a turn is durable, or when the turn ends without one. a.mu is held.
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

// expect registers the turn as one that has yet to begin. t.a.mu is held.
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

// markBegun marks the turn as one that has begun or has ended. t.a.mu is held.
func (t *turn) markBegun() {
	if !t.hasBegunMessage.Swap(true) {
		close(t.begins)
	}
}

// recordBegun makes the first message durable, or the end without one, and marks the turn.
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

// hasBegun reports whether any run of the turn has begun a message.
func (t *turn) hasBegun() bool {
	return slices.ContainsFunc(t.st.Runs, func(r *run) bool { return r.HasMessage })
}

// barrier is a run that has rows although its turn has not begun: the entries behind it wait.
type barrier struct {
	at     int // index of the first of these entries
	key    string
	begins chan struct{}
}

// notBegun returns the channel of a turn in progress that has not begun, or nil if there is no such turn. It counts a run that was recorded
// as one in progress although no turn is registered: after a restart the gateway calls Observe a little later.
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

// live reports whether the run of a key was in progress when it was recorded.
func (c *cursor) isInProgress(key string) bool { return slices.Contains(c.InProgress, key) }

// pass waits until the turn of a barrier has begun. If that turn waits for the session to be read, it can continue now: all that comes before
// it is recorded.
func (w *watch) awaitBarrier(ctx context.Context, conn *connection, b barrier) error {
	w.mu.Lock()
	w.progress.reachedTurn, w.progress.reachedLink = b.key, conn
	w.progress.notify()
	w.mu.Unlock()
	limit := time.NewTimer(catchUpLimit)
	defer limit.Stop()
	select {
	case <-b.begins:
	case <-limit.C: // the turn begins later, and nothing waits for it any more
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

// record records entries, those behind a barrier after the turn of the barrier has begun.
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

func (w *watch) addEntries(ctx context.Context, entries []agent.Entry, at cursor) error {
	b, err := json.Marshal(at)
	if err != nil {
		return err
	}
	if err := w.sessions.Add(ctx, w.conversation, entries, b); err != nil {
		return fmt.Errorf("record what happened: %w", err)
	}
	return nil
}
