// When something is to be done for a subscription: a stream has grown, a lease ends, or a webhook is to be sent.

package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// watch is what is to be done for subscriptions. The zero value is ready to use. Store.mu protects it.
type watch struct {
	// By key of a subscription, when its lease ends or its webhook is sent, epoch milliseconds. 0 means that only an
	// append matters.
	alarms map[string]int64
	// The earliest alarm, or an earlier time. It saves a look at all of them for each append.
	earliest int64
	// The keys of each user's subscriptions, and the paths of its streams that have grown since Run looked.
	subscribers, growth map[quota.Account]map[string]bool
}

// add adds a text to the set of a user.
func add(sets *map[quota.Account]map[string]bool, owner quota.Account, text string) {
	if *sets == nil {
		*sets = map[quota.Account]map[string]bool{}
	}
	if (*sets)[owner] == nil {
		(*sets)[owner] = map[string]bool{}
	}
	(*sets)[owner][text] = true
}

// next returns the time of a subscription's next alarm, or 0.
func (sub *subscription) next() int64 {
	if sub.Retry != 0 {
		return sub.Retry
	}
	return sub.LeaseEnd
}

// schedule notes the next alarm of a subscription, and wakes Run if it has changed.
func (s *Store) schedule(sub *subscription) {
	key, at := sub.key(), sub.next()
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.watch
	if old, isKnown := w.alarms[key]; isKnown && old == at {
		return
	}
	if w.alarms == nil {
		w.alarms = map[string]int64{}
	}
	w.alarms[key] = at
	if at != 0 && (w.earliest == 0 || at < w.earliest) {
		w.earliest = at
	}
	add(&w.subscribers, sub.owner(), key)
	s.kick()
}

// unschedule removes a subscription.
func (s *Store) unschedule(owner quota.Account, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.watch
	delete(w.alarms, key)
	delete(w.subscribers[owner], key)
	if len(w.subscribers[owner]) == 0 {
		delete(w.subscribers, owner)
		delete(w.growth, owner)
	}
}

// kick wakes Run.
func (s *Store) kick() {
	select {
	case s.kicked <- struct{}{}:
	default:
	}
}

// appended is called with each commit, so it only notes the stream, once, whatever happens until Run looks. It costs
// nothing for users without subscriptions. appended tells the subscriptions of a stream's owner that the stream has
// grown. It doesn't wait for them.
func (s *Store) appended(owner quota.Account, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watch.subscribers[owner]) > 0 {
		add(&s.watch.growth, owner, path)
		s.kick()
	}
}

// loadSubscriptions schedules the stored subscriptions. Those that have no wake look for what was appended before the
// process ended.
func (s *Store) loadSubscriptions(ctx context.Context) error {
	for kv, err := range journal.EachKey(ctx, s.journal.KeysAfter, SubscriptionPrefix, "", keyPage) {
		if err != nil {
			return gateway.JournalError("read subscriptions", err)
		}
		var sub subscription
		if err := json.Unmarshal(kv.Value, &sub); err != nil {
			return fmt.Errorf("streams: subscription: %w", err)
		}
		s.schedule(&sub)
		for d, err := range journal.EachKey(ctx, s.journal.KeysAfter, ownerPrefix(sub.owner()), "", keyPage) {
			if err != nil {
				return gateway.JournalError("list streams", err)
			}
			var about description
			if err := json.Unmarshal(d.Value, &about); err != nil {
				return fmt.Errorf("streams: description: %w", err)
			}
			s.appended(sub.owner(), about.Path)
		}
	}
	return nil
}

// due is a subscription for which something is to be done.
type due struct {
	owner quota.Account
	key   string
	// The streams that have grown; nil for an alarm.
	paths map[string]bool
}

