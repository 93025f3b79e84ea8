package letta

import (
	"context"
	"slices"
	"time"
)

// The server answers one message of a session after the other, but each run is read over a separate connection. A run whose
// connection was lost would be shown behind the next one of its conversation, so the next one waits for it.

// enter notes that the server has begun the talk's run, and waits until the runs before it are shown, or for as long as a session may
// take to be caught up with. exit has to follow.
func (k *socket) enter(ctx context.Context, w *talk) {
	c := w.t.in.Conversation
	k.mu.Lock()
	if w.shown != nil {
		k.mu.Unlock()
		return // it is in the line
	}
	w.shown = make(chan struct{})
	before := slices.Clone(k.line[c])
	k.line[c] = append(k.line[c], w)
	k.mu.Unlock()
	limit := time.NewTimer(k.times.caughtUp)
	defer limit.Stop()
	for _, earlier := range before {
		select {
		case <-earlier.shown:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// exit notes that all of the talk's run is shown.
func (k *socket) exit(w *talk) {
	c := w.t.in.Conversation
	k.mu.Lock()
	defer k.mu.Unlock()
	if w.shown == nil {
		return
	}
	close(w.shown)
	if k.line[c] = slices.DeleteFunc(k.line[c], func(one *talk) bool { return one == w }); len(k.line[c]) == 0 {
		delete(k.line, c)
	}
}
