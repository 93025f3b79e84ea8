package letta

import (
	"context"
	"slices"
	"time"
)

// enterOrder notes that the server has started the turn's run, and waits until the earlier runs of the conversation are shown,
// for catchUpLimit at most.
//
// The server runs a session's messages one after the other, but Leat reads each run over a separate connection. Without the
// wait, a run that is being repaired after a lost connection would be shown after the run that followed it. leaveOrder has to
// be called when the run ends; calls after the first one do nothing.
func (k *socketAgent) enterOrder(ctx context.Context, w *socketTurn) {
	c := w.turn.in.Conversation
	k.mu.Lock()
	if w.shownDone != nil {
		k.mu.Unlock()
		return
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

// leaveOrder notes that the whole run is shown. It does nothing if enterOrder was not called.
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
