package gateway

import (
	"sync"
	"time"
)

// clock limits how long a turn may run, without the time that it waits for a person. Its methods may be called by several goroutines.
type clock struct {
	mu           sync.Mutex
	limit        time.Duration
	timer        *time.Timer // nil if there is no limit, or the turn's agent has returned
	startedAt    int64       // epoch milliseconds
	waitedMillis int64       // milliseconds
	since        int64       // when the turn began to wait for a person, epoch milliseconds; 0 if it doesn't wait
}

// restore sets the clock of a turn that is resumed, so that a restart gives it no more time. The time without a gateway counts,
// because the upstream kept running. since is 0 if the turn doesn't wait for a person.
func (c *clock) restore(startedAt, since, waitedMillis int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.startedAt, c.since, c.waitedMillis = startedAt, since, waitedMillis
}

// start starts the limit; expired is called, in a goroutine of its own, when the turn may have run for too long. A negative limit
// means that there is none. If the turn is waiting, the limit starts with resume.
func (c *clock) start(limit time.Duration, expired func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.startedAt == 0 {
		c.startedAt = nowMillis()
	}
	if limit < 0 {
		return
	}
	c.limit = limit
	c.timer = time.AfterFunc(max(c.remaining(), 0), expired)
	if c.since != 0 {
		c.timer.Stop()
	}
}

// remaining returns how long the turn may still run. c.mu is locked.
func (c *clock) remaining() time.Duration {
	return c.limit - time.Duration(nowMillis()-c.startedAt-c.waitedMillis)*time.Millisecond
}

// expired reports whether the limit is really exceeded, and returns the limit. If time is left, because the turn has waited since the timer
// was started, the timer is started again.
func (c *clock) expired() (limit time.Duration, exceeded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	remaining := c.remaining()
	if c.since == 0 && remaining > 0 && c.timer != nil {
		c.timer.Reset(remaining)
	}
	return c.limit, c.since == 0 && remaining <= 0
}

// pause stops the clock when the turn begins to wait for a person.
func (c *clock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since != 0 {
		return
	}
	c.since = nowMillis()
	if c.timer != nil {
		c.timer.Stop()
	}
}

// resume starts the clock again when the turn's last open request has its answer. It returns how long the turn has waited in total, in
// milliseconds. If the turn has ended meanwhile, its limit is not started again.
func (c *clock) resume(hasEnded bool) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since == 0 {
		return c.waitedMillis
	}
	c.waitedMillis += nowMillis() - c.since
	c.since = 0
	if c.timer != nil && !hasEnded {
		c.timer.Reset(max(c.remaining(), 0))
	}
	return c.waitedMillis
}

// stop stops the limit for good.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}
