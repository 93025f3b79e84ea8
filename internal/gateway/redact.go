// What a person wrote in other people's conversations, for requests to export or delete a person's data.

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Guests finds and removes what subjects have left in conversations of others, for purges of their data.
type Guests struct{ g *Gateway }

// Guests returns access to what guests have left in all conversations.
func (g *Gateway) Guests() Guests { return Guests{g} }

// Conversations lists the conversations of others that are shared with a subject, and those that it has written in.
// Both come from keys, so no log is read.
func (gs Guests) Conversations(ctx context.Context, p Principal, tenant, subject string) (sharedIDs, wrote []string, err error) {
	g := gs.g
	if err := Decide(p, ActionAdmin, nil); err != nil {
		return nil, nil, err
	}
	for _, of := range []struct {
		prefix string
		ids    *[]string
	}{{journalkey.Share(tenant, subject, ""), &sharedIDs}, {journalkey.Wrote(tenant, subject, ""), &wrote}} {
		keys, err := g.journal.Keys(ctx, of.prefix)
		if err != nil {
			return nil, nil, JournalError("list conversations of others", err)
		}
		for _, kv := range keys {
			*of.ids = append(*of.ids, strings.TrimPrefix(kv.Key, of.prefix))
		}
	}
	return sharedIDs, wrote, nil
}

// saidBy reports whether an event contains text of a guest, or the guest's name because the guest stopped the turn.
func saidBy(e *event.Event, subject string) bool {
	b := e.Get()
	switch e.Type {
	case event.MessageAdd:
		return b.Author != nil && b.Author.ID == subject
	case event.TurnResume:
		return b.Answer != nil && b.Answer.Subject == subject
	case event.TurnEnd:
		return b.StoppedBy == subject
	}
	return false
}

// EventsBy calls f with each event of a conversation that contains text or the name of a guest, as it is in the log.
// f's error ends the reading and is returned. The event must not be kept after f returns.
func (gs Guests) EventsBy(ctx context.Context, p Principal, conversation, subject string, f func(*event.Event) error) error {
	g := gs.g
	if _, err := g.Conversation(ctx, p, ActionAdmin, conversation); err != nil {
		return err
	}
	for after, hasMore := int64(0), true; hasMore; {
		r, err := g.journal.Read(ctx, conversation, after, pageBytes)
		if err != nil {
			return JournalError("read conversation", err)
		}
		for i := range r.Events {
			e := &r.Events[i]
			after = e.Seq
			if saidBy(e, subject) {
				if err := f(e); err != nil {
					return err
				}
			}
		}
		hasMore = r.HasMore && len(r.Events) > 0
	}
	return nil
}

// pageBytes is how many bytes of a log are read at once.
const pageBytes = 1 << 20

// Redact removes the messages and the name of a guest from a conversation: readers see the messages empty, and the log doesn't
// contain their text any more. Answers of agents stay. It returns the number of messages. If it is interrupted, it can be
// repeated. A legal hold prevents it.
//
// The order makes an interruption harmless. First readers see empty messages, then the log is overwritten in place,
// and the key that leads here is deleted last, so a purge that is repeated finds the conversation again.
func (gs Guests) Redact(ctx context.Context, p Principal, conversation, subject string) (n int, err error) {
	g := gs.g
	if err := Decide(p, ActionAdmin, nil); err != nil {
		return 0, err
	}
	w, err := g.writers.acquire(ctx, conversation)
	if err != nil {
		return 0, err
	}
	defer w.release()
	s := w.info()
	c := Command{Type: "redact", actor: Actor(ctx, p)}
	_, err = g.removals.run(ctx, s, c, func(func()) (Ack, error) {
		var empty []event.Event
		err := gs.EventsBy(ctx, p, conversation, subject, func(e *event.Event) error {
			if e.Type != event.MessageAdd {
				return nil
			}
			n++
			for i, part := range e.Get().Parts {
				id := cmp.Or(part.ID, fmt.Sprintf("p%d", i+1))
				empty = append(empty, event.Event{Type: event.PartReplace, Message: e.Message, Part: id})
			}
			return nil
		})
		if err != nil {
			return Ack{}, err
		}
		var ack Ack
		err = w.submit(ctx, func(t *tx) error {
			for _, e := range empty {
				ack.Seq = t.add(e)
			}
			return w.note(t, c, ack)
		})
		if err != nil {
			return Ack{}, commandError(err)
		}
		if err := g.journal.Blank(ctx, conversation, func(e *event.Event) bool { return saidBy(e, subject) }); err != nil {
			return ack, JournalError("redact", err)
		}
		w.feed.Forget(subject)
		if len(w.info().Open) == 0 {
			g.compactor.add(conversation, ack.Seq)
		}
		// The captured requests to agents contain the guest's text.
		if err := g.cfg.Raw.Forget(ctx, conversation); err != nil {
			return ack, fmt.Errorf("gateway: redact: %w", err)
		}
		return ack, nil
	})
	if err != nil {
		return 0, err
	}
	if err := g.audit.PutKeys(ctx, journal.KeyValue{Key: journalkey.Wrote(s.Tenant, subject, conversation)}); err != nil {
		return n, JournalError("redact", err)
	}
	return n, nil
}

// Unshare revokes all access that was granted to a subject, for example before its data are purged, and returns the number of
// conversations. It skips conversations that are deleted meanwhile.
func (gs Guests) Unshare(ctx context.Context, p Principal, tenant, subject string) (n int, err error) {
	g := gs.g
	if err := Decide(p, ActionAdmin, nil); err != nil {
		return 0, err
	}
	prefix := journalkey.Share(tenant, subject, "")
	keys, err := g.journal.Keys(ctx, prefix)
	if err != nil {
		return 0, JournalError("list shared conversations", err)
	}
	for _, kv := range keys {
		_, err := g.Do(ctx, p, strings.TrimPrefix(kv.Key, prefix), Command{Type: CommandUnshare, Subject: subject})
		switch {
		case err == nil:
			n++
		case !errors.Is(err, ErrNotFound):
			return n, err
		}
	}
	return n, nil
}
