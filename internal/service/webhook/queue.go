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

	mu     sync.Mutex // protects what follows
	window *window
	out    int // deliveries that are out
	// behind says that the journal may hold deliveries that the window does not. Only a scan adds to it then, so that none
	// comes before an older one of its conversation.
	behind bool
	// While a scan runs, fresh is what was recorded meanwhile; missed says that it was too much.
	scanning, missed bool
	fresh            []recordedItem
	// away counts failures in a row that say that the receiver is not there; until when it is left alone.
	away  int
	until time.Time
}

type recordedItem struct {
	conversation string
	item         item
}

const (
	// scanPage is how many deliveries a scan reads at once, maxFresh how many it remembers that come meanwhile.
	scanPage = 256
	maxFresh = 1024
	// scanAgain is the wait after a scan that failed.
	scanAgain = time.Second
)

func newQueue(h *Hooks, hook Hook, client doer) *queue {
	return &queue{
		h: h, hook: hook, client: client, journal: h.cfg.Journal, log: h.cfg.Log.With("hook", hook.Name), prefix: Prefix + hook.Name + "/",
		wake: make(chan struct{}, 1), window: newWindow(windowSize), behind: true,
	}
}

func (q *queue) encode(d *entry) (journal.KeyValue, error) {
	v, err := json.Marshal(d)
	return journal.KeyValue{Key: q.prefix + d.ID, Value: v, Expires: d.Queued + keepKey.Milliseconds(), Log: Log}, err
}

// recorded takes up what was recorded for this hook.
func (q *queue) recorded(keys []journal.KeyValue, fate error) {
	if fate != nil && !errors.Is(fate, journal.ErrUnknown) {
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
		if err := json.Unmarshal(kv.Value, &d); err != nil || fate != nil {
			q.behind, q.missed = true, true // a scan finds what there is
			continue
		}
		it := recordedItem{d.Conversation, item{id, d.Seq}}
		switch {
		case q.scanning && len(q.fresh) < maxFresh:
			q.fresh = append(q.fresh, it)
		case q.scanning:
			q.missed = true
		case !q.behind:
			q.behind = !q.window.add(it.conversation, it.item, time.Time{})
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
func (q *queue) run(running, life context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := time.Duration(-1)
		if q.wantsScan() {
			if err := q.scan(running); err != nil && running.Err() == nil {
				q.log.Warn("webhooks: deliveries can't be read; trying again", "error", err)
				wait = scanAgain
			}
		}
		for running.Err() == nil {
			l, it, next := q.take()
			if l == nil {
				if next >= 0 && (wait < 0 || next < wait) {
					wait = next
				}
				break
			}
			workers.Go(func() { q.deliver(life, l, it) })
		}
		if wait >= 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-q.wake:
		case <-timer.C:
		case <-running.Done():
			return
		}
	}
}

// take gives a delivery out that is ready. Where there is none it says how long it is until one may be, below 0 where only
// a signal tells.
func (q *queue) take() (*lane, item, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.h.cfg.Metrics.Waiting.WithLabelValues(q.hook.Name).Set(float64(q.window.len()))
	most := inFlight
	if q.away > 0 {
		most = 1 // one asks whether the receiver is there again
	}
	if q.out >= most {
		return nil, item{}, -1
	}
	now := time.Now()
	if q.until.After(now) {
		return nil, item{}, q.until.Sub(now)
	}
	l, it, ok := q.window.take(now)
	if ok {
		q.out++
		return l, it, 0
	}
	if at, ok := q.window.next(now); ok {
		return nil, it, max(0, at.Sub(now))
	}
	return nil, it, -1
}

// done says that the delivery that is out need not be sent any more.
func (q *queue) done(l *lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out--
	q.window.done(l)
	q.signal()
}

// later says that the delivery that is out has to be sent again; at once, when its turn comes, where until is zero.
func (q *queue) later(l *lane, until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out--
	q.window.later(l, until)
	q.signal()
}

func (q *queue) wantsScan() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.behind && q.window.len() <= q.window.max/2
}

// scan fills the window with the oldest deliveries of the journal.
func (q *queue) scan(ctx context.Context) error {
	q.mu.Lock()
	q.scanning, q.missed, q.fresh = true, false, nil
	q.mu.Unlock()
	whole, err := q.fill(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range q.fresh {
		whole = whole && q.window.add(it.conversation, it.item, time.Time{})
	}
	q.behind = err != nil || !whole || q.missed
	q.scanning, q.fresh = false, nil
	return err
}

// fill reads the journal until its end or until the window is full; whole says that it was the end.
func (q *queue) fill(ctx context.Context) (whole bool, err error) {
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
			var until time.Time
			if d.Next > 0 {
				until = earlier(time.UnixMilli(d.Next), time.Now().Add(keep)) // the clock may have been wrong then
			}
			q.mu.Lock()
			ok := q.window.add(d.Conversation, item{strings.TrimPrefix(kv.Key, q.prefix), d.Seq}, until)
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
