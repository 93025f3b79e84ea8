// The deliveries of one hook in order. They are in the outbox on the disk, and a window of them is in memory.

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

// queue delivers to one hook. The goroutine of run starts deliveries; each delivery runs in a separate goroutine.
type queue struct {
	h       *Hooks
	hook    Hook
	client  doer
	journal Journal
	log     *slog.Logger
	prefix  string // prefix of the hook's keys
	wake    chan struct{}

	mu       sync.Mutex // protects the fields below
	window   *window
	inFlight int // number of requests in flight
	// isBehind means that the journal may hold deliveries that aren't in the window. Then only a scan adds to the window,
	// because a new delivery must not overtake an older one of its conversation.
	isBehind bool
	// While a scan runs, arrivals collects new deliveries. overflow means that some of them were not collected.
	isScanning, overflow bool
	arrivals             []arrival
	// failures is the number of consecutive failures to reach the receiver. No delivery starts before pausedUntil.
	failures    int
	pausedUntil time.Time
}

// arrival is a delivery committed during a scan.
type arrival struct {
	conversation string
	ref          deliveryRef
}

const (
	// scanPage is the number of deliveries that a scan reads at once. maxArrivals limits queue.arrivals.
	scanPage    = 256
	maxArrivals = 1024
	// scanRetry is the wait after a failed scan.
	scanRetry = time.Second
)

// newQueue returns a queue that starts with a scan, because the previous process may have left deliveries.
func newQueue(h *Hooks, hook Hook, client doer) *queue {
	return &queue{
		h: h, hook: hook, client: client, journal: h.cfg.Journal, log: h.cfg.Log.With("hook", hook.Name), prefix: Prefix + hook.Name + "/",
		wake: make(chan struct{}, 1), window: newWindow(windowSize), isBehind: true,
	}
}

// encode returns the key that stores a delivery.
func (q *queue) encode(d *entry) (journal.KeyValue, error) {
	v, err := json.Marshal(d)
	return journal.KeyValue{Key: q.prefix + d.ID, Value: v, Expires: d.Queued + keyLifetime.Milliseconds(), Log: Log}, err
}

// finishBatch adds the hook's committed deliveries to the window. If the result of the commit is unknown, it requests a scan,
// because only the journal knows whether they exist.
func (q *queue) finishBatch(keys []journal.KeyValue, commitErr error) {
	if commitErr != nil && !errors.Is(commitErr, journal.ErrUnknown) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, kv := range keys {
		id, ok := strings.CutPrefix(kv.Key, q.prefix)
		if !ok {
			continue
		}
		var d entry
		if err := json.Unmarshal(kv.Value, &d); err != nil || commitErr != nil {
			q.isBehind, q.overflow = true, true // the next scan finds what was stored
			continue
		}
		ref := deliveryRef{id, d.Seq}
		switch {
		case q.isScanning && len(q.arrivals) < maxArrivals:
			q.arrivals = append(q.arrivals, arrival{d.Conversation, ref})
		case q.isScanning:
			q.overflow = true
		case !q.isBehind:
			q.isBehind = !q.window.add(d.Conversation, ref, time.Time{})
		}
	}
	q.signal()
}

// signal wakes run. It never blocks: if a signal is pending already, run will see this change too.
func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run starts deliveries until dispatchCtx ends, and returns when none is in flight. When deliverCtx ends, requests in flight
// are aborted. Each round scans the journal if the window has room, starts every delivery that is due, and then waits for a signal or for
// the time of the next delivery.
func (q *queue) run(dispatchCtx, deliverCtx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := time.Duration(-1)
		if q.wantsScan() {
			if err := q.scan(dispatchCtx); err != nil && dispatchCtx.Err() == nil {
				q.log.Warn("webhooks: deliveries can't be read; trying again", "error", err)
				wait = scanRetry
			}
		}
		for dispatchCtx.Err() == nil {
			l, ref, next := q.take()
			if l == nil {
				if next >= 0 && (wait < 0 || next < wait) {
					wait = next
				}
				break
			}
			workers.Go(func() { q.deliver(deliverCtx, l, ref) })
		}
		if wait >= 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-q.wake:
		case <-timer.C:
		case <-dispatchCtx.Done():
			return
		}
	}
}

// take returns the next delivery that is due and counts it as in flight. If none is due, the lane is nil, and the duration is
// the time until one may be, or negative if only signal can change that. While the receiver is unreachable, one delivery at a
// time probes it.
func (q *queue) take() (*lane, deliveryRef, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.h.cfg.Metrics.Backlog.WithLabelValues(q.hook.Name).Set(float64(q.window.len()))
	limit := maxInFlight
	if q.failures > 0 {
		limit = 1 // a single probe until the receiver answers again
	}
	if q.inFlight >= limit {
		return nil, deliveryRef{}, -1
	}
	current := time.Now()
	if q.pausedUntil.After(current) {
		return nil, deliveryRef{}, q.pausedUntil.Sub(current)
	}
	l, ref, ok := q.window.take(current)
	if ok {
		q.inFlight++
		return l, ref, 0
	}
	if at, ok := q.window.next(current); ok {
		return nil, ref, max(0, at.Sub(current))
	}
	return nil, ref, -1
}

// finish removes the in-flight delivery of a lane. It was delivered or doesn't exist any more.
func (q *queue) finish(l *lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight--
	q.window.finish(l)
	q.signal()
}

// reschedule returns the in-flight delivery of a lane to the window, to be sent again at notBefore. If notBefore is zero, it is
// sent as soon as a slot is free.
func (q *queue) reschedule(l *lane, notBefore time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight--
	q.window.reschedule(l, notBefore)
	q.signal()
}

// wantsScan reports whether the window has room for deliveries that are only in the journal. It waits until the window is half
// empty, so that a long backlog isn't listed again after each delivery.
func (q *queue) wantsScan() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.isBehind && q.window.len() <= q.window.max/2
}

// scan fills the window with the oldest deliveries of the journal. The queue's lock isn't held while the journal is read.
// Deliveries committed meanwhile are added afterwards, unless they were too many; then another scan finds them.
func (q *queue) scan(ctx context.Context) error {
	q.mu.Lock()
	q.isScanning, q.overflow, q.arrivals = true, false, nil
	q.mu.Unlock()
	isComplete, err := q.loadWindow(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, arrival := range q.arrivals {
		isComplete = isComplete && q.window.add(arrival.conversation, arrival.ref, time.Time{})
	}
	q.isBehind = err != nil || !isComplete || q.overflow
	q.isScanning, q.arrivals = false, nil
	return err
}

// loadWindow adds deliveries from the journal until the window is full. complete means that it reached the end.
func (q *queue) loadWindow(ctx context.Context) (complete bool, err error) {
	for kv, err := range journal.EachKey(ctx, q.journal.KeysAfter, q.prefix, "", scanPage) {
		if err != nil {
			return false, fmt.Errorf("list deliveries: %w", err)
		}
		var d entry
		if err := json.Unmarshal(kv.Value, &d); err != nil {
			q.log.Error("webhook: delivery skipped", "key", kv.Key, "error", fmt.Errorf("%w: %w", errStored, err))
			continue
		}
		var notBefore time.Time
		if d.Next > 0 {
			notBefore = earlier(time.UnixMilli(d.Next), time.Now().Add(maxAge)) // the clock may have been wrong when it was stored
		}
		q.mu.Lock()
		ok := q.window.add(d.Conversation, deliveryRef{strings.TrimPrefix(kv.Key, q.prefix), d.Seq}, notBefore)
		q.mu.Unlock()
		if !ok {
			return false, nil
		}
	}
	return true, nil
}
