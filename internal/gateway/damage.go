// The operations on a conversation that the journal can't read: list it, delete it for an admin, and expire it. Its owner is
// unknown, so only the operator has access.

package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Damaged lists the conversations that the journal has quarantined because their data are damaged. It is for operators.
func (g *Gateway) Damaged() []journal.DamageError {
	if r, ok := g.journal.(journal.DamageReporter); ok {
		return r.Damaged()
	}
	return nil
}

// deleteDamaged deletes a conversation that has no writer, since its log can't be read.
func (r *removals) deleteDamaged(ctx context.Context, p Principal, id string, c Command) (Ack, error) {
	s, err := r.journal.Conversation(ctx, id)
	unknown := damaged(err) // the owner can't be read
	switch {
	case unknown:
		s = journal.Summary{ID: id}
	case err != nil:
		return Ack{}, JournalError("delete conversation", err)
	}
	if err := Decide(p, ActionDelete, &s); err != nil {
		return Ack{}, err
	}
	// A hold names a subject or a conversation. Without the owner nobody knows whether one applies, so any hold forbids the delete.
	if holds := r.holds.List(); unknown && len(holds) > 0 {
		return Ack{}, reject(ReasonHeld, "a legal hold is in force, and the owner of the damaged conversation can't be read; release all holds first")
	}
	c.actor = Actor(ctx, p)
	return r.run(ctx, s, c, func(release func()) (Ack, error) { return Ack{}, r.eraseDamaged(ctx, id, c) })
}

// eraseDamaged deletes a damaged conversation. Without a writer there is no commit that could contain the audit entry, so the
// entry is written first.
func (r *removals) eraseDamaged(ctx context.Context, id string, c Command) error {
	ctx = context.WithoutCancel(ctx) // once it has begun, a delete must not stop half-way
	if err := r.audit.Record(ctx, audit.Entry{Action: c.Type, Actor: c.actor, Conversation: id}); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	r.compactor.drop(id)
	if f, err := r.feeds.Acquire(ctx, id); err == nil { // readers of a feed that was loaded before the damage was found
		f.Close(feed.ErrDeleted)
		f.Release()
	}
	if err := r.finish(ctx, id); err != nil {
		return JournalError("delete conversation", err)
	}
	return nil
}

// expireDamaged is Expire for a conversation that has no writer. If its summary is damaged too, it stays until it is deleted
// by hand, because the time of its retention can't be read.
func (r *removals) expireDamaged(ctx context.Context, part, id string, before int64) (deleted bool, err error) {
	s, err := r.journal.Conversation(ctx, id)
	if damaged(err) || errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrDeleted) {
		return false, nil
	}
	if err != nil {
		return false, JournalError("expire conversation", err)
	}
	if s.Updated >= before || len(s.Open) > 0 {
		return false, nil
	}
	release, err := r.holds.Removing(s)
	if err != nil {
		return false, nil
	}
	defer release()
	err = r.eraseDamaged(ctx, id, Command{Type: "expire", actor: audit.Actor{Gateway: part}})
	return err == nil, err
}
