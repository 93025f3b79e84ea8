package status

import (
	"context"
	"time"
)

// healthEvery is how soon Watch notices.
const healthEvery = time.Second

// Watch tells of a change whenever what healthy says begins or ceases to be an error, which no event tells of. It returns when
// ctx ends.
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
