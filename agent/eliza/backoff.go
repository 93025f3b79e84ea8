package eliza

import (
	"math"
	"math/rand/v2"
	"time"
)

// The waits between connections are those of Eliza's own clients.
const (
	minBackoff    = 500 * time.Millisecond
	backoffGrowth = 1.5
	maxBackoff    = 10 * time.Second
	// fastAttempts is the number of waits that grow; after them the socket only probes, every probeInterval.
	fastAttempts  = 15
	probeInterval = 30 * time.Second
)

// backoff computes the waits between connections. The zero value is ready to use.
type backoff struct{ failures int }

// next returns the wait after one more failure. It is up to a half shorter at random, so that many gateways don't come back
// at the same moment, and never longer than that of Eliza's clients.
func (b *backoff) next() time.Duration {
	d := min(time.Duration(float64(minBackoff)*math.Pow(backoffGrowth, float64(b.failures))), maxBackoff)
	if b.failures++; b.failures > fastAttempts {
		d = probeInterval
	}
	return d - rand.N(d/2)
}

func (b *backoff) reset() { b.failures = 0 }
