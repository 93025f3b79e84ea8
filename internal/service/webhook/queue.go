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

// queue is what one hook has to be told.
type queue struct {
	h       *Hooks
	hook    Hook
	client  doer
	journal Journal
	log     *slog.Logger
	prefix  string // of its keys
	wake    chan struct{}

	mu       sync.Mutex // protects what follows
	window   *window
	inFlight int // deliveries that are out
	// behind says that the journal may hold deliveries that the window does not. Only a scan adds to it then, so that none
	// comes before an older one of its conversation.
	isBehind bool
	// While a scan runs, fresh is what was recorded meanwhile; missed says that it was too much.
	isScanning, overflow bool
	arrivals             []arrival
	// away counts failures in a row that say that the receiver is not there; until when it is left alone.
	failures    int
	pausedUntil time.Time
}

type arrival struct {
	conversation string
	ref          deliveryRef
}

const (
	// scanPage is how many deliveries a scan reads at once, maxFresh how many it remembers that come meanwhile.
	scanPage    = 256
	maxArrivals = 1024
	// scanAgain is the wait after a scan that failed.
	scanRetry = time.Second
)

func newQueue(h *Hooks, hook Hook, client doer) *queue {
	return &queue{
		h: h, hook: hook, client: client, journal: h.cfg.Journal, log: h.cfg.Log.With("hook", hook.Name), prefix: Prefix + hook.Name + "/",
		wake: make(chan struct{}, 1), window: newWindow(windowSize), isBehind: true,
	}
}

func (q *queue) encode(d *entry) (journal.KeyValue, error) {
	v, err := json.Marshal(d)
	return journal.KeyValue{Key: q.prefix + d.ID, Value: v, Expires: d.Queued + keyLifetime.Milliseconds(), Log: Log}, err
}

// recorded takes up what was recorded for this hook.
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
			q.isBehind, q.overflow = true, true // a scan finds what there is
			continue
		}
		added := arrival{d.Conversation, deliveryRef{id, d.Seq}}
		switch {
		case q.isScanning && len(q.arrivals) < maxArrivals:
			q.arrivals = append(q.arrivals, added)
		case q.isScanning:
			q.overflow = true
		case !q.isBehind:
			q.isBehind = !q.window.add(added.conversation, added.ref, time.Time{})
		}
	}
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run delivers until running ends, and returns when nothing is out any more. life ends when what is out has to be let go.
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

// take gives a delivery out that is ready. Where there is none it says how long it is until one may be, below 0 where only
// a signal tells.
func (q *queue) take() (*lane, deliveryRef, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.h.cfg.Metrics.Backlog.WithLabelValues(q.hook.Name).Set(float64(q.window.len()))
	limit := maxInFlight
	if q.failures > 0 {
		limit = 1 // one asks whether the receiver is there again
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

// done says that the delivery that is out need not be sent any more.
func (q *queue) finish(l *lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight--
	q.window.finish(l)
	q.signal()
}

// later says that the delivery that is out has to be sent again; at once, when its turn comes, where until is zero.
func (q *queue) reschedule(l *lane, notBefore time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight--
	q.window.reschedule(l, notBefore)
	q.signal()
}

func (q *queue) wantsScan() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.isBehind && q.window.len() <= q.window.max/2
}

// scan fills the window with the oldest deliveries of the journal.
func (q *queue) scan(ctx context.Context) error {
	q.mu.Lock()
	q.isScanning, q.overflow, q.arrivals = true, false, nil
	q.mu.Unlock()
	complete, err := q.loadWindow(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, arrival := range q.arrivals {
		complete = complete && q.window.add(arrival.conversation, arrival.ref, time.Time{})
	}
	q.isBehind = err != nil || !complete || q.overflow
	q.isScanning, q.arrivals = false, nil
	return err
}

// fill reads the journal until its end or until the window is full; whole says that it was the end.
func (q *queue) loadWindow(ctx context.Context) (complete bool, err error) {
	after := ""
	for {
		page, err := q.journal.KeysAfter(ctx, q.prefix, after, scanPage)
		if err != nil {
			return false, fmt.Errorf("list deliveries: %w", err)
		}
		for _, kv := range page {
			after = kv.Key
			var d entry
			if err := json.Unmarshal(kv.Value, &d); err != nil {
				q.log.Error("webhook: it is left out", "key", kv.Key, "error", fmt.Errorf("%w: %w", errStored, err))
				continue
			}
			var notBefore time.Time
			if d.Next > 0 {
				notBefore = earlier(time.UnixMilli(d.Next), time.Now().Add(maxAge)) // the clock may have been wrong then
			}
			q.mu.Lock()
			ok := q.window.add(d.Conversation, deliveryRef{strings.TrimPrefix(kv.Key, q.prefix), d.Seq}, notBefore)
			q.mu.Unlock()
			if !ok {
				return false, nil
			}
		}
		if len(page) < scanPage {
			return true, nil
		}
	}
}
