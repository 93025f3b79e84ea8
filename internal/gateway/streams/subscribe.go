// What users do with subscriptions.

package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Subscribe creates a subscription, or confirms that one with the same plan exists. base is the URL below which the
// streams are.
func (s *Store) Subscribe(ctx context.Context, p gateway.Principal, id string, plan Plan, base string) (view Subscription, isCreated bool, err error) {
	if err := isOpenTo(p, gateway.ActionCreate); err != nil {
		return view, false, err
	}
	if err := plan.check(id, p); err != nil {
		return view, false, err
	}
	if err := s.makeSigningKey(ctx); err != nil {
		return view, false, err
	}
	owner := p.Account()
	key := subscriptionKey(owner, id)
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return view, false, err
	}
	defer unlock()
	// A worker creates its subscription at each start, so most calls find it.
	sub, err := s.subscriptionOf(ctx, key)
	var missing *SubscriptionError
	switch {
	case err == nil:
		if !sub.Plan.equals(&plan) {
			return view, false, refuse(codeExists, "the subscription exists with another configuration")
		}
		view, err = s.view(ctx, sub)
		return view, false, err
	case !errors.As(err, &missing):
		return view, false, err
	}
	siblings, err := s.journal.KeysAfter(ctx, SubscriptionPrefix+digest(owner.Tenant, owner.Subject)+"/", "", maxSubscriptions)
	if err != nil {
		return view, false, gateway.JournalError("count subscriptions", err)
	}
	if len(siblings) >= maxSubscriptions {
		return view, false, full("a user may have %d subscriptions; delete some first", maxSubscriptions)
	}
	sub = &subscription{Tenant: owner.Tenant, Subject: owner.Subject, ID: id, Plan: plan, Base: base, Created: time.Now().UnixMilli(), Links: map[string]*link{}}
	if err := s.linkAll(ctx, sub); err != nil {
		return view, false, err
	}
	b, err := json.Marshal(sub)
	if err != nil {
		return view, false, fmt.Errorf("streams: subscription: %w", err)
	}
	if err := s.gw.Audit().PutKeys(ctx, journal.KeyValue{Key: key, Value: b}); err != nil {
		return view, false, gateway.JournalError("store subscription", err)
	}
	s.schedule(sub)
	view, err = s.view(ctx, sub)
	return view, true, err
}

// linkAll links the streams that a new subscription names, and those that match its pattern. Their existing data
// counts as processed.
func (s *Store) linkAll(ctx context.Context, sub *subscription) error {
	if err := s.linkExplicit(ctx, sub, sub.Plan.Streams); err != nil {
		return err
	}
	if sub.Plan.Pattern == "" {
		return nil
	}
	for kv, err := range journal.EachKey(ctx, s.journal.KeysAfter, ownerPrefix(sub.owner()), "", keyPage) {
		if err != nil {
			return gateway.JournalError("list streams", err)
		}
		var d description
		if err := json.Unmarshal(kv.Value, &d); err != nil {
			return fmt.Errorf("streams: description: %w", err)
		}
		if d.IsDeleted || !sub.matches(d.Path) {
			continue
		}
		about, err := s.peek(ctx, sub.owner(), d.Path)
		if err != nil {
			return err
		}
		if err := sub.link(d.Path, false, about.Tail); err != nil {
			return err
		}
	}
	return nil
}

// linkExplicit links streams that a user names, at their ends.
func (s *Store) linkExplicit(ctx context.Context, sub *subscription, paths []string) error {
	for _, path := range paths {
		about, err := s.peek(ctx, sub.owner(), path)
		if err != nil {
			return err
		}
		if err := sub.link(path, true, about.Tail); err != nil {
			return err
		}
	}
	return nil
}

// link adds a stream that is processed up to a position, or another reason for a stream that the subscription has.
func (sub *subscription) link(path string, isExplicit bool, acked int64) error {
	l := sub.Links[path]
	if l == nil {
		if len(sub.Links) >= maxLinks {
			return full("a subscription may have %d streams", maxLinks)
		}
		l = &link{Acked: acked}
		sub.Links[path] = l
	}
	l.IsExplicit, l.IsGlob = l.IsExplicit || isExplicit, l.IsGlob || !isExplicit
	return nil
}

// Subscription returns a subscription of a user.
func (s *Store) Subscription(ctx context.Context, p gateway.Principal, id string) (view Subscription, err error) {
	if err := isOpenTo(p, gateway.ActionRead); err != nil {
		return view, err
	}
	err = s.with(ctx, subscriptionKey(p.Account(), id), func(sub *subscription) (err error) {
		view, err = s.view(ctx, sub)
		return err
	})
	return view, err
}

// Unsubscribe doesn't wait for a webhook that is on its way: its answer finds no subscription. Unsubscribe deletes a subscription. What its workers send from then on is refused.
func (s *Store) Unsubscribe(ctx context.Context, p gateway.Principal, id string) error {
	if err := isOpenTo(p, gateway.ActionDelete); err != nil {
		return err
	}
	key := subscriptionKey(p.Account(), id)
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := s.subscriptionOf(ctx, key); err != nil {
		return err
	}
	s.unschedule(p.Account(), key)
	if err := s.gw.Audit().PutKeys(ctx, journal.KeyValue{Key: key}); err != nil {
		return gateway.JournalError("delete subscription", err)
	}
	return nil
}

// Link adds streams to a subscription.
func (s *Store) Link(ctx context.Context, p gateway.Principal, id string, paths []string) error {
	if err := isOpenTo(p, gateway.ActionWrite); err != nil {
		return err
	}
	for i := range paths {
		paths[i] = strings.Trim(paths[i], "/")
		if err := checkPath(paths[i]); err != nil {
			return refuse(CodeInvalid, "streams: %v", err)
		}
	}
	return s.with(ctx, subscriptionKey(p.Account(), id), func(sub *subscription) error { return s.linkExplicit(ctx, sub, paths) })
}

// Unlink removes a stream that a user has added to a subscription. It stays if the pattern matches it.
func (s *Store) Unlink(ctx context.Context, p gateway.Principal, id, path string) error {
	if err := isOpenTo(p, gateway.ActionWrite); err != nil {
		return err
	}
	return s.with(ctx, subscriptionKey(p.Account(), id), func(sub *subscription) error {
		if l := sub.Links[path]; l != nil {
			if l.IsExplicit = false; !l.IsGlob {
				delete(sub.Links, path)
			}
		}
		return nil
	})
}
