package letta

import (
	"context"
	"sync"
)

// latch is a condition that goroutines can wait for. The zero value is false.
type latch struct {
	mu      sync.Mutex
	isSet   bool
	waiters chan struct{} // closed when the condition becomes true; nil without waiters
}

// update sets the condition, and wakes all waiters if it is true.
func (l *latch) update(isSet bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isSet = isSet
	if isSet && l.waiters != nil {
		close(l.waiters)
		l.waiters = nil
	}
}

// wait returns a channel that is closed as soon as the condition is true.
func (l *latch) wait() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiters == nil {
		l.waiters = make(chan struct{})
	}
	waiters := l.waiters
	if l.isSet {
		close(waiters)
		l.waiters = nil
	}
	return waiters
}

// catchUp waits until everything in the session's history is recorded in the conversation, for catchUpLimit at most. Readers
// see entries in the order in which they are recorded, so another client's run that ended while the watch was disconnected has
// to be recorded before the next answer. If the session isn't followed it returns at once.
func (k *socketAgent) catchUp(ctx context.Context, conversation string) {
	k.mu.Lock()
	w := k.watches[conversation]
	k.mu.Unlock()
	if w == nil {
		return
	}
	w.catchingUp.Add(1)
	defer w.catchingUp.Add(-1)
	select {
	case w.hurry <- struct{}{}:
	default: // already requested
	}
	ctx, cancel := context.WithTimeout(ctx, k.times.catchUpLimit)
	defer cancel()
	select {
	case <-w.upToDate.wait():
	case <-w.finished:
	case <-ctx.Done(): // then the run is shown after the answer
	}
}
