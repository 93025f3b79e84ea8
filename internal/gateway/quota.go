package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/leat-dev/leat/event"
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

// who is a principal as the quota knows it. An admin is the operator; who acts for a user is that user.
func (p Principal) who() quota.Who {
	if p.Admin {
		return quota.Who{}
	}
	return quota.Who{Tenant: p.Tenant, Subject: p.Subject}
}

// take has the quota grant what a job needs. It is the last that the job asks before it adds to the tx: what a command was
// refused for another reason uses nothing, and neither does a repeat, which is answered before. What was granted is given
// back where the job or the commit fails.
func (t *tx) take(p Principal, n quota.Need) error {
	n.Conversation = t.o.id
	s := t.current()
	n.Owner = quota.Who{Tenant: s.Tenant, Subject: s.Owner}
	g, err := t.o.g.quota.Take(p.who(), n)
	if err != nil {
		return t.o.g.refused(err)
	}
	t.grants = append(t.grants, g)
	return nil
}

// giveBack cancels the grants from the n-th on.
func (t *tx) giveBack(n int) {
	for _, g := range t.grants[n:] {
		g.Cancel()
	}
	t.grants = t.grants[:n]
}

// settled ends the grants of a tx when its commit has ended with err. Where nobody knows whether it came about they are
// kept: the owner gives the conversation up, and who opens it next looks.
func (t *tx) settled(err error) {
	if err != nil && !errors.Is(err, journal.ErrUnknown) {
		t.giveBack(0)
		return
	}
	for _, g := range t.grants {
		g.Keep()
	}
	if err == nil { // before anybody is told of the ends, who may begin another turn at once
		for _, turn := range t.ended {
			t.o.g.quota.End(turn)
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

// count tells the quota which turns of a conversation are unfinished, before it has an owner who changes that.
func (g *Gateway) count(ctx context.Context, s *journal.Summary) error {
	if !g.quota.BoundsTurns() {
		return nil
	}
	unfinished := make(map[string]quota.Who, len(s.Open))
	for _, turn := range s.Open {
		v, err := g.journal.Get(ctx, principalKey(turn))
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
func (g *Gateway) View(p Principal) (leave func(), err error) {
	leave, err = g.quota.View(p.who())
	return leave, g.refused(err)
}
