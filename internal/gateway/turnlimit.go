package gateway

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
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
func (tn *turn) restoreClock(of *transcript.Turn) error {
	tn.clock.started = of.StartedAt
	for _, req := range of.Requests {
		if tn.clock.since == 0 || req.At < tn.clock.since {
			tn.clock.since = req.At
		}
	}
	g := tn.writer.g
	v, err := g.journal.Get(g.life, journalkey.TurnWaited(tn.id))
	if errors.Is(err, journal.ErrNotFound) {
		return nil
	}
	if err == nil {
		tn.clock.waited, err = strconv.ParseInt(string(v), 10, 64)
	}
	if err != nil {
		return fmt.Errorf("waiting time of turn %s: %w", tn.id, err)
	}
	return nil
}

// startClock starts the limit on how long the turn may run. A turn that was waiting when it was resumed starts it with its answer.
func (tn *turn) startClock() {
	limit := tn.writer.g.settings().TurnLimit
	tn.mu.Lock()
	defer tn.mu.Unlock()
	if tn.clock.started == 0 {
		tn.clock.started = now()
	}
	if limit < 0 {
		return
	}
	tn.clock.limit = limit
	tn.clock.timer = time.AfterFunc(max(tn.clock.left(), 0), tn.expire)
	if tn.clock.since != 0 {
		tn.clock.timer.Stop()
	}
}

// expire ends a turn that has run for too long.
func (tn *turn) expire() {
	tn.mu.Lock()
	left, waiting, limit := tn.clock.left(), tn.clock.since != 0, tn.clock.limit
	if !waiting && left > 0 && tn.clock.timer != nil {
		tn.clock.timer.Reset(left)
	}
	tn.mu.Unlock()
	if waiting || left > 0 || tn.isOver.Load() {
		return
	}
	e := &agent.Error{Code: codeTurnLimit, Message: fmt.Sprintf("the turn ran for %v, which is the limit", limit), Retryable: true}
	tn.writer.post(func(t *tx) error {
		tn.end(t, &event.Body{Outcome: event.Failed, Error: e.Shown()})
		return nil
	})
}

// pauseClock stops the clock when the turn begins to wait for a person.
func (tn *turn) pauseClock() {
	tn.mu.Lock()
	defer tn.mu.Unlock()
	if tn.clock.since != 0 {
		return
	}
	tn.clock.since = now()
	if tn.clock.timer != nil {
		tn.clock.timer.Stop()
	}
}

// resumeClock starts the clock again when the last request has its answer. It returns how long the turn has waited in total, in
// milliseconds.
func (tn *turn) resumeClock() int64 {
	tn.mu.Lock()
	defer tn.mu.Unlock()
	if tn.clock.since == 0 {
		return tn.clock.waited
	}
	tn.clock.waited += now() - tn.clock.since
	tn.clock.since = 0
	if tn.clock.timer != nil && !tn.isOver.Load() {
		tn.clock.timer.Reset(max(tn.clock.left(), 0))
	}
	return tn.clock.waited
}
