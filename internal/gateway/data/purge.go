package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// purgingKeys begin the keys of purges that are not finished.
	purgingKeys = "purging/"
	// purgePage is how many conversations are listed at once.
	purgePage = 100
	// retryPurge is how long an unfinished purge that failed is left alone.
	retryPurge = time.Minute
)

// Subject is whose data is meant.
type Subject struct {
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject"`
}

// Purged is what a purge has removed, or would remove.
type Purged struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Conversations are those that the subject owned.
	Conversations int `json:"conversations"`
	// Shared are those of others that were shared with it; Messages what it wrote in those of others.
	SharedCount int `json:"shared"`
	Messages    int `json:"messages"`
	// Keys are counted by the name of their collection.
	Keys map[string]int `json:"keys,omitempty"`
	// Audit counts the entries of the audit log that were blanked.
	Audit int `json:"audit"`
}

// counts are what the audit log keeps of it.
func (p *Purged) counts() map[string]int {
	counts := map[string]int{"conversations": p.Conversations, "shared": p.SharedCount, "messages": p.Messages, "audit": p.Audit}
	for k, n := range p.Keys {
		counts[k] = n
	}
	return counts
}

// Purger removes all that is stored of a subject. Make one with NewPurger; Run finishes what was cut
// off. Its methods may be called from several goroutines.
type Purger struct {
	gw            *gateway.Gateway
	journal       purgeJournal
	uploads       Uploads // may be nil
	collections   []Collection
	log           *slog.Logger
	purgeSlot     chan struct{} // whoever puts a value in purges
	interruptions chan struct{} // has a value when a purge was cut off
}

// Uploads are files of users that belong to no conversation yet.
type Uploads interface {
	// EraseUploads removes those of a user.
	EraseUploads(ctx context.Context, p gateway.Principal, tenant, subject string) error
}

// NewPurger returns a purger of the gateway's conversations, of uploads and of the collections. uploads may be nil.
func NewPurger(gw *gateway.Gateway, j purgeJournal, uploads Uploads, collections []Collection, log *slog.Logger) *Purger {
	return &Purger{gw: gw, journal: j, uploads: uploads, collections: collections, log: log, purgeSlot: make(chan struct{}, 1), interruptions: make(chan struct{}, 1)}
}

// Run finishes purges that were cut off, by the end of the last process or by whoever asked going away, until the
// context ends.
func (p *Purger) Run(ctx context.Context) {
	for {
		var retry <-chan time.Time
		if err := p.Finish(ctx); err != nil && ctx.Err() == nil {
			p.log.Error("unfinished purge; it is tried again", "error", err)
			retry = time.After(retryPurge)
		}
		select {
		case <-p.interruptions:
		case <-retry:
		case <-ctx.Done():
			return
		}
	}
}

