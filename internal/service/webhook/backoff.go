package webhook

import (
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
)

// maxPause is the longest pause for a receiver that can't be reached. A request that fails is cheap, and all deliveries to the
// receiver wait for the next one.
const maxPause = time.Minute

var (
	// refused is the schedule of a delivery that its receiver refuses. An hour at most still leaves some attempts in 24 hours.
	refusedSchedule = retry.Schedule{Initial: time.Second, Max: time.Hour, Jitter: true}
	// unreachable is the schedule of a receiver that can't be reached.
	unreachableSchedule = retry.Schedule{Initial: time.Second, Max: maxPause, Jitter: true}
)
