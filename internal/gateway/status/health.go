package status

import (
	"context"
	"time"
)

// healthEvery is the interval at which Watch polls.
const healthEvery = time.Second

// Watch polls healthy and wakes those who wait on Changed when it begins or stops returning an error. Polling is needed because
// the gateway's own trouble, such as a full disk, commits no event. Watch returns when ctx ends.
func (a *Agent) Watch(ctx context.Context, healthy func() error) {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	was := healthy() == nil
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if is := healthy() == nil; is != was {
			was = is
			a.mu.Lock()
			a.tell()
			a.mu.Unlock()
		}
	}
}
