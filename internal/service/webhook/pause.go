package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

// pause is how long a receiver is left alone, as it is stored.
type pause struct {
	Failures int   `json:"failures"`
	ResumeAt int64 `json:"until"` // epoch milliseconds
}

func (q *queue) pauseKey() string { return "webhook-pause/" + q.hook.Name }

// restore takes up how the last run left the receiver.
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
	// A clock that was wrong then, or is now, does not silence a hook for ever.
	q.failures, q.pausedUntil = p.Failures, earlier(time.UnixMilli(p.ResumeAt), time.Now().Add(maxAge))
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// gone leaves the receiver alone for a while: longer with each failure in a row, and at least as long as it asked for.
// Those that were out at the same time count as one. It returns how many failures there were in a row.
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
		q.log.Warn("webhook: the pause is not written down", "error", err)
	}
	return p.Failures
}

// hold begins nothing for a while.
func (q *queue) delay(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if resumeAt := time.Now().Add(d); resumeAt.After(q.pausedUntil) {
		q.pausedUntil = resumeAt
	}
}

// back says that the receiver took something.
func (q *queue) endPause(ctx context.Context) {
	q.mu.Lock()
	// What was out when the receiver asked for a pause does not end it.
	ends := q.failures > 0 && !q.pausedUntil.After(time.Now())
	if ends {
		q.failures = 0
	}
	q.mu.Unlock()
	if !ends {
		return
	}
	q.log.Info("webhook: the receiver is there again")
	if err := q.write(ctx, journal.KeyValue{Key: q.pauseKey()}); err != nil && ctx.Err() == nil {
		q.log.Warn("webhook: the end of the pause is not written down", "error", err)
	}
}

func (q *queue) write(ctx context.Context, kv journal.KeyValue) error {
	return q.journal.Append(ctx, journal.Batch{Conversation: Log, Keys: []journal.KeyValue{kv}})
}
