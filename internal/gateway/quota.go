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

// When it is worth to try again what a limit refused that does not say so itself.
const (
	retryTurn   = 5 * time.Second // a turn or a reader may end any moment
	retryStored = time.Hour       // somebody has to delete something first
)

// refused makes the refusal of what a limit does not allow, and counts it.
func (g *Gateway) refused(err error) error {
	var e *quota.Exceeded
	if !errors.As(err, &e) {
		return err
	}
	g.cfg.Metrics.limited.WithLabelValues(string(e.Resource)).Inc()
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

// Account returns the account to which quota charges a principal. An admin is the operator; who acts for a user is that user.
func (p Principal) Account() quota.Who {
	if p.Admin {
		return quota.Who{}
	}
	return quota.Who{Tenant: p.Tenant, Subject: p.Subject}
}

// reserve takes what a job needs from the user's quota. A job calls it after all its other checks, so that a refused or a
// repeated command uses nothing. The reservation is cancelled if the job or the commit fails.
func (t *tx) reserve(p Principal, n quota.Need) error {
	n.Conversation = t.writer.id
	s := t.current()
	n.Owner = quota.Who{Tenant: s.Tenant, Subject: s.Owner}
	g, err := t.writer.g.quota.Take(p.Account(), n)
	if err != nil {
		return t.writer.g.refused(err)
	}
	t.reservations = append(t.reservations, g)
	return nil
}

// cancelReservations cancels the reservations from the n-th on.
func (t *tx) cancelReservations(n int) {
	for _, g := range t.reservations[n:] {
		g.Cancel()
	}
	t.reservations = t.reservations[:n]
}

// finishReservations confirms or cancels the tx's reservations once its commit has ended with err. If it is unknown whether the
// commit succeeded, they are confirmed: the writer gives the conversation up, and the next writer counts its turns again.
func (t *tx) finishReservations(err error) {
	if err != nil && !errors.Is(err, journal.ErrUnknown) {
		t.cancelReservations(0)
		return
	}
	for _, g := range t.reservations {
		g.Keep()
	}
	if err == nil { // before anybody is told of the ends, who may begin another turn at once
		for _, turn := range t.ended {
			t.writer.g.quota.End(turn)
		}
	}
}

// sizeOf is how many bytes events will take in the log, about; 0 where nobody asks.
func (g *Gateway) sizeOf(events ...event.Event) (n int64) {
	if !g.quota.BoundsBytes() {
		return 0
	}
	for i := range events {
		b, err := events[i].AppendJSON(nil)
		if err != nil {
			continue // it is validated before it is written
		}
		n += int64(len(b))
	}
	return n + turnSize
}

// turnSize is what a turn's own events and a conversation's summary take, in bytes, about.
const turnSize = 512

// metaSize is what a title and metadata take: they lie in the log and in the summary.
func (g *Gateway) metaSize(title *string, metadata map[string]json.RawMessage) int64 {
	return 2 * g.sizeOf(event.Event{Type: event.ConversationUpdate, Body: &event.Body{Title: title, Metadata: metadata}})
}

// count tells the quota which turns of a conversation are unfinished, before it has a writer, which changes the number.
func (g *Gateway) count(ctx context.Context, s *journal.Summary) error {
	if !g.quota.BoundsTurns() {
		return nil
	}
	unfinished := make(map[string]quota.Who, len(s.Open))
	for _, turn := range s.Open {
		v, err := g.journal.Get(ctx, journalkey.TurnPrincipal(turn))
		if errors.Is(err, journal.ErrNotFound) {
			continue // one inside another, which counts
		}
		var p quota.Who
		if err == nil {
			err = json.Unmarshal(v, &p)
		}
		if err != nil {
			return err
		}
		unfinished[turn] = p
	}
	g.quota.Sync(s.ID, unfinished)
	return nil
}

// View counts a reader of the principal's until leave is called, which may be called twice. A surface calls it for each
// stream that goes on and for each subscription; what is read once needs none. The error is a *Rejection.
func (g *Gateway) AddViewer(p Principal) (leave func(), err error) {
	leave, err = g.quota.View(p.Account())
	return leave, g.refused(err)
}
