package gateway

import (
	"context"
	"sync"
)

// turnstile is a mutex for each key. The zero value is ready to use.
type turnstile struct {
	mu     sync.Mutex
	inside map[string]chan struct{} // closed when the caller inside leaves
}

// enter waits until no other caller is inside with the same key. The caller is inside until it calls leave.
func (t *turnstile) enter(ctx context.Context, key string) (leave func(), err error) {
	// The loop is needed because several callers may wait for the same one: when it leaves, only one of them finds the key free.
	for {
		t.mu.Lock()
		before := t.inside[key]
		if before == nil {
			exit := make(chan struct{})
			if t.inside == nil {
				t.inside = map[string]chan struct{}{}
			}
			t.inside[key] = exit
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				defer t.mu.Unlock()
				delete(t.inside, key)
				close(exit)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