// take returns what is to be done at a time, and how long until the next alarm after that.
func (w *watch) take(at int64) (list []due, wait time.Duration) {
	wait = sweepEvery
	for owner, paths := range w.growth {
		for key := range w.subscribers[owner] {
			list = append(list, due{owner, key, paths})
		}
	}
	w.growth = nil
	if w.earliest == 0 || w.earliest > at {
		if w.earliest != 0 {
			wait = min(wait, time.Duration(w.earliest-at)*time.Millisecond)
		}
		return list, wait
	}
	w.earliest = 0
	for owner, keys := range w.subscribers {
		for key := range keys {
			switch alarm := w.alarms[key]; {
			case alarm == 0:
			case alarm <= at:
				list = append(list, due{owner, key, nil})
			case w.earliest == 0 || alarm < w.earliest:
				w.earliest = alarm
			}
		}
	}
	if w.earliest != 0 {
		wait = min(wait, time.Duration(w.earliest-at)*time.Millisecond)
	}
	return list, wait
}

// attend takes what was noted since the last call. Changes of subscriptions are stored one after another, each under
// the lock of its subscription, so that it never holds up requests for other ones. attend does what is due for
// subscriptions, and returns how long until the next alarm. What fails is tried again after a while.
func (s *Store) attend(ctx context.Context) time.Duration {
	s.mu.Lock()
	list, wait := s.watch.take(time.Now().UnixMilli())
	s.mu.Unlock()
	for _, d := range list {
		var err error
		if d.paths != nil {
			err = s.with(ctx, d.key, func(sub *subscription) error { return s.grow(ctx, sub, d.paths) })
		} else {
			err = s.ring(ctx, d.key)
		}
		var coded *SubscriptionError
		switch {
		case errors.As(err, &coded):
			s.unschedule(d.owner, d.key) // it was deleted
		case s.logFailure(ctx, err):
			wait = min(wait, retryAfter)
			s.repeat(d)
		}
	}
	return wait
}

// repeat notes again what has failed, for the next call of attend.
func (s *Store) repeat(d due) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path := range d.paths {
		add(&s.watch.growth, d.owner, path)
	}
	if d.paths == nil {
		s.watch.earliest = 1 // so that all alarms are looked at
	}
}

// retryAfter is how long Run waits after the journal has failed.
const retryAfter = time.Second

// logFailure logs the failure of a subscription, and reports whether there was one. The end of the process doesn't
// count, and neither does a subscription that was deleted meanwhile.
func (s *Store) logFailure(ctx context.Context, err error) bool {
	var coded *SubscriptionError
	if err == nil || ctx.Err() != nil || errors.As(err, &coded) {
		return false
	}
	s.log.Warn("streams: subscription", "error", err)
	return true
}

// grow links the streams that match, and begins a wake.
func (s *Store) grow(ctx context.Context, sub *subscription, paths map[string]bool) error {
	isConcerned := false
	for path := range paths {
		if sub.Links[path] == nil && sub.matches(path) {
			if err := sub.link(path, false, 0); err != nil {
				s.log.Warn("streams: subscription", "subscription", sub.ID, "error", err)
			}
		}
		isConcerned = isConcerned || sub.Links[path] != nil
	}
	if !isConcerned {
		return nil
	}
	_, err := s.wakeUp(ctx, sub)
	return err
}

// ring does what an alarm is for: it ends a lease, or sends a webhook.
func (s *Store) ring(ctx context.Context, key string) error {
	var send *subscription
	err := s.with(ctx, key, func(sub *subscription) error {
		at := time.Now().UnixMilli()
		switch {
		case sub.Retry != 0 && sub.Retry <= at:
			sub.Retry, sub.LeaseEnd = 0, at+sub.Plan.LeaseMillis
			copied := *sub
			send = &copied
		case sub.Retry == 0 && sub.LeaseEnd != 0 && sub.LeaseEnd <= at:
			_, err := s.end(ctx, sub)
			return err
		}
		return nil
	})
	if err != nil || send == nil {
		return err
	}
	s.deliveries.Go(func() { s.logFailure(ctx, s.deliver(ctx, send)) })
	return nil
}
