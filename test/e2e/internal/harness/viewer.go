//go:build e2e

package harness

import (
	"context"
	"sync"
	"testing"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
)

// Viewer follows a conversation, through restarts of the gateway, and records what it sees.
type Viewer struct {
	done chan struct{}
	stop context.CancelFunc

	mu      sync.Mutex
	items   []Item
	partial bool           // the transcript has older pages, which a viewer that starts from a snapshot doesn't receive
	ends    map[string]int // number of turn.end events, by turn
}

// View starts a viewer of a conversation. It stops with the test.
func (s *Client) View(t *testing.T, c string) *Viewer {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	v := &Viewer{done: make(chan struct{}), stop: stop, ends: map[string]int{}}
	go func() {
		defer close(v.done)
		_ = s.Follow(ctx, c, func(u leat.Update) error { // returns ctx's error when the viewer stops
			v.mu.Lock()
			defer v.mu.Unlock()
			v.items, v.partial = VisibleItems(u.Transcript), u.Transcript.Earlier
			for i := range u.Events {
				if u.Events[i].Type == event.TurnEnd {
					v.ends[u.Events[i].Turn]++
				}
			}
			return nil
		})
	}()
	t.Cleanup(v.Stop)
	return v
}

// Stop stops the viewer and waits for its goroutine.
func (v *Viewer) Stop() { v.stop(); <-v.done }

// Differs returns the differences between what the viewer sees and the whole conversation, and the turns whose end it received
// more than once.
func (v *Viewer) Differs(whole []Item) (faults, doubled []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for turn, n := range v.ends {
		if n > 1 {
			doubled = append(doubled, turn)
		}
	}
	if v.partial && len(v.items) > 0 {
		whole = whole[max(0, len(whole)-len(v.items)):]
	}
	return Compare(v.items, whole, func(Item) bool { return false }), doubled
}
