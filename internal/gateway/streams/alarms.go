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

// alarms say when something is to be done for a subscription, by its key: its lease ends, or its webhook is sent.
type (
	alarms map[string]alarm
	// alarm is an entry of alarms.
	alarm struct {
		owner quota.Account
		at    int64 // epoch milliseconds; 0 means that only an append matters
	}
)

// next returns the time of a subscription's next alarm, or 0.
func (sub *subscription) next() int64 {
	if sub.Retry != 0 {
		return sub.Retry
	}
	return sub.LeaseEnd
}

// schedule notes the next alarm of a subscription, and wakes Run if it may be the first one.
func (s *Store) schedule(sub *subscription) {
	s.mu.Lock()
	s.alarms[sub.key()] = alarm{sub.owner(), sub.next()}
	s.mu.Unlock()
	s.kick()
}

// unschedule removes a subscription.
func (s *Store) unschedule(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.alarms, key)
}

// kick wakes Run.
func (s *Store) kick() {
	select {
	case s.kicked <- struct{}{}:
	default:
	}
}

// appended is called with each commit, so it only notes the stream, once, whatever happens until Run looks. Users
// without subscriptions cost a look at the list of alarms. appended tells the subscriptions of a stream's owner that
// the stream has grown. It doesn't wait for them.
func (s *Store) appended(owner quota.Account, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.alarms {
		if a.owner == owner {
			s.growth[touch{owner, path}] = true
			s.kick()
			return
		}
	}
}

// touch is a stream that has grown.
type touch struct {
	owner quota.Account
	path  string
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

// attend takes what was noted since the last call. Changes of subscriptions are stored one after another, each under
// the lock of its subscription, so that it never holds up requests for other ones. attend does what is due for
// subscriptions, and returns how long until the next alarm.
func (s *Store) attend(ctx context.Context) time.Duration {
	s.mu.Lock()
	growth := s.growth
	s.growth = map[touch]bool{}
	at, wait := time.Now().UnixMilli(), sweepEvery
	var due []string
	paths := map[string][]touch{} // by subscription
	for key, a := range s.alarms {
		switch {
		case a.at == 0:
		case a.at <= at:
			due = append(due, key)
		default:
			wait = min(wait, time.Duration(a.at-at)*time.Millisecond)
		}
		for t := range growth {
			if t.owner == a.owner {
				paths[key] = append(paths[key], t)
			}
		}
	}
	s.mu.Unlock()
	hasFailed := false
	for key, list := range paths {
		err := s.with(ctx, key, func(sub *subscription) error { return s.grow(ctx, sub, list) })
		if s.logFailure(ctx, err) {
			hasFailed = true
			for _, t := range list {
				s.appended(t.owner, t.path)
			}
		}
	}
	for _, key := range due {
		hasFailed = s.logFailure(ctx, s.ring(ctx, key)) || hasFailed
	}
	switch {
	case hasFailed:
		return retryAfter
	case len(paths)+len(due) > 0:
		return 0 // which may have changed the alarms
	}
	return wait
}

// retryAfter is how long Run waits after the journal has failed.
const retryAfter = time.Second

// logFailure logs the failure of a subscription, and reports whether it is to be tried again. A subscription that was
// deleted isn't.
func (s *Store) logFailure(ctx context.Context, err error) bool {
	var missing *SubscriptionError
	if err == nil || ctx.Err() != nil || errors.As(err, &missing) {
		return false
	}
	s.log.Warn("streams: subscription", "error", err)
	return true
}

// grow links the streams that match, and begins a wake.
func (s *Store) grow(ctx context.Context, sub *subscription, paths []touch) error {
	isConcerned := false
	for _, t := range paths {
		if sub.Links[t.path] == nil && sub.matches(t.path) {
			if err := sub.link(t.path, false, 0); err != nil {
				s.log.Warn("streams: subscription", "subscription", sub.ID, "error", err)
			}
		}
		isConcerned = isConcerned || sub.Links[t.path] != nil
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
