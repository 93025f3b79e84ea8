package letta

import (
	"context"
	"sync"
)

// latch is a condition that others wait for.
type latch struct {
	mu      sync.Mutex
	isSet   bool
	waiters chan struct{} // closed when the condition holds; nil if nobody waits
}

func (l *latch) update(isSet bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isSet = isSet
	if isSet && l.waiters != nil {
		close(l.waiters)
		l.waiters = nil
	}
}

// wait returns a channel that is closed when the condition holds.
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

// catchUp waits until a conversation shows what happened in its session so far. Readers see what comes in the order in which it is
// recorded, so that a run of another client that ended while its connection was lost has to be recorded before the next answer.
func (k *socketAgent) catchUp(ctx context.Context, conversation string) {
	k.mu.Lock()
	w := k.watches[conversation]
	k.mu.Unlock()
	if w == nil {
		return
	}
	select {
	case w.hurry <- struct{}{}:
	default: // an earlier request is still there
	}
	ctx, cancel := context.WithTimeout(ctx, k.times.catchUpLimit)
	defer cancel()
	select {
	case <-w.upToDate.wait():
	case <-w.finished:
	case <-ctx.Done(): // then it is shown later, behind the answer
	}
}
