package keylock

import (
	"context"
	"sync"
)

// Locks is a mutex for each key. The zero value is ready to use.
type Locks struct {
	mu      sync.Mutex
	holders map[string]chan struct{} // by key: closed when the holder unlocks it
}

// Lock waits until no other caller holds the key, or until ctx ends. The caller holds the key until it calls unlock.
func (l *Locks) Lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		l.mu.Lock()
		released, isHeld := l.holders[key]
		if !isHeld {
			if l.holders == nil {
				l.holders = map[string]chan struct{}{}
			}
			released = make(chan struct{})
			l.holders[key] = released
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.holders, key)
				close(released)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-released: // several callers may wait for it, and only one of them gets the key
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
