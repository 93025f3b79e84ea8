// Conversations that are created with their events, such as those of an export. The events get new seqs, and turns without an end
// get one.

package gateway

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// Imported is a conversation from another gateway.
type Imported struct {
	// Summary has the id, tenant, owner, title, agent, metadata, and the times of creation and last change. Other fields are ignored.
	Summary journal.Summary
	// Events are its log in order. They get new seqs.
	Events []event.Event
	// Digest is a digest of the export. If a conversation was imported with the same digest before, nothing changes.
	Digest string
}

// Import creates a conversation from an export, completely or not at all. Its id is the result of [ConversationID]. added is
// false if the same import was done before. If the import is refused, the error is a *Rejection: ReasonConflict if its id, or
// that of a turn, is in use or was used, ReasonInvalid if the events are not a valid conversation. A turn without an end gets
// one.
func (g *Gateway) Import(ctx context.Context, p Principal, in Imported) (added bool, err error) {
	if err := Decide(p, ActionAdmin, nil); err != nil {
		return false, err
	}
	if g.Draining() {
		return false, reject(ReasonDraining, "the gateway is stopping; try again in a moment")
	}
	s := in.Summary
	if err := checkImported(&s); err != nil {
		return false, err
	}
	// The digest makes a repeated import harmless, for example after a connection that broke before the answer.
	switch digest, err := g.journal.Get(ctx, journalkey.Import(s.ID)); {
	case err == nil && string(digest) == in.Digest:
		return false, nil
	case err != nil && !errors.Is(err, journal.ErrNotFound):
		return false, JournalError("import", err)
	}
	if _, err := g.journal.Conversation(ctx, s.ID); !errors.Is(err, journal.ErrNotFound) {
		return false, creationError(err)
	}
	events, turns, err := renumber(in.Events)
	if err != nil {
		return false, err
	}
	// Both follow from the renumbered events: every turn has ended, and the last truncate has another seq.
	s.Open, s.WaitingTurns, s.Truncated = nil, nil, 0
	for i := range events {
		if events[i].Type == event.ConversationTruncate {
			s.Truncated = events[i].Seq
		}
	}
	b := journal.Batch{Conversation: s.ID, Create: true, Summary: &s, Events: events}
	// A turn id leads to one conversation, so a turn can't be in two of them.
	for _, id := range turns {
		if _, err := g.journal.Get(ctx, journalkey.Turn(id)); err == nil {
			return false, reject(ReasonConflict, "the turn id %q is taken by another conversation", id)
		} else if !errors.Is(err, journal.ErrNotFound) {
			return false, JournalError("import", err)
		}
		b.Keys = append(b.Keys, journal.KeyValue{Key: journalkey.Turn(id), Value: []byte(s.ID)})
	}
	note, err := g.audit.Note(audit.Entry{Action: "import", Actor: Actor(ctx, p), Conversation: s.ID, Tenant: s.Tenant, Subject: s.Owner})
	if err != nil {
		return false, err
	}
	b.Keys = append(b.Keys, note, journal.KeyValue{Key: journalkey.Import(s.ID), Value: []byte(in.Digest)})
	if err := g.journal.Append(ctx, b); err != nil {
		return false, creationError(err)
	}
	g.audit.Wake()
	g.compactor.add(s.ID, int64(len(events)))
	notifyCreated(g.cfg.Watchers, &s)
	return true, nil
}

// creationError returns the error for a conversation that can't be created. If err is nil, the conversation exists already.
func creationError(err error) error {
	switch {
	case err == nil, errors.Is(err, journal.ErrExists):
		return reject(ReasonConflict, "the id already exists")
	case errors.Is(err, journal.ErrDeleted):
		return reject(ReasonConflict, "a conversation with this id was deleted; ids of deleted conversations can't be used again")
	}
	return JournalError("import", err)
}

// checkImported checks the summary of an imported conversation and sets its id.
func checkImported(s *journal.Summary) error {
	if s.ID == "" {
		return reject(ReasonInvalid, "the conversation has no id")
	}
	id, err := ConversationID(s.Tenant, s.ID)
	if err := errors.Join(err, checkMeta(&s.Title, s.Metadata)); err != nil {
		return err
	}
	s.ID = id
	for name, v := range map[string]string{"tenant": s.Tenant, "owner": s.Owner, "agent": s.Agent} {
		if err := event.CheckID(name, v); err != nil {
			return reject(ReasonInvalid, "%v", err)
		}
	}
	return nil
}

// renumber returns the events of a log with the seqs 1, 2, 3 and so on, with ends for turns that have none; and the ids of its
// turns.
func renumber(in []event.Event) (events []event.Event, turns []string, err error) {
	var t transcript.Transcript
	seenTurns := map[string]bool{}
	at := int64(0)
	for i, e := range in {
		e.Seq, e.MergedFrom = int64(i)+1, 0
		// These events belong to one gateway's log: records of its own, and the end of a conversation. An export never contains
		// them.
		if e.Type == event.Record || e.Type == event.ConversationDelete || e.Partial {
			return nil, nil, reject(ReasonInvalid, "event %d: %s can't be imported", i+1, e.Type)
		}
		// Applying each event finds what Validate can't: an event that doesn't fit the ones before it.
		err := e.Validate()
		if err == nil {
			err = t.Apply(&e)
		}
		if err != nil {
			return nil, nil, reject(ReasonInvalid, "event %d: %v", i+1, err)
		}
		if e.Turn != "" && !seenTurns[e.Turn] {
			seenTurns[e.Turn] = true
			turns = append(turns, e.Turn)
		}
		at = max(at, e.At)
		events = append(events, e)
	}
	// A child's end comes before its parent's.
	for i := len(t.Turns) - 1; i >= 0; i-- {
		if turn := t.Turns[i]; turn.Unfinished() {
			events = append(events, event.Event{Seq: int64(len(events)) + 1, At: at, Type: event.TurnEnd, Turn: turn.ID, Body: &event.Body{
				Outcome: event.Interrupted, Reason: "imported", Error: &event.Error{Code: "imported", Message: "the turn was unfinished when it was exported"},
			}})
		}
	}
	return events, turns, nil
}
