// Idempotency keys: the result of a command is stored with its key in the command's own commit, so a repetition gets the same
// result and changes nothing.

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
)

// keyed runs a command alone in its own commit, together with its idempotency key and its audit entry. If the key is known, the
// stored result is returned and do is not called.
func (w *writer) keyed(ctx context.Context, c Command, do func(*tx) (Ack, error)) (Ack, error) {
	never := func(Ack) bool { return false }
	return w.keyedUnless(ctx, c, never, func(t *tx, _ *Ack) (Ack, error) { return do(t) })
}

// keyedUnless is keyed for a command that may have to be carried out a second time. If the key is known and repeats returns true for the
// stored result, do is called with that result; the new result then replaces it. If the key is new, do is called with nil.
func (w *writer) keyedUnless(ctx context.Context, c Command, repeats func(Ack) bool, do func(*tx, *Ack) (Ack, error)) (Ack, error) {
	var ack Ack
	err := w.submit(ctx, func(t *tx) error {
		// Looked up in the job: of two sends with one key, the second must see the result of the first.
		outcome, err := w.storedOutcome(ctx, c)
		if err != nil {
			return err
		}
		var earlier *Ack
		if outcome != nil {
			earlier = &outcome.Ack
			if !repeats(*earlier) {
				ack = *earlier
				ack.Repeated = true
				w.core.metrics.countRepeated()
				return nil
			}
		}
		if ack, err = do(t, earlier); err != nil {
			return err
		}
		if err := w.note(t, c, ack); err != nil {
			return err
		}
		return w.remember(t, c, ack)
	})
	if err != nil {
		return Ack{}, commandError(err) // if the context has ended, the job may still change ack
	}
	return ack, nil
}

// storedOutcome returns the result that is stored under a command's key, or nil if the key is new. If the key was used with
// another body, the error is a *Rejection.
func (w *writer) storedOutcome(ctx context.Context, c Command) (*storedOutcome, error) {
	if c.Key == "" {
		return nil, nil
	}
	v, err := w.core.journal.Get(ctx, journalkey.Command(w.id, c.Type, c.Key))
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up key: %w", err)
	}
	var d storedOutcome
	if err := json.Unmarshal(v, &d); err != nil {
		return nil, fmt.Errorf("stored key: %w", err)
	}
	// The same key with another body is a client's mistake. Returning the old result would hide it.
	if d.Hash != c.hash() {
		return nil, reject(ReasonConflict, "key %q was used with another body", c.Key)
	}
	return &d, nil
}

// remember stores a command's result under its key, in the command's own commit. The key of a message lives as long as its
// conversation, because clients may retry a send after days offline. Other keys expire after KeyLife.
func (w *writer) remember(t *tx, c Command, ack Ack) error {
	if c.Key == "" {
		return nil
	}
	v, err := json.Marshal(storedOutcome{Hash: c.hash(), Ack: ack})
	if err != nil {
		return err
	}
	expires := int64(0)
	if c.Type != CommandSend {
		expires = expiryAfter(w.core.cfg.KeyLife)
	}
	t.setKey(journalkey.Command(w.id, c.Type, c.Key), v, expires)
	return nil
}

// note adds a command's audit entry to its commit.
func (w *writer) note(t *tx, c Command, ack Ack) error {
	e := audit.Entry{Action: c.Type, Actor: c.actor, Conversation: w.id, Turn: ack.Turn, Message: ack.Message, Effect: ack.Seq}
	if c.Subject != "" {
		e.Tenant, e.Subject = w.summary.Tenant, c.Subject
	}
	if ack.AlreadyEnded {
		e.Result = ReasonAnswered
	}
	w.wrote(t, c)
	kv, err := w.core.audit.Note(e)
	if err != nil {
		return err
	}
	t.keys = append(t.keys, kv)
	t.afterCommit(w.core.audit.Wake)
	return nil
}

// wrote records that a command leaves a guest's text or name in the log, so that a purge of the guest's data finds it.
func (w *writer) wrote(t *tx, c Command) {
	s := t.current()
	if (c.Type == CommandSend || c.Type == CommandAnswer || c.Type == CommandStop) && !c.actor.Admin && c.actor.Subject != "" && c.actor.Subject != s.Owner {
		t.setKey(journalkey.Wrote(s.Tenant, c.actor.Subject, w.id), []byte("1"), 0)
	}
}
