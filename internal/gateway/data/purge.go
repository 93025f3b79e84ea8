// Deleting all data of a person, with what is elsewhere: files, audit entries, messages in shared conversations.

package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// purgingKeys is the prefix of the keys that mark unfinished purges.
	purgingKeys = "purging/"
	// purgePage is the number of conversations that are listed at once.
	purgePage = 100
	// retryPurge is the delay before a failed purge is retried.
	retryPurge = time.Minute
)

// Subject identifies the user whose data is purged or exported.
type Subject struct {
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject"`
}

// purgeReport is the result of a purge, or the forecast of a dry run.
type purgeReport struct {
	DryRun bool `json:"dry_run,omitempty"`
	// Conversations counts the conversations that the subject owned.
	Conversations int `json:"conversations"`
	// SharedCount counts the conversations of others that were shared with the subject, and Messages the subject's messages in
	// conversations of others.
	SharedCount int `json:"shared"`
	Messages    int `json:"messages"`
	// Keys counts removed keys by the name of their collection.
	Keys map[string]int `json:"keys,omitempty"`
	// Audit counts the entries of the audit log that were blanked.
	Audit int `json:"audit"`
}

// counts returns the report's numbers in the form in which an audit entry stores them.
func (p *purgeReport) counts() map[string]int {
	counts := map[string]int{"conversations": p.Conversations, "shared": p.SharedCount, "messages": p.Messages, "audit": p.Audit}
	maps.Copy(counts, p.Keys)
	return counts
}

// Purger removes all data of a subject. Only one purge runs at a time. Its methods may be called from several goroutines. Create
// it with NewPurger, and call Run to resume interrupted purges.
type Purger struct {
	gw            *gateway.Gateway
	journal       purgeJournal
	uploads       uploadEraser // may be nil
	streams       streamEraser // may be nil
	collections   []Collection
	log           *slog.Logger
	purgeSlot     chan struct{} // capacity 1: holds a value while a purge runs
	interruptions chan struct{} // capacity 1: a value means that Run should resume an interrupted purge
}

// uploadEraser removes the files that users have uploaded and not yet shown in a conversation. attachments.Service implements it.
type uploadEraser interface {
	// EraseUploads removes a user's uploads.
	EraseUploads(ctx context.Context, p gateway.Principal, tenant, subject string) error
}

// streamEraser removes the streams that users have created. streams.Store implements it.
type streamEraser interface {
	// Erase removes a user's streams and returns how many there were.
	Erase(ctx context.Context, tenant, subject string) (int, error)
}

// NewPurger returns a purger of the gateway's conversations, of uploads, of streams and of the collections. If uploads or streams is nil, there
// are none to remove.
func NewPurger(gw *gateway.Gateway, j purgeJournal, uploads uploadEraser, streams streamEraser, collections []Collection, log *slog.Logger) *Purger {
	return &Purger{gw: gw, journal: j, uploads: uploads, streams: streams, collections: collections, log: log, purgeSlot: make(chan struct{}, 1), interruptions: make(chan struct{}, 1)}
}

// Run resumes interrupted purges until the context ends. A purge is interrupted by the end of the process, or when the client
// that requested it disconnects. Run looks for keys of unfinished purges at its start, after each interruption, and a minute after
// an error.
func (p *Purger) Run(ctx context.Context) {
	for {
		var retry <-chan time.Time
		if err := p.Finish(ctx); err != nil && ctx.Err() == nil {
			p.log.Error("purge failed; retrying in a minute", "error", err)
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

// Finish resumes all interrupted purges, which it finds by their key in the journal. A purge that has come under a legal hold
// since is abandoned, and its refusal is in the audit log.
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
		if rejection, ok := errors.AsType[*gateway.Rejection](err); ok { // a legal hold was placed since; Purge has recorded the refusal and deleted the key
			p.log.Warn("unfinished purge abandoned", "reason", rejection.Reason)
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Purge removes the conversations that a subject owns, its uploads, its messages in other conversations, its keys in the
// collections, and its name in the audit log. If a legal hold covers any of them, it refuses and removes nothing. A dry run
// only counts.
//
// The key under purgingKeys is written with the audit entry before anything is removed, and deleted with the last audit entry.
// If Purge is interrupted, Run finds the key and resumes. The key is a digest, but its value names the subject until the purge
// is done.
func (p *Purger) Purge(ctx context.Context, principal gateway.Principal, of Subject, dry bool) (report purgeReport, err error) {
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
		if _, isHeld := errors.AsType[*gateway.Rejection](err); isHeld && !dry {
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

// checkHolds returns a *gateway.Rejection if a legal hold covers the subject, a conversation that it owns, or one in which it
// wrote. Its message names up to five of the holds. The conversations are only read if there is any legal hold, because a
// subject may own many. A hold that is placed after the check is enforced by the gateway, which refuses the single deletions.
func (p *Purger) checkHolds(ctx context.Context, of Subject) error {
	var names []string
	if hold, ok := p.gw.Holds().HoldOnSubject(of.Tenant, of.Subject); ok {
		names = append(names, hold.String())
	} else if len(p.gw.Holds().List()) > 0 {
		err := eachOwned(ctx, p.journal, of, func(s *journal.Summary) error {
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
				continue // deleted meanwhile; any other error occurs again in Redact, which reports it
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
		"nothing was purged: a legal hold on %s%s covers data of this subject", strings.Join(names, ", "), suffix)}
}

// eachOwned calls f for each conversation that the subject owns, in order of the last change, newest first. f may delete the conversation
// it got. A conversation that changes during the call may be missed, because it moves to a page that was read already. Callers that
// need all conversations repeat the call until it finds nothing new.
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
			if s.Tenant != of.Tenant { // a query without a tenant matches every tenant
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

// guest counts the conversations of others that are shared with the subject, and the subject's messages in them. Messages in
// conversations that are no longer shared with the subject count too.
func (p *Purger) guest(ctx context.Context, principal gateway.Principal, of Subject, report *purgeReport) error {
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

// count fills the report of a dry run.
func (p *Purger) count(ctx context.Context, principal gateway.Principal, of Subject, report *purgeReport) error {
	err := eachOwned(ctx, p.journal, of, func(*journal.Summary) error { report.Conversations++; return nil })
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

// streamCollection is the name of the streams in the counts of a purge. The collection of their keys, which a dry run counts, has it too.
const streamCollection = "streams"

// remove removes the data. It can be repeated after an interruption, because each step finds only the data that is left: conversations
// first, then uploads, access to conversations of others, messages in them, the keys of the collections, and finally the name in the audit
// log.
func (p *Purger) remove(ctx context.Context, principal gateway.Principal, of Subject, report *purgeReport) error {
	// A conversation that is created or changed meanwhile moves to the front of the list. List again until nothing is left.
	for hasMore := true; hasMore; {
		hasMore = false
		err := eachOwned(ctx, p.journal, of, func(s *journal.Summary) error {
			hasMore = true
			_, err := p.gw.Do(ctx, principal, s.ID, gateway.Command{Type: gateway.CommandDelete})
			if errors.Is(err, gateway.ErrNotFound) {
				err = p.journal.Delete(ctx, s.ID) // a deletion has begun elsewhere; complete it before the purge reports success
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
	if p.streams != nil {
		n, err := p.streams.Erase(ctx, of.Tenant, of.Subject)
		if err != nil {
			return err
		}
		if n > 0 {
			report.Keys[streamCollection] = n
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
