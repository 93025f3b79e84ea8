// Pauses of a receiver that can't be reached. They are stored, so that a restart doesn't begin with the shortest one again.

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/store/journal"
)

// pause is the stored state of a receiver that can't be reached, so that a restart doesn't begin with the shortest pause again.
type pause struct {
	Failures int   `json:"failures"`
	ResumeAt int64 `json:"until"` // epoch milliseconds
}

// pauseKey returns the key under which the pause is stored.
func (q *queue) pauseKey() string { return "webhook-pause/" + q.hook.Name }

// restore loads the pause that the previous process stored.
func (q *queue) restore(ctx context.Context) error {
	v, err := q.journal.Get(ctx, q.pauseKey())
	if errors.Is(err, journal.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("webhook: %s: %w", q.hook.Name, err)
	}
	var p pause
	if err := json.Unmarshal(v, &p); err != nil {
		return fmt.Errorf("webhook: %s: stored pause: %w", q.hook.Name, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	// The limit protects against a clock that was or is wrong.
	q.failures, q.pausedUntil = p.Failures, earlier(time.UnixMilli(p.ResumeAt), time.Now().Add(maxAge))
	return nil
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// pauseReceiver stops deliveries to the receiver for a while: longer with each consecutive failure, and at least as long as the
// receiver requested. Failures of deliveries that were in flight together count as one. It returns the number of consecutive
// failures.
func (q *queue) pauseReceiver(ctx context.Context, after time.Duration) (failures int) {
	q.mu.Lock()
	start := time.Now()
	if !q.pausedUntil.After(start) {
		q.failures++
	}
	resumeAt := start.Add(max(unreachableSchedule.Wait(q.failures), min(after, maxAge)))
	if resumeAt.Before(q.pausedUntil) {
		resumeAt = q.pausedUntil
	}
	q.pausedUntil = resumeAt
	p := pause{q.failures, resumeAt.UnixMilli()}
	q.mu.Unlock()
	v, err := json.Marshal(p)
	if err == nil {
		err = q.write(ctx, journal.KeyValue{Key: q.pauseKey(), Value: v, Expires: p.ResumeAt + maxAge.Milliseconds(), Log: Log})
	}
	if err != nil && ctx.Err() == nil {
		q.log.Warn("webhook: the pause can't be stored", "error", err)
	}
	return p.Failures
}

// delay starts no delivery for a while, without counting a failure of the receiver.
func (q *queue) delay(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if resumeAt := time.Now().Add(d); resumeAt.After(q.pausedUntil) {
		q.pausedUntil = resumeAt
	}
}

// endPause resets the failures after a successful delivery.
func (q *queue) endPause(ctx context.Context) {
	q.mu.Lock()
	// A delivery that was sent before the receiver requested a pause doesn't end that pause.
	ends := q.failures > 0 && !q.pausedUntil.After(time.Now())
	if ends {
		q.failures = 0
	}
	q.mu.Unlock()
	if !ends {
		return
	}
	q.log.Info("webhook: the receiver is reachable again")
	if err := q.write(ctx, journal.KeyValue{Key: q.pauseKey()}); err != nil && ctx.Err() == nil {
		q.log.Warn("webhook: the end of the pause can't be stored", "error", err)
	}
}

// write stores one key in the log of deliveries.
func (q *queue) write(ctx context.Context, kv journal.KeyValue) error {
	return q.journal.Append(ctx, journal.Batch{Conversation: Log, Keys: []journal.KeyValue{kv}})
}

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
