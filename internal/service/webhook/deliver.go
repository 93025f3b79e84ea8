// One delivery: its body, the request, and what follows from the answer: done, again later, or given up.

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/base/signature"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// The results of attempts. They are values of a metric label.
const (
	resultDelivered   = "delivered"
	resultRefused     = "refused"
	resultUnreachable = "unreachable"
)

// errStored says that a stored delivery can't be decoded.
var errStored = errors.New("webhook: stored delivery can't be decoded")

// deliver makes one attempt to send the first delivery of a lane and records the result. The caller has taken the delivery with
// [queue.take]; deliver returns it with finish or reschedule in every case.
func (q *queue) deliver(ctx context.Context, l *lane, ref deliveryRef) {
	d, err := q.load(ctx, ref)
	switch {
	case errors.Is(err, journal.ErrNotFound): // expired, purged, or delivered while a scan was running
		q.finish(l)
		return
	case errors.Is(err, errStored):
		q.log.Error("webhook: delivery skipped", "id", ref.id, "conversation", l.conversation, "error", err)
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
		q.reschedule(l, time.Time{}) // aborted by Close; the next process sends it again
	default:
		q.failed(ctx, l, d, a)
	}
}

// load reads a stored delivery. It is read for each attempt, because a purge may have deleted it, and because the window holds only ids. If
// the value can't be decoded, the error wraps errStored.
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

// complete adds the conversation's data to a body. If the conversation was deleted, the body stays as it is.
func (q *queue) complete(ctx context.Context, b *Body) error {
	if b.Type == event.MessageAdd && !q.hook.Content {
		return nil
	}
	err := q.h.transcripts(ctx, b.Conversation, func(t *transcript.Transcript) bool { return b.complete(t, q.hook.Content) })
	if err != nil {
		return fmt.Errorf("read conversation %s: %w", b.Conversation, err)
	}
	return nil
}

// stuck reschedules a delivery after an error of the gateway itself, such as a failing journal. The receiver isn't affected,
// but other deliveries would meet the same error, so the whole queue is delayed.
func (q *queue) stuck(ctx context.Context, l *lane, err error) {
	if ctx.Err() == nil {
		q.log.Warn("webhook: delivery can't be prepared; retrying", "conversation", l.conversation, "error", err)
	}
	q.delay(unreachableSchedule.Wait(1))
	q.reschedule(l, time.Time{})
}

// failed reschedules a delivery that the receiver refused or that couldn't be sent. If the receiver as a whole is unavailable,
// the queue is paused too.
func (q *queue) failed(ctx context.Context, l *lane, d *entry, a answer) {
	result := resultRefused
	if a.status == 0 {
		result = resultUnreachable
	}
	q.h.cfg.Metrics.Tries.WithLabelValues(q.hook.Name, result).Inc()
	if a.isOutage() {
		level := slog.LevelWarn
		if q.pauseReceiver(ctx, a.after) > 1 {
			level = slog.LevelInfo // the outage was logged before
		}
		q.log.Log(ctx, level, "webhook: the receiver is unavailable", "error", a.String())
	}
	if a.isOutage() && a.status == 0 {
		q.reschedule(l, time.Time{}) // not sent, so it isn't counted as an attempt
		return
	}
	d.Attempts++
	next := time.Now().Add(max(refusedSchedule.Wait(d.Attempts), min(a.after, maxAge))) // a longer wait would exceed maxAge
	d.Next = next.UnixMilli()
	q.log.Info("webhook: delivery refused; retrying", "id", d.ID, "type", d.Type, "conversation", d.Conversation, "attempt", d.Attempts, "next", next, "error", a.String())
	if err := q.update(ctx, d); errors.Is(err, journal.ErrNotFound) {
		q.finish(l) // purged meanwhile
		return
	} else if err != nil && ctx.Err() == nil {
		// Harmless: after a restart the delivery might be sent too early.
		q.log.Warn("webhook: the attempt can't be stored", "id", d.ID, "error", err)
	}
	q.reschedule(l, next)
}

// update stores a delivery again unless it was deleted meanwhile.
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

// drop gives up a delivery after maxAge.
func (q *queue) drop(ctx context.Context, l *lane, d *entry) {
	q.h.cfg.Metrics.Drops.WithLabelValues(q.hook.Name).Inc()
	q.log.Error("webhook: delivery given up after 24 hours", "id", d.ID, "type", d.Type, "conversation", d.Conversation, "attempts", d.Attempts)
	q.forget(ctx, l, deliveryRef{d.ID, d.Seq})
}

// forget deletes a delivery that was sent or dropped. It retries while the disk is full, because the delivery would be sent
// again after a restart.
func (q *queue) forget(ctx context.Context, l *lane, ref deliveryRef) {
	for failures := 1; ; failures++ {
		err := q.write(ctx, journal.KeyValue{Key: q.prefix + ref.id})
		if err == nil {
			break
		}
		if ctx.Err() != nil || errors.Is(err, journal.ErrClosed) {
			q.log.Warn("webhook: delivery may be repeated after a restart, because it can't be deleted", "id", ref.id, "error", err)
			break
		}
		q.log.Warn("webhook: delivery can't be deleted; retrying", "id", ref.id, "error", err)
		_ = retry.Sleep(ctx, unreachableSchedule.Wait(failures)) // the loop ends after the next write if ctx is done
	}
	q.finish(l)
}

// The request of a delivery, with its signature, and what an answer means.

// IDHeader is the request header with the delivery's id. Receivers use it to detect repeated deliveries.
const IDHeader = "Leat-Webhook-Id"

// tryLimit limits one attempt, from the connection to the end of the answer.
const tryLimit = 10 * time.Second

// doer sends a request. *http.Client implements it.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// answer is the result of an attempt.
type answer struct {
	// status is the HTTP status, or 0 without an answer. err is the reason then.
	status int
	err    error
	// after is the wait that the receiver requested with Retry-After.
	after time.Duration
	// maybeSent means that a connection was made, so the receiver may have processed the request without an answer.
	maybeSent bool
}

// ok reports whether the receiver accepted the delivery.
func (a answer) ok() bool { return a.status/100 == 2 }

// isOutage reports whether the failure concerns the receiver as a whole, not just this delivery.
func (a answer) isOutage() bool {
	switch a.status {
	case 0:
		return !a.maybeSent
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// String describes the result for logs. It contains nothing from the receiver except the status.
func (a answer) String() string {
	if a.status == 0 {
		return a.err.Error()
	}
	return fmt.Sprintf("the receiver answered %d", a.status)
}

// send makes one attempt. The error means that no request could be built; failures of the request are in the answer.
func send(ctx context.Context, c doer, h *Hook, b *Body) (answer, error) {
	payload, err := json.Marshal(b)
	if err != nil {
		return answer{}, fmt.Errorf("encode: %w", err)
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(payload))
	if err != nil {
		return answer{}, outbound.Reason(err)
	}
	signedAt := time.Now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Leat")
	req.Header.Set(IDHeader, b.ID)
	req.Header.Set(signature.Header, signature.Sign(h.Secret, signedAt, payload))
	resp, err := c.Do(req)
	if err != nil {
		return answer{err: outbound.Reason(err), maybeSent: connected.Load()}, nil
	}
	defer resp.Body.Close()
	// The body is ignored, but it is read so that the connection can be reused.
	_, _ = io.Copy(io.Discard, resp.Body)
	return answer{status: resp.StatusCode, after: retry.After(resp.Header.Get("Retry-After"), signedAt)}, nil
}
