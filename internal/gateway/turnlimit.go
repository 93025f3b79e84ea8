package gateway

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// clock measures how long a turn has run, without the time that it waited for a person. It is guarded by its run's mu.
type clock struct {
	limit   time.Duration
	timer   *time.Timer // nil: there is no limit
	started int64       // epoch milliseconds
	waited  int64       // milliseconds
	since   int64       // when it began to wait for a person; 0: it runs
}

// left returns how long the turn may still run.
func (c *clock) left() time.Duration {
	return c.limit - time.Duration(now()-c.started-c.waited)*time.Millisecond
}

// restoreClock sets the clock of a turn that is resumed, so that a restart gives it no more time. The time without a gateway
// counts, because the upstream kept running.
func (r *run) restoreClock(turn *transcript.Turn) error {
	r.clock.started = turn.StartedAt
	for _, req := range turn.Requests {
		if r.clock.since == 0 || req.At < r.clock.since {
			r.clock.since = req.At
		}
	}
	v, err := r.writer.g.journal.Get(r.writer.g.life, journalkey.TurnWaited(r.id))
	if errors.Is(err, journal.ErrNotFound) {
		return nil
	}
	if err == nil {
		r.clock.waited, err = strconv.ParseInt(string(v), 10, 64)
	}
	if err != nil {
		return fmt.Errorf("waiting time of turn %s: %w", r.id, err)
	}
	return nil
}

// startClock starts the limit on how long the turn may run. A turn that was waiting when it was resumed starts it with its answer.
func (r *run) startClock() {
	limit := r.writer.g.settings().TurnLimit
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clock.started == 0 {
		r.clock.started = now()
	}
	if limit < 0 {
		return
	}
	r.clock.limit = limit
	r.clock.timer = time.AfterFunc(max(r.clock.left(), 0), r.expire)
	if r.clock.since != 0 {
		r.clock.timer.Stop()
	}
}

// expire ends a turn that has run for too long.
func (r *run) expire() {
	r.mu.Lock()
	left, waiting, limit := r.clock.left(), r.clock.since != 0, r.clock.limit
	if !waiting && left > 0 && r.clock.timer != nil {
		r.clock.timer.Reset(left)
	}
	r.mu.Unlock()
	if waiting || left > 0 || r.isOver.Load() {
		return
	}
	r.failTurn(&agent.Error{Code: codeTurnLimit, Message: fmt.Sprintf("the turn ran for %v, which is the limit", limit), Retryable: true})
}

// pauseClock stops the clock when the turn begins to wait for a person.
func (r *run) pauseClock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clock.since != 0 {
		return
	}
	r.clock.since = now()
	if r.clock.timer != nil {
		r.clock.timer.Stop()
	}
}

// resumeClock starts the clock again when the last request has its answer. It returns how long the turn has waited in total, in
// milliseconds.
func (r *run) resumeClock() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clock.since == 0 {
		return r.clock.waited
	}
	r.clock.waited += now() - r.clock.since
	r.clock.since = 0
	if r.clock.timer != nil && !r.isOver.Load() {
		r.clock.timer.Reset(max(r.clock.left(), 0))
	}
	return r.clock.waited
}
