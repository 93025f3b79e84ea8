// The gateway's limits for users and tenants, and what commands and turns count against them.

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

// How long clients wait before they retry what a limit refused, unless the limit knows.
const (
	retryTurn   = 5 * time.Second // a turn or a viewer may end at any moment
	retryStored = time.Hour       // something has to be deleted first
)

// limits applies the quota of users and tenants.
type limits struct {
	quota   *quota.Quota
	metrics *Metrics
	journal Journal
}

// rejection returns a *Rejection for the error of an exceeded quota, and counts it. It returns other errors
// unchanged. RetryAfter is the limit's own wait if it knows one. Messages beyond a rate have their own reason, since
// they only have to wait.
func (l limits) rejection(err error) error {
	var e *quota.Exceeded
	if !errors.As(err, &e) {
		return err
	}
	l.metrics.limited.WithLabelValues(string(e.Resource)).Inc()
	r := reject(ReasonQuota, "%v", e)
	switch e.Resource {
	case quota.Messages:
		r.Reason, r.RetryAfter = ReasonRateLimited, e.Wait
	case quota.Bytes:
		r.RetryAfter = retryStored
	default:
		r.RetryAfter = retryTurn
	}
	return r
}

// Account returns the account whose quota a principal uses. Admins have none. If the holder of the API token acts for a user,
// it is that user's.
func (p Principal) Account() quota.Account {
	if p.Admin {
		return quota.Account{}
	}
	return quota.Account{Tenant: p.Tenant, Subject: p.Subject}
}

// sizeOf estimates how many bytes events will take in the log, including the turn's own events. It returns 0 if stored bytes
// are not limited. An estimate is enough: the journal counts what is stored, and the quota only reserves until the
// commit.
func (l limits) sizeOf(events ...event.Event) (n int64) {
	if !l.quota.BoundsBytes() {
		return 0
	}
	for i := range events {
		b, err := events[i].AppendJSON(nil)
		if err != nil {
			continue // the event is checked before it is written
		}
		n += int64(len(b))
	}
	return n + turnSize
}

// turnSize is about how many bytes the events of a turn and the summary of a conversation take.
const turnSize = 512

// metaSize returns about how many bytes a title and metadata take, which are stored in the log and in the summary.
func (l limits) metaSize(title *string, metadata map[string]json.RawMessage) int64 {
	return 2 * l.sizeOf(event.Event{Type: event.ConversationUpdate, Body: &event.Body{Title: title, Metadata: metadata}})
}

// count counts the unfinished turns of a conversation. It is called before the conversation has a writer, which
// changes them. The quota replaces what it knew of the conversation, so counting twice is harmless.
func (l limits) count(ctx context.Context, s *journal.Summary) error {
	if !l.quota.BoundsTurns() {
		return nil
	}
	unfinished := make(map[string]quota.Account, len(s.Open))
	for _, turn := range s.Open {
		v, err := l.journal.Get(ctx, journalkey.TurnPrincipal(turn))
		if errors.Is(err, journal.ErrNotFound) {
			continue // an inner turn; the outer one counts
		}
		var p quota.Account
		if err == nil {
			err = json.Unmarshal(v, &p)
		}
		if err != nil {
			return err
		}
		unfinished[turn] = p
	}
	l.quota.Sync(s.ID, unfinished)
	return nil
}