// Finish goes on with all purges that were cut off.
func (p *Purger) Finish(ctx context.Context) error {
	keys, err := p.journal.Keys(ctx, purgingKeys)
	if err != nil {
		return fmt.Errorf("look for unfinished purges: %w", err)
	}
	var errs []error
	for _, kv := range keys {
		var s Subject
		err := json.Unmarshal(kv.Value, &s)
		if err == nil {
			_, err = p.Purge(ctx, gateway.Principal{Admin: true}, s, false)
		}
		var rejection *gateway.Rejection
		if errors.As(err, &rejection) { // it was placed since; the purge is over, and on record as refused
			p.log.Warn("unfinished purge is given up", "reason", rejection.Reason)
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Purge removes the conversations that a subject owns, its keys in the collections, and its name in the audit log. It is
// refused as a whole where a hold keeps any of it. Cut off, Run goes on with it, at the next start if need be. A
// dry run says what it would remove.
func (p *Purger) Purge(ctx context.Context, principal gateway.Principal, of Subject, dry bool) (report Purged, err error) {
	if err := gateway.Decide(principal, gateway.ActionAdmin, nil); err != nil {
		return report, err
	}
	if of.Subject == "" {
		return report, &gateway.Rejection{Reason: gateway.ReasonInvalid, Message: "purge: a subject is needed"}
	}
	select {
	case p.purgeSlot <- struct{}{}:
		defer func() { <-p.purgeSlot }()
	case <-ctx.Done():
		return report, ctx.Err()
	}
	report.DryRun, report.Keys = dry, map[string]int{}
	entry := audit.Entry{Action: "purge", Actor: gateway.Actor(ctx, principal), Digest: audit.Digest(of.Tenant, of.Subject)}
	mark := purgingKeys + entry.Digest
	if err := p.checkHolds(ctx, of); err != nil {
		var r *gateway.Rejection
		if !dry && errors.As(err, &r) {
			entry.Result = gateway.ReasonHeld
			err = errors.Join(err, p.gw.Audit().Record(ctx, entry, journal.KeyValue{Key: mark}))
		}
		return report, err
	}
	if dry {
		return report, p.count(ctx, principal, of, &report)
	}
	value, err := json.Marshal(of)
	if err != nil {
		return report, fmt.Errorf("purge: %w", err)
	}
	entry.Result = "begun"
	if err := p.gw.Audit().Record(ctx, entry, journal.KeyValue{Key: mark, Value: value}); err != nil {
		return report, err
	}
	if err := p.remove(ctx, principal, of, &report); err != nil {
		if ctx.Err() != nil {
			select {
			case p.interruptions <- struct{}{}:
			default:
			}
		}
		return report, fmt.Errorf("purge: %w", err)
	}
	entry.Result, entry.Counts = audit.Done, report.counts()
	return report, p.gw.Audit().Record(ctx, entry, journal.KeyValue{Key: mark})
}

// held returns a *gateway.Rejection where a hold keeps anything of the subject.
func (p *Purger) checkHolds(ctx context.Context, of Subject) error {
	var names []string
	if hold, ok := p.gw.Holds().HoldOnSubject(of.Tenant, of.Subject); ok {
		names = append(names, hold.String())
	} else if len(p.gw.Holds().List()) > 0 {
		err := p.eachOwned(ctx, of, func(s *journal.Summary) error {
			if hold, ok := p.gw.Holds().HoldOn(s); ok {
				names = append(names, hold.String())
			}
			return nil
		})
		_, wrote, gerr := p.gw.Guests().Conversations(ctx, gateway.Principal{Admin: true}, of.Tenant, of.Subject)
		if err := errors.Join(err, gerr); err != nil {
			return err
		}
		for _, id := range wrote {
			s, err := p.journal.Conversation(ctx, id)
			if err != nil {
				continue // deleted meanwhile, or the redaction will say
			}
			if hold, ok := p.gw.Holds().HoldOn(&s); ok {
				names = append(names, hold.String())
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	const maxNames = 5
	suffix := ""
	if n := len(names) - maxNames; n > 0 {
		names, suffix = names[:maxNames], fmt.Sprintf(" and %d more", n)
	}
	return &gateway.Rejection{Reason: gateway.ReasonHeld, Message: fmt.Sprintf(
		"nothing is purged: a legal hold on %s%s keeps what belongs to this subject", strings.Join(names, ", "), suffix)}
}

// owned calls f with the conversations that the subject owns.
func (p *Purger) eachOwned(ctx context.Context, of Subject, f func(*journal.Summary) error) error {
	return eachOwned(ctx, p.journal, of, f)
}

func eachOwned(ctx context.Context, j lister, of Subject, f func(*journal.Summary) error) error {
	q := journal.Query{Tenant: of.Tenant, Owner: of.Subject, Limit: purgePage}
	for {
		page, err := j.Conversations(ctx, q)
		if err != nil {
			return err
		}
		for i := range page {
			s := &page[i]
			q.BeforeUpdated, q.BeforeID = s.Updated, s.ID
			if s.Tenant != of.Tenant { // an empty tenant selects all
				continue
			}
			if err := f(s); err != nil {
				return err
			}
		}
		if len(page) < purgePage {
			return nil
		}
	}
}

// guest counts what the subject has in the conversations of others.
func (p *Purger) guest(ctx context.Context, principal gateway.Principal, of Subject, report *Purged) error {
	guestIn, wrote, err := p.gw.Guests().Conversations(ctx, principal, of.Tenant, of.Subject)
	report.SharedCount = len(guestIn)
	for _, id := range wrote {
		if err == nil {
			err = p.gw.Guests().EventsBy(ctx, principal, id, of.Subject, func(e *event.Event) error {
				if e.Type == event.MessageAdd {
					report.Messages++
				}
				return nil
			})
		}
		if errors.Is(err, gateway.ErrNotFound) {
			err = nil // deleted meanwhile
		}
	}
	return err
}

func (p *Purger) count(ctx context.Context, principal gateway.Principal, of Subject, report *Purged) error {
	err := p.eachOwned(ctx, of, func(*journal.Summary) error { report.Conversations++; return nil })
	if err == nil {
		err = p.guest(ctx, principal, of, report)
	}
	for i := range p.collections {
		c := &p.collections[i]
		if err == nil {
			err = c.forEach(ctx, p.journal, of.Tenant, of.Subject, func(journal.KeyValue) error { report.Keys[c.Name]++; return nil })
		}
	}
	if err == nil {
		report.Audit, err = p.gw.Audit().Count(ctx, audit.Query{Tenant: of.Tenant, Subject: of.Subject})
	}
	return err
}

func (p *Purger) remove(ctx context.Context, principal gateway.Principal, of Subject, report *Purged) error {
	// What comes while it goes on is newest, and so stands first: it is looked for until there is none.
	for hasMore := true; hasMore; {
		hasMore = false
		err := p.eachOwned(ctx, of, func(s *journal.Summary) error {
			hasMore = true
			_, err := p.gw.Do(ctx, principal, s.ID, gateway.Command{Type: gateway.CommandDelete})
			if errors.Is(err, gateway.ErrNotFound) {
				err = p.journal.Delete(ctx, s.ID) // somebody else has begun to
			}
			if err == nil {
				report.Conversations++
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if p.uploads != nil {
		if err := p.uploads.EraseUploads(ctx, principal, of.Tenant, of.Subject); err != nil {
			return err
		}
	}
	var err error
	if report.SharedCount, err = p.gw.Guests().Unshare(ctx, principal, of.Tenant, of.Subject); err != nil {
		return err
	}
	_, wrote, err := p.gw.Guests().Conversations(ctx, principal, of.Tenant, of.Subject)
	if err != nil {
		return err
	}
	for _, id := range wrote {
		n, err := p.gw.Guests().Redact(ctx, principal, id, of.Subject)
		if err != nil && !errors.Is(err, gateway.ErrNotFound) {
			return err
		}
		report.Messages += n
	}
	for i := range p.collections {
		c := &p.collections[i]
		var deletions []journal.KeyValue
		flush := func() error {
			err := p.gw.Audit().PutKeys(ctx, deletions...)
			deletions = nil
			return err
		}
		err := c.forEach(ctx, p.journal, of.Tenant, of.Subject, func(kv journal.KeyValue) error {
			report.Keys[c.Name]++
			if deletions = append(deletions, journal.KeyValue{Key: kv.Key}); len(deletions) < keyPage {
				return nil
			}
			return flush()
		})
		if err == nil {
			err = flush()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	n, err := p.gw.Audit().Blank(ctx, of.Tenant, of.Subject)
	report.Audit = n
	return err
}
