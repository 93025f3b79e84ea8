package gateway

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
)

// errFresh is returned if a conversation was used since it was selected for deletion.
var errFresh = errors.New("gateway: the conversation is in use")

// Expire deletes a conversation whose last change is older than before, in epoch milliseconds, and which has no unfinished
// turn. Otherwise, or if a legal hold protects it, nothing changes and deleted is false. part names the part of the gateway
// that deletes, for the audit log.
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
