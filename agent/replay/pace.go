package replay

import (
	"context"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/base/retry"
)

// pacer waits until frames are due. Each time is relative to the start of the playback and not to the previous frame,
// so that the time for decoding and committing doesn't accumulate. One goroutine uses it.
type pacer struct {
	// speed is the factor of the recorded pace. 0 means that no frame is waited for.
	speed   float64
	emitter *agent.Emitter
	// last is the recorded time of the previous frame, in Unix milliseconds. It is 0 before the first frame.
	last int64
	// due is when the previous frame was due. It is zero before the first wait.
	due time.Time
}

// wait blocks until the frame with the recorded time at is due. It returns the context's cause if the turn ends
// first. If at is 0, the frame has no recorded time and is due [defaultPace] after the previous one.
//
// A pause longer than aliveEvery reports progress in between: the recording is the agent's output, so its
// silence isn't a fault.
func (p *pacer) wait(ctx context.Context, at int64) error {
	start := time.Now()
	if p.due.IsZero() {
		p.due = start
	}
	step := defaultPace
	if at != 0 {
		// The first frame is due at once, and so is one that is older than its predecessor because the recorder's clock was set back.
		step = 0
		if p.last != 0 && at > p.last {
			step = time.Duration(at-p.last) * time.Millisecond
		}
		p.last = at
	}
	if p.speed == 0 {
		return context.Cause(ctx)
	}
	p.due = p.due.Add(time.Duration(float64(step) / p.speed))
	for {
		delay := time.Until(p.due)
		if delay <= 0 {
			return context.Cause(ctx)
		}
		if err := retry.Sleep(ctx, min(delay, aliveEvery)); err != nil {
			return err
		}
		p.emitter.ReportProgress()
	}
}
