package webhook

import (
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
)

// maxPause is the longest pause for an unreachable receiver. It is short, because an attempt is cheap and all deliveries to the
// receiver wait for it.
const maxPause = time.Minute

var (
	// refusedSchedule is for a delivery that its receiver refuses. The maximum of an hour leaves at least 23 attempts in 24
	// hours.
	refusedSchedule = retry.Schedule{Initial: time.Second, Max: time.Hour, Jitter: true}
	// unreachableSchedule is for a receiver that can't be reached.
	unreachableSchedule = retry.Schedule{Initial: time.Second, Max: maxPause, Jitter: true}
)
