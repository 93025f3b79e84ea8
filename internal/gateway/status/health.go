package status

import (
	"context"
	"time"
)

// healthEvery is the interval at which Watch polls. Clients see a full disk, for example, at most that much later.
const healthEvery = time.Second

// Watch polls healthy, and closes the channel of Changed when healthy begins or stops to return an error. Polling is necessary because
// an error of the gateway itself, such as a full disk, commits no event. Watch returns when ctx ends.
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
