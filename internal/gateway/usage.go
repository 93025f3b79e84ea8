// Charging a turn's tokens and costs to the user on whose behalf it runs.

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/usage"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// billing adds the turns that end in a commit to the usage ledger, in the writer of their conversation.
type billing struct{ *writer }

// bill adds a row of the usage ledger to a batch for each turn that ends in it.
func (w billing) bill(t *tx, b *journal.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		if e.Type != event.TurnEnd || t.restored[e.Turn] {
			continue
		}
		kv, err := w.core.ledger.Entry(w.billed(t, e))
		if err != nil {
			w.core.log.Error("turn not billed", "turn", e.Turn, "error", err) // the end of a turn must be committed even so
			continue
		}
		b.Keys = append(b.Keys, kv)
	}
}

// billed returns the ledger's row for a turn that ends with e, one of the events of a commit. Its start may be in the same
// commit.
func (w billing) billed(of *tx, e *event.Event) usage.Turn {
	t := usage.Turn{ID: e.Turn, Outcome: e.Get().Outcome, Usage: e.Get().Usage, EndedAt: e.At}
	parent := ""
	// The feed has the state before this commit.
	w.feed.View(func(tr *transcript.Transcript) {
		if turn := tr.Turn(e.Turn); turn != nil {
			t.Agent, t.Model, t.StartedAt, parent = turn.Agent, turn.Model, turn.StartedAt, turn.Parent
		}
	})
	for i := range of.events { // the feed doesn't have the events of this commit yet
		switch e := &of.events[i]; {
		case e.Turn != t.ID:
		case e.Type == event.TurnStart:
			t.Agent, t.StartedAt, parent = e.Get().Agent, e.At, e.Get().Parent
		case e.Type == event.TurnUpdate && e.Get().Model != "":
			t.Model = e.Get().Model
		}
	}
	// A run of another client of the session is charged to the conversation's owner, because the client is unknown.
	p := w.owner
	if !of.outside[e.Turn] {
		p = w.payer(e.Turn, parent)
	}
	t.Tenant, t.Subject = p.Tenant, p.Subject
	return t
}

// payer returns the principal that a turn is charged to: the one that began it, or began the turn around it. If that was the
// operator, it is the conversation's owner.
func (w billing) payer(turn, parent string) (p agent.Principal) {
	if tn := w.turns.observedTurns[turn]; tn != nil {
		return tn.principal
	}
	turn = cmp.Or(parent, turn)
	if tn := w.turns.around(turn); tn != nil && tn.isObserved {
		return tn.principal
	}
	// The running turn also pays for turns inside it whose parent is unknown.
	if tn := w.turns.current; tn != nil && (tn.id == turn || !w.hasPrincipal(turn)) {
		p = tn.principal
	} else {
		p = w.principal(turn)
	}
	if p.Subject == "" {
		return w.owner
	}
	return p
}

// hasPrincipal reports whether the principal of a turn is stored. Turns inside another have none.
func (w billing) hasPrincipal(turn string) bool {
	_, err := w.core.journal.Get(w.core.life, journalkey.TurnPrincipal(turn))
	return !errors.Is(err, journal.ErrNotFound)
}

// Usage returns what turns cost. An admin may query all turns. Other principals get only their own, and a query for others is
// refused.
func (g *Gateway) Usage(ctx context.Context, p Principal, q usage.Query) (*usage.Report, error) {
	if err := Decide(p, ActionList, nil); err != nil {
		return nil, err
	}
	if !p.Admin {
		if q.Tenant != nil && *q.Tenant != p.Tenant || q.Subject != nil && *q.Subject != p.Subject {
			return nil, ErrForbidden
		}
		// Without these, a query would sum the turns of all users.
		q.Tenant, q.Subject = &p.Tenant, &p.Subject
	}
	rep, err := g.ledger.Sum(ctx, q)
	switch {
	case err == nil:
		return rep, nil
	case errors.Is(err, usage.ErrQuery):
		return nil, reject(ReasonInvalid, "%v", err)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("sum usage: %w", JournalError("read rows", err))
}
