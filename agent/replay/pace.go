package replay

import (
	"context"
	"time"

	"github.com/leat-dev/leat/agent"
)

// pacer waits for frames' times. It keeps to the schedule of the whole, so that the time that decoding and committing
// take does not add up.
type pacer struct {
	speed   float64
	emitter *agent.Emitter
	last    int64 // time of the frame before, epoch milliseconds; 0 is none
	due     time.Time
}

// wait returns when the frame of that recorded time is due, or the context's cause.
func (p *pacer) wait(ctx context.Context, at int64) error {
	start := time.Now()
	if p.due.IsZero() {
		p.due = start
	}
	step := DefaultPace
	if at != 0 {
		// The first frame comes at once; a clock that was set back in the recording makes no pause.
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
		t := time.NewTimer(min(delay, aliveEvery))
		select {
		case <-t.C:
			p.emitter.ReportProgress()
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
}
