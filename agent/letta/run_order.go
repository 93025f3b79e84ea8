package letta

import (
	"context"
	"slices"
	"time"
)

// The server answers one message of a session after the other, but each run is read over a separate connection. A run whose
// connection was lost would be shown behind the next one of its conversation, so the next one waits for it.

// enterOrder notes that the server has begun the talk's run, and waits until the runs before it are shown, or for as long as a session may
// take to be caught up with. exit has to follow.
func (k *socketAgent) enterOrder(ctx context.Context, w *socketTurn) {
	c := w.turn.in.Conversation
	k.mu.Lock()
	if w.shownDone != nil {
		k.mu.Unlock()
		return // it is in the line
	}
	w.shownDone = make(chan struct{})
	before := slices.Clone(k.runOrder[c])
	k.runOrder[c] = append(k.runOrder[c], w)
	k.mu.Unlock()
	limit := time.NewTimer(k.times.catchUpLimit)
	defer limit.Stop()
	for _, earlier := range before {
		select {
		case <-earlier.shownDone:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// leaveOrder notes that all of the talk's run is shown.
func (k *socketAgent) leaveOrder(w *socketTurn) {
	c := w.turn.in.Conversation
	k.mu.Lock()
	defer k.mu.Unlock()
	if w.shownDone == nil {
		return
	}
	close(w.shownDone)
	if k.runOrder[c] = slices.DeleteFunc(k.runOrder[c], func(other *socketTurn) bool { return other == w }); len(k.runOrder[c]) == 0 {
		delete(k.runOrder, c)
	}
}
