package exec

import (
	"time"

	"github.com/leat-dev/leat/agent"
)

// Hurry shortens the limits for the end of the agent's programs.
func Hurry(a agent.Agent, d time.Duration) {
	a.(*Agent).goodbye, a.(*Agent).killAfter = d, d
}
