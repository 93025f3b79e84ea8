package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Delete returns when no file of the journal has the data any more, and clients can't read it from the beginning of the call on. If the
// process ends in between, Run completes the deletion. Delete deletes a stream with its data. If it has forks, they keep the data, and the path can't be used until they
// are deleted.
func (s *Store) Delete(ctx context.Context, p gateway.Principal, path string) error {
	if err := isOpenTo(p, gateway.ActionDelete); err != nil {
		return err
	}
	d, err := s.delete(ctx, p, keyOf(p.Account(), path))
	if err != nil {
		return err
	}
	return s.collectAll(ctx, d.sourceKey())
}

// delete is Delete without the sources of a fork, whose locks must not be taken while that of the fork is rejection.
func (s *Store) delete(ctx context.Context, p gateway.Principal, key string) (d description, err error) {
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return d, err
	}
	defer unlock()
	st, err := s.open(ctx, key)
	if err != nil {
		return d, err
	}
	defer s.release(st)
	d = st.about
	return d, s.remove(ctx, st, p, "delete")
}

// remove deletes a stream whose lock the caller holds, unless a legal hold protects it. action is "delete" or
// "expire". A stream with forks stays as deleted. The audit entry is stored before the stream is gone, because the
// deletion of a log can't be in one commit with a key.
func (s *Store) remove(ctx context.Context, st *state, p gateway.Principal, action string) error {
	about := st.about
	entry := audit.Entry{Action: "stream." + action, Actor: gateway.Actor(ctx, p), Tenant: about.Tenant, Subject: about.Subject}
	if action == "expire" {
		entry.Actor = audit.Actor{Gateway: "streams"}
	}
	free, err := s.gw.Holds().Removing(journal.Summary{ID: about.ID, Tenant: about.Tenant, Owner: about.Subject})
	if err != nil {
		if action == "expire" {
			return err // which each request for the stream would repeat
		}
		entry.Result = gateway.ReasonHeld
		return errors.Join(err, s.gw.Audit().Record(ctx, entry))
	}
	defer free()
	note, err := s.gw.Audit().Note(entry)
	if err != nil {
		return err
	}
	// No fork can be added meanwhile, because that needs the lock of its source.
	hasForks, err := s.hasForks(ctx, about.ID)
	if err != nil {
		return err
	}
	about.IsDeleted = true
	// The commit also marks the stream as deleted if it has no forks, so that an interrupted deletion is completed by
	// Run.
	if err := s.commit(ctx, st, change{about: &about, keys: []journal.KeyValue{note}}); err != nil {
		return err
	}
	s.gw.Audit().Wake()
	if hasForks {
		s.drop(st, ErrGone)
		return nil
	}
	return s.erase(ctx, st)
}

// erase removes the data of a stream. The caller holds its lock.
func (s *Store) erase(ctx context.Context, st *state) error {
	s.drop(st, gateway.ErrNotFound)
	// Readers are woken before, so that none of them reads a log without a key and takes that for damage.
	if err := s.journal.Delete(ctx, st.about.ID); err != nil && !errors.Is(err, journal.ErrNotFound) {
		return gateway.JournalError("delete stream", err)
	}
	s.addCount(st.about.owner(), -1, false)
	return nil
}

// isHeld reports whether an error is the refusal of a legal hold.
func isHeld(err error) bool {
	rejection, ok := errors.AsType[*gateway.Rejection](err)
	return ok && rejection.Reason == gateway.ReasonHeld
}

