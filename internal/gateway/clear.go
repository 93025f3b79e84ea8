package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// clearPage is how much of a log Clear reads, in bytes. A conversation with a longer log has messages.
const clearPage = 64 << 10

// errUsed is returned if a conversation has messages or turns.
var errUsed = errors.New("gateway: the conversation has messages")

// Clear deletes a conversation of the principal if it has no message and no turn. If it has, or a legal hold protects it,
// nothing changes and deleted is false. The check is part of the commit, so a message that arrives at the same time
// isn't lost. It also returns false without an error if the conversation doesn't exist.
func (g *Gateway) Clear(ctx context.Context, p Principal, conversation string) (deleted bool, err error) {
	w, err := g.writers.acquire(ctx, conversation)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer w.release()
	s := w.info()
	if err := Decide(p, ActionDelete, &s); err != nil {
		return false, err
	}
	if s.Tenant != p.Tenant || s.Owner != p.Subject {
		return false, nil // an admin may read it, but it belongs to another user
	}
	c := Command{Type: CommandDelete, actor: Actor(ctx, p)}
	_, err = g.removals.run(ctx, s, c, func(release func()) (Ack, error) {
		return commands{w}.delete(ctx, c, func(s *journal.Summary) error {
			// A turn may be running although the log has no message yet, such as one that a producer began.
			if len(w.turns.active()) > 0 || len(s.Open) > 0 {
				return errUsed
			}
			return checkUnused(ctx, g.journal, w.id)
		}, release)
	})
	if r, ok := errors.AsType[*Rejection](err); errors.Is(err, errUsed) || ok && r.Reason == ReasonHeld {
		return false, nil
	}
	return err == nil, err
}

// checkUnused returns errUsed if the log has a message or a turn. It folds the beginning of the log, because events
// of the title and of metadata don't count as use.
func checkUnused(ctx context.Context, j Journal, conversation string) error {
	r, err := j.Read(ctx, conversation, 0, clearPage)
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	if r.HasMore || r.Trimmed > 0 {
		return errUsed
	}
	var t transcript.Transcript
	for i := range r.Events {
		if err := t.Apply(&r.Events[i]); err != nil {
			return fmt.Errorf("gateway: fold: %w", err)
		}
	}
	if len(t.Messages) > 0 || len(t.Turns) > 0 {
		return errUsed
	}
	return nil
}

// errFresh is returned if a conversation was used since it was selected for deletion.
var errFresh = errors.New("gateway: the conversation is in use")

// Expire deletes a conversation whose last change is older than before, in epoch milliseconds, and which has no unfinished
// turn. Otherwise, or if a legal hold protects it, nothing changes and deleted is false. part names the part of the gateway
// that deletes, for the audit log. It isn't decided for a principal: retention acts for the gateway itself, and only
// code in this process can call it.
func (g *Gateway) Expire(ctx context.Context, part, conversation string, before int64) (deleted bool, err error) {
	w, err := g.writers.acquire(ctx, conversation)
	if errors.Is(err, ErrNotFound) {
		return false, nil // deleted meanwhile
	}
	if errors.Is(err, ErrDamaged) {
		return g.removals.expireDamaged(ctx, part, conversation, before)
	}
	if err != nil {
		return false, err
	}
	defer w.release()
	release, err := g.holds.Removing(w.info())
	if err != nil {
		return false, nil
	}
	defer func() { release() }()
	_, err = commands{w}.delete(ctx, Command{Type: "expire", actor: audit.Actor{Gateway: part}}, func(s *journal.Summary) error {
		if s.Updated >= before || len(s.Open) > 0 || len(w.turns.active()) > 0 {
			return errFresh
		}
		return nil
	}, func() { release(); release = func() {} })
	if errors.Is(err, errFresh) || errors.Is(err, ErrNotFound) { // used or deleted meanwhile
		return false, nil
	}
	return err == nil, err
}
