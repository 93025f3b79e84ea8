package letta

import (
	"context"
	"sync"
)

// latch is a condition that others wait for.
type latch struct {
	mu     sync.Mutex
	is     bool
	opened chan struct{} // closed when the condition holds; nil if nobody waits
}

func (l *latch) set(is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.is = is
	if is && l.opened != nil {
		close(l.opened)
		l.opened = nil
	}
}

// wait returns a channel that is closed when the condition holds.
func (l *latch) wait() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil {
		l.opened = make(chan struct{})
	}
	opened := l.opened
	if l.is {
		close(opened)
		l.opened = nil
	}
	return opened
}

// catchUp waits until a conversation shows what happened in its session so far. Readers see what comes in the order in which it is
// recorded, so that a run of another client that ended while its connection was lost has to be recorded before the next answer.
func (k *socket) catchUp(ctx context.Context, conversation string) {
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
	ctx, cancel := context.WithTimeout(ctx, k.times.caughtUp)
	defer cancel()
	select {
	case <-w.caughtUp.wait():
	case <-w.done:
	case <-ctx.Done(): // then it is shown later, behind the answer
	}
}
