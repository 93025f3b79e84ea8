package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// clearPage is how much of a log is looked at for a message, in bytes. One that has more is in use.
const clearPage = 64 << 10

// errUsed says that a conversation is not empty.
var errUsed = errors.New("gateway: something was said in the conversation")

// Clear deletes a conversation of the principal's own in which there is no message and no turn; else, or where a hold keeps it, it
// changes nothing. deleted says which. It is decided in the commit: a message that comes meanwhile is not lost.
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
		return false, nil // the admin's own are those of nobody
	}
	c := Command{Type: CommandDelete, actor: Actor(ctx, p)}
	_, err = g.removals.run(ctx, s, c, func(release func()) (Ack, error) {
		return commands{w}.delete(ctx, c, func(s *journal.Summary) error {
			if len(w.turns.active()) > 0 || len(s.Open) > 0 {
				return errUsed
			}
			return checkUnused(ctx, g.journal, w.id)
		}, release)
	})
	var rejection *Rejection
	if errors.Is(err, errUsed) || errors.As(err, &rejection) && rejection.Reason == ReasonHeld {
		return false, nil
	}
	return err == nil, err
}

// checkUnused returns errUsed where the log has a message or a turn.
func checkUnused(ctx context.Context, j Journal, conversation string) error {
	r, err := j.Read(ctx, conversation, 0, clearPage)
	if err != nil {
		return fmt.Errorf("look for messages: %w", err)
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