// Erase deletes all subscriptions and streams of a user, and returns how many streams there were. It may be repeated
// after an interruption.
func (s *Store) Erase(ctx context.Context, tenant, subject string) (n int, err error) {
	owner := quota.Account{Tenant: tenant, Subject: subject}
	prefix := SubscriptionPrefix + digest(tenant, subject) + "/"
	for kv, err := range journal.EachKey(ctx, s.journal.KeysAfter, prefix, "", keyPage) {
		if err != nil {
			return n, gateway.JournalError("erase subscriptions", err)
		}
		if err := s.eraseSubscription(ctx, owner, kv.Key); err != nil {
			return n, err
		}
	}
	prefix = ownerPrefix(owner)
	for kv, err := range journal.EachKey(ctx, s.journal.KeysAfter, prefix, "", keyPage) {
		if err != nil {
			return n, gateway.JournalError("erase streams", err)
		}
		if err := s.eraseKey(ctx, kv.Key); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// eraseSubscription deletes a subscription by its key.
func (s *Store) eraseSubscription(ctx context.Context, owner quota.Account, key string) error {
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	s.unschedule(owner, key)
	if err := s.gw.Audit().PutKeys(ctx, journal.KeyValue{Key: key}); err != nil {
		return gateway.JournalError("delete subscription", err)
	}
	return nil
}

// eraseKey erases a stream by its key. That other streams need its data makes no difference: they belong to the same
// user.
func (s *Store) eraseKey(ctx context.Context, key string) error {
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	st, err := s.load(ctx, key)
	if errors.Is(err, gateway.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.release(st)
	return s.erase(ctx, st)
}

const (
	// compactAfter is after how many appends a log is compacted. Until then, each append is a separate row of the
	// database.
	compactAfter = 256
	// sweepEvery is the interval at which expired streams are deleted. They can't be read any more before that.
	sweepEvery = time.Minute
)

// offer queues work for Run. What doesn't fit is found by a later append or by the next sweep.
func (s *Store) offer(queue chan<- string, id string) {
	if id == "" {
		return
	}
	select {
	case queue <- id:
	default:
	}
}

// Run compacts logs, deletes expired streams, and completes interrupted deletions, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	defer s.deliveries.Wait()
	defer s.public.CloseIdleConnections()
	defer s.loopback.CloseIdleConnections()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for isLoaded := false; ; {
		if !isLoaded {
			isLoaded = !s.logFailure(ctx, s.loadSubscriptions(ctx))
		}
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("streams: sweep interrupted; the next one resumes it", "error", err)
		}
		for isDue := false; !isDue; {
			select {
			case log := <-s.compactions:
				err := s.journal.Compact(ctx, log, 1<<62)
				if err != nil && ctx.Err() == nil && !errors.Is(err, journal.ErrDeleted) && !errors.Is(err, journal.ErrNotFound) {
					s.log.Warn("streams: compact; a later append tries again", "log", log, "error", err)
				}
			case key := <-s.orphans:
				if err := s.collectAll(ctx, key); err != nil && ctx.Err() == nil {
					s.log.Warn("streams: delete the source of a fork; the next sweep tries again", "error", err)
				}
			case key := <-s.renewals:
				if err := s.save(ctx, key); err != nil && ctx.Err() == nil {
					s.log.Warn("streams: extend a lifetime; it may end early after a restart", "error", err)
				}
			case <-s.kicked:
				alarm.Reset(s.attend(ctx))
			case <-alarm.C:
				alarm.Reset(s.attend(ctx))
			case <-ticker.C:
				isDue = true
				s.repeat(due{}) // all alarms are looked at, in case that the clock was set back
				alarm.Reset(0)
			case <-ctx.Done():
				return
			}
		}
	}
}

// save stores the lifetime of a stream that was read.
func (s *Store) save(ctx context.Context, key string) error {
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	st, err := s.open(ctx, key)
	if errors.Is(err, gateway.ErrNotFound) || errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.release(st)
	return s.renew(ctx, st)
}

// sweep reads the descriptions of all streams, a page at a time, because their deadlines have no index. A stream that
// is in memory may have been used since its description was stored; expire looks at the newer deadline. sweep deletes
// the streams that have expired, and those that were deleted and have no forks any more.
func (s *Store) sweep(ctx context.Context) error {
	for kv, err := range journal.EachKey(ctx, s.journal.KeysAfter, Prefix, "", keyPage) {
		if err != nil {
			return gateway.JournalError("look for expired streams", err)
		}
		var d description
		if err := json.Unmarshal(kv.Value, &d); err != nil {
			return fmt.Errorf("streams: description: %w", err)
		}
		switch {
		case d.IsDeleted:
			_, err = s.collect(ctx, kv.Key)
		case d.isExpired(time.Now()):
			err = s.expire(ctx, kv.Key)
		}
		if err != nil {
			return err
		}
		// A sweep must not take the journal's whole time.
		if d.IsDeleted {
			if err := retry.Sleep(ctx, time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// expire deletes a stream that has expired, unless it was used since or a legal hold protects it.
func (s *Store) expire(ctx context.Context, key string) error {
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	st, err := s.open(ctx, key)
	unlock()
	if err == nil {
		s.release(st)
	}
	if errors.Is(err, gateway.ErrNotFound) || errors.Is(err, ErrGone) {
		return nil
	}
	return err
}
