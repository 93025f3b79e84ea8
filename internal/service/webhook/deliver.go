package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// The results of tries, as metrics name them.
const (
	resultDelivered   = "delivered"
	resultRefused     = "refused"
	resultUnreachable = "unreachable"
)

// errStored says that a delivery in the journal is not one.
var errStored = errors.New("webhook: a stored delivery can't be read")

// deliver tries the delivery that a lane has out, once, and writes down what became of it.
func (q *queue) deliver(ctx context.Context, l *lane, ref deliveryRef) {
	d, err := q.load(ctx, ref)
	switch {
	case errors.Is(err, journal.ErrNotFound): // expired, purged, or delivered before the scan that found it was over
		q.finish(l)
		return
	case errors.Is(err, errStored):
		q.log.Error("webhook: it is left out", "id", ref.id, "conversation", l.conversation, "error", err)
		q.finish(l)
		return
	case err != nil:
		q.stuck(ctx, l, err)
		return
	}
	start := time.Now()
	if start.Sub(time.UnixMilli(d.Queued)) >= maxAge {
		q.drop(ctx, l, d)
		return
	}
	b := d.Body
	if err := q.complete(ctx, &b); err != nil {
		q.stuck(ctx, l, err)
		return
	}
	a, err := send(ctx, q.client, &q.hook, &b)
	switch {
	case err != nil:
		q.stuck(ctx, l, err)
	case a.ok():
		q.h.cfg.Metrics.Tries.WithLabelValues(q.hook.Name, resultDelivered).Inc()
		q.endPause(ctx)
		q.forget(ctx, l, ref)
	case ctx.Err() != nil:
		q.reschedule(l, time.Time{}) // it was let go; the next start sends it again
	default:
		q.failed(ctx, l, d, a)
	}
}

func (q *queue) load(ctx context.Context, ref deliveryRef) (*entry, error) {
	v, err := q.journal.Get(ctx, q.prefix+ref.id)
	if err != nil {
		return nil, err
	}
	d := &entry{}
	if err := json.Unmarshal(v, d); err != nil {
		return nil, fmt.Errorf("%w: %w", errStored, err)
	}
	return d, nil
}

// complete adds to a body what its conversation says. Of one that was deleted there is nothing to add.
func (q *queue) complete(ctx context.Context, b *Body) error {
	if b.Type == event.MessageAdd && !q.hook.Content {
		return nil
	}
	err := q.h.transcripts(ctx, b.Conversation, func(t *transcript.Transcript) bool { return b.complete(t, q.hook.Content) })
	if err != nil {
		return fmt.Errorf("look at conversation %s: %w", b.Conversation, err)
	}
	return nil
}

// stuck has a delivery sent again after trouble of the gateway's own, which the receiver knows nothing of and which the
// others would meet too.
func (q *queue) stuck(ctx context.Context, l *lane, err error) {
	if ctx.Err() == nil {
		q.log.Warn("webhook can't be sent now", "conversation", l.conversation, "error", err)
	}
	q.delay(unreachableSchedule.Wait(1))
	q.reschedule(l, time.Time{})
}

// failed has a delivery sent again later.
func (q *queue) failed(ctx context.Context, l *lane, d *entry, a answer) {
	result := resultRefused
	if a.status == 0 {
		result = resultUnreachable
	}
	q.h.cfg.Metrics.Tries.WithLabelValues(q.hook.Name, result).Inc()
	if a.isOutage() {
		level := slog.LevelWarn
		if q.pauseReceiver(ctx, a.after) > 1 {
			level = slog.LevelInfo // that it is away was said
		}
		q.log.Log(ctx, level, "webhook: the receiver takes nothing now", "error", a.String())
	}
	if a.isOutage() && a.status == 0 {
		q.reschedule(l, time.Time{}) // it was not even sent, and waits with all others
		return
	}
	d.Attempts++
	next := time.Now().Add(max(refusedSchedule.Wait(d.Attempts), min(a.after, maxAge))) // later it would be given up unseen
	d.Next = next.UnixMilli()
	q.log.Info("webhook not taken; it is sent again", "id", d.ID, "type", d.Type, "conversation", d.Conversation, "attempt", d.Attempts, "next", next, "error", a.String())
	if err := q.update(ctx, d); errors.Is(err, journal.ErrNotFound) {
		q.finish(l) // it was purged meanwhile
		return
	} else if err != nil && ctx.Err() == nil {
		// Nothing is lost: only a restart would send it too early.
		q.log.Warn("webhook: the attempt is not written down", "id", d.ID, "error", err)
	}
	q.reschedule(l, next)
}

// update stores a delivery anew, if it is still there.
func (q *queue) update(ctx context.Context, d *entry) error {
	if _, err := q.journal.Get(ctx, q.prefix+d.ID); err != nil {
		return err
	}
	kv, err := q.encode(d)
	if err != nil {
		return err
	}
	return q.write(ctx, kv)
}

// drop gives a delivery up that nobody took for too long.
func (q *queue) drop(ctx context.Context, l *lane, d *entry) {
	q.h.cfg.Metrics.Drops.WithLabelValues(q.hook.Name).Inc()
	q.log.Error("webhook given up: nobody took it for 24 hours", "id", d.ID, "type", d.Type, "conversation", d.Conversation, "attempts", d.Attempts)
	q.forget(ctx, l, deliveryRef{d.ID, d.Seq})
}

// forget deletes a delivery that is over. It does not give up while the disk is full: what it would send again is over.
func (q *queue) forget(ctx context.Context, l *lane, ref deliveryRef) {
	for failures := 1; ; failures++ {
		err := q.write(ctx, journal.KeyValue{Key: q.prefix + ref.id})
		if err == nil {
			break
		}
		if ctx.Err() != nil || errors.Is(err, journal.ErrClosed) {
			q.log.Warn("webhook is delivered and may be again: it could not be crossed off", "id", ref.id, "error", err)
			break
		}
		q.log.Warn("webhook is delivered and can't be crossed off; trying again", "id", ref.id, "error", err)
		_ = retry.Sleep(ctx, unreachableSchedule.Wait(failures)) // the loop ends after the next write if ctx is done
	}
	q.finish(l)
}
