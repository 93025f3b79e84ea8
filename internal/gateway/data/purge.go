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
	Shared   int `json:"shared"`
	Messages int `json:"messages"`
	// Keys are counted by the name of their collection.
	Keys map[string]int `json:"keys,omitempty"`
	// Audit counts the entries of the audit log that were blanked.
	Audit int `json:"audit"`
}

// counts are what the audit log keeps of it.
func (p *Purged) counts() map[string]int {
	out := map[string]int{"conversations": p.Conversations, "shared": p.Shared, "messages": p.Messages, "audit": p.Audit}
	for k, n := range p.Keys {
		out[k] = n
	}
	return out
}

// Purger removes all that is stored of a subject. Make one with NewPurger; Run finishes what was cut
// off. Its methods may be called from several goroutines.
type Purger struct {
	gw          *gateway.Gateway
	journal     purgeJournal
	uploads     Uploads // may be nil
	collections []Collection
	log         *slog.Logger
	one         chan struct{} // whoever puts a value in purges
	cut         chan struct{} // has a value when a purge was cut off
}

// Uploads are files of users that belong to no conversation yet.
type Uploads interface {
	// EraseUploads removes those of a user.
	EraseUploads(ctx context.Context, p gateway.Principal, tenant, subject string) error
}

// NewPurger returns a purger of the gateway's conversations, of uploads and of the collections. uploads may be nil.
func NewPurger(gw *gateway.Gateway, j purgeJournal, uploads Uploads, collections []Collection, log *slog.Logger) *Purger {
	return &Purger{gw: gw, journal: j, uploads: uploads, collections: collections, log: log, one: make(chan struct{}, 1), cut: make(chan struct{}, 1)}
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
		case <-p.cut:
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
		var held *gateway.Rejection
		if errors.As(err, &held) { // it was placed since; the purge is over, and on record as refused
			p.log.Warn("unfinished purge is given up", "reason", held.Reason)
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Purge removes the conversations that a subject owns, its keys in the collections, and its name in the audit log. It is
// refused as a whole where a hold keeps any of it. Cut off, Run goes on with it, at the next start if need be. A
// dry run says what it would remove.
func (p *Purger) Purge(ctx context.Context, who gateway.Principal, of Subject, dry bool) (out Purged, err error) {
	if err := gateway.Decide(who, gateway.ActionAdmin, nil); err != nil {
		return out, err
	}
	if of.Subject == "" {
		return out, &gateway.Rejection{Reason: gateway.ReasonInvalid, Message: "purge: a subject is needed"}
	}
	select {
	case p.one <- struct{}{}:
		defer func() { <-p.one }()
	case <-ctx.Done():
		return out, ctx.Err()
	}
	out.DryRun, out.Keys = dry, map[string]int{}
	entry := audit.Entry{Action: "purge", Actor: gateway.Actor(ctx, who), Digest: audit.Digest(of.Tenant, of.Subject)}
	mark := purgingKeys + entry.Digest
	if err := p.held(ctx, of); err != nil {
		var r *gateway.Rejection
		if !dry && errors.As(err, &r) {
			entry.Result = gateway.ReasonHeld
			err = errors.Join(err, p.gw.Audit().Record(ctx, entry, journal.KeyValue{Key: mark}))
		}
		return out, err
	}
	if dry {
		return out, p.count(ctx, who, of, &out)
	}
	value, err := json.Marshal(of)
	if err != nil {
		return out, fmt.Errorf("purge: %w", err)
	}
	entry.Result = "begun"
	if err := p.gw.Audit().Record(ctx, entry, journal.KeyValue{Key: mark, Value: value}); err != nil {
		return out, err
	}
	if err := p.remove(ctx, who, of, &out); err != nil {
		if ctx.Err() != nil {
			select {
			case p.cut <- struct{}{}:
			default:
			}
		}
		return out, fmt.Errorf("purge: %w", err)
	}
	entry.Result, entry.Counts = audit.Done, out.counts()
	return out, p.gw.Audit().Record(ctx, entry, journal.KeyValue{Key: mark})
}

// held returns a *gateway.Rejection where a hold keeps anything of the subject.
func (p *Purger) held(ctx context.Context, of Subject) error {
	var names []string
	if one, ok := p.gw.Holds().HoldOnSubject(of.Tenant, of.Subject); ok {
		names = append(names, one.String())
	} else if len(p.gw.Holds().List()) > 0 {
		err := p.owned(ctx, of, func(s *journal.Summary) error {
			if one, ok := p.gw.Holds().HoldOn(s); ok {
				names = append(names, one.String())
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
			if one, ok := p.gw.Holds().HoldOn(&s); ok {
				names = append(names, one.String())
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	const most = 5
	more := ""
	if n := len(names) - most; n > 0 {
		names, more = names[:most], fmt.Sprintf(" and %d more", n)
	}
	return &gateway.Rejection{Reason: gateway.ReasonHeld, Message: fmt.Sprintf(
		"nothing is purged: a legal hold on %s%s keeps what belongs to this subject", strings.Join(names, ", "), more)}
}

// owned calls f with the conversations that the subject owns.
func (p *Purger) owned(ctx context.Context, of Subject, f func(*journal.Summary) error) error {
	return owned(ctx, p.journal, of, f)
}

func owned(ctx context.Context, j lister, of Subject, f func(*journal.Summary) error) error {
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
func (p *Purger) guest(ctx context.Context, who gateway.Principal, of Subject, out *Purged) error {
	shared, wrote, err := p.gw.Guests().Conversations(ctx, who, of.Tenant, of.Subject)
	out.Shared = len(shared)
	for _, id := range wrote {
		if err == nil {
			err = p.gw.Guests().EventsBy(ctx, who, id, of.Subject, func(e *event.Event) error {
				if e.Type == event.MessageAdd {
					out.Messages++
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

func (p *Purger) count(ctx context.Context, who gateway.Principal, of Subject, out *Purged) error {
	err := p.owned(ctx, of, func(*journal.Summary) error { out.Conversations++; return nil })
	if err == nil {
		err = p.guest(ctx, who, of, out)
	}
	for i := range p.collections {
		c := &p.collections[i]
		if err == nil {
			err = c.each(ctx, p.journal, of.Tenant, of.Subject, func(journal.KeyValue) error { out.Keys[c.Name]++; return nil })
		}
	}
	if err == nil {
		out.Audit, err = p.gw.Audit().Count(ctx, audit.Query{Tenant: of.Tenant, Subject: of.Subject})
	}
	return err
}

func (p *Purger) remove(ctx context.Context, who gateway.Principal, of Subject, out *Purged) error {
	// What comes while it goes on is newest, and so stands first: it is looked for until there is none.
	for more := true; more; {
		more = false
		err := p.owned(ctx, of, func(s *journal.Summary) error {
			more = true
			_, err := p.gw.Do(ctx, who, s.ID, gateway.Command{Type: gateway.CommandDelete})
			if errors.Is(err, gateway.ErrNotFound) {
				err = p.journal.Delete(ctx, s.ID) // somebody else has begun to
			}
			if err == nil {
				out.Conversations++
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if p.uploads != nil {
		if err := p.uploads.EraseUploads(ctx, who, of.Tenant, of.Subject); err != nil {
			return err
		}
	}
	var err error
	if out.Shared, err = p.gw.Guests().Unshare(ctx, who, of.Tenant, of.Subject); err != nil {
		return err
	}
	_, wrote, err := p.gw.Guests().Conversations(ctx, who, of.Tenant, of.Subject)
	if err != nil {
		return err
	}
	for _, id := range wrote {
		n, err := p.gw.Guests().Redact(ctx, who, id, of.Subject)
		if err != nil && !errors.Is(err, gateway.ErrNotFound) {
			return err
		}
		out.Messages += n
	}
	for i := range p.collections {
		c := &p.collections[i]
		var gone []journal.KeyValue
		flush := func() error {
			err := p.gw.Audit().PutKeys(ctx, gone...)
			gone = nil
			return err
		}
		err := c.each(ctx, p.journal, of.Tenant, of.Subject, func(kv journal.KeyValue) error {
			out.Keys[c.Name]++
			if gone = append(gone, journal.KeyValue{Key: kv.Key}); len(gone) < keyPage {
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
	out.Audit = n
	return err
}
