package exec

import (
	"time"

	"github.com/leat-dev/leat/agent"
)

// Hurry gives the agent's programs less time to end.
func Hurry(a agent.Agent, d time.Duration) {
	a.(*Agent).goodbye, a.(*Agent).killAfter = d, d
}
