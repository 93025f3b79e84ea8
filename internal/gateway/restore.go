// The command restore: it undoes a truncate.

package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// errChanged is returned if the conversation has changed since its log was read.
var errChanged = errors.New("gateway: the conversation has changed")

// restore undoes a truncate: it removes the one question that was sent since and its answer, and adds the removed messages again. A turn
// that answers is stopped first.
//
// The order has three steps. First it checks what would be restored, so that a refused restore stops nothing. Then it
// stops the turns, because a restore needs a conversation in which nothing runs. Then it tries to restore until the
// log stays unchanged between reading it and the commit. The result of a restore is a truncate, followed by the
// events that the undone truncate had removed.
func (w commands) restore(ctx context.Context, p Principal, c Command) (Ack, error) {
	var x undo
	var ok bool
	// Looked up in a job: only there it is sure that an earlier truncate or restore, whose caller has the result, has changed the undos.
	err := w.submit(ctx, func(*tx) error {
		x, ok = w.core.undos.get(w.id, c.Seq)
		return nil
	})
	if err != nil {
		return Ack{}, commandError(err)
	}
	if ok {
		// A restore that is refused stops nothing.
		log, err := w.core.journal.Read(ctx, w.id, 0, 0)
		if err != nil {
			return Ack{}, JournalError("restore", err)
		}
		if _, err := removedBy(log.Events, x); err != nil {
			return Ack{}, commandError(err)
		}
	}
	err = w.submit(ctx, func(t *tx) error {
		if _, ok := w.core.undos.get(w.id, c.Seq); !ok {
			return nil // it is refused below, unless it is a repetition
		}
		for _, turn := range slices.Clone(t.current().Open) {
			if t.isOpen(turn) {
				if _, err := w.stop(t, turn, p); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return Ack{}, commandError(err)
	}
	for {
		ack, err := w.tryRestore(ctx, c)
		if !errors.Is(err, errChanged) {
			return ack, err
		}
	}
}

// tryRestore tries a restore once. If the error is errChanged, another attempt can succeed. The log is read before
// the job is queued, because reading a long log would block the writer.
//
// Everything that a restore changes is one commit: the events, the keys of agents' sessions, and the references to
// files. The added events were counted, announced and billed before, so they are marked as a backfill.
func (w commands) tryRestore(ctx context.Context, c Command) (Ack, error) {
	log, err := w.core.journal.Read(ctx, w.id, 0, 0)
	if err != nil {
		return Ack{}, JournalError("restore", err)
	}
	return w.keyed(ctx, c, func(t *tx) (Ack, error) {
		x, ok := w.core.undos.get(w.id, c.Seq)
		if !ok {
			return Ack{}, reject(ReasonUnknown, "it is too late: this can't be undone any more")
		}
		if w.head != log.Head {
			return Ack{}, errChanged
		}
		if len(t.current().Open) > 0 {
			return Ack{}, reject(ReasonConflict, "a turn was started meanwhile; this can't be undone any more")
		}
		r, err := removedBy(log.Events, x)
		if err != nil {
			return Ack{}, err
		}
		if err := w.core.attachments.Retain(ctx, Tx{t}, r.files); err != nil {
			return Ack{}, err
		}
		t.isBackfill = true // what is added was counted, announced and billed before
		t.restored = r.turns
		seq := t.add(event.Event{Type: event.ConversationTruncate, Message: x.after})
		for _, e := range r.events {
			e.MergedFrom = 0
			t.add(e)
		}
		for _, kv := range x.sessions {
			t.setKey(kv.Key, kv.Value, kv.Expires)
		}
		s := t.edit()
		s.Truncated, s.Updated = seq, nowMillis()
		t.afterCommit(func() {
			w.core.undos.drop(w.id)
			w.core.compactor.add(w.id, w.head)
		})
		return Ack{Seq: t.lastSeq()}, nil
	})
}

// restoration is what a truncate has removed and a restore adds again.
type restoration struct {
	events []event.Event
	// turns has the ids of the removed turns, which must not count as new ones.
	turns map[string]bool
	files []event.Part // that show files
}

// removedBy finds in a log what an undoable truncate has removed. It refuses if more was added since than a question
// and its answer. It folds the log twice, up to the truncate and with it, and compares. The result has the events in
// the compacted form, with the ids and times that they had.
func removedBy(log []event.Event, x undo) (r restoration, err error) {
	at := slices.IndexFunc(log, func(e event.Event) bool { return e.Seq == x.truncate })
	if at < 0 {
		return r, reject(ReasonUnknown, "it is too late: this can't be undone any more")
	}
	var before, after transcript.Transcript
	for i := range log[:at+1] {
		if i < at {
			err = before.Apply(&log[i])
		}
		if err := errors.Join(err, after.Apply(&log[i])); err != nil {
			return r, fmt.Errorf("gateway: fold: %w", err)
		}
	}
	hasQuestion := false
	for i := range log[at+1:] {
		e := &log[at+1+i]
		if e.Type != event.MessageAdd || e.Turn != "" {
			continue
		}
		if hasQuestion || e.Get().Role != event.User {
			return r, reject(ReasonConflict, "messages were added meanwhile; this can't be undone any more")
		}
		hasQuestion = true
	}
	messages := map[string]bool{}
	r.turns = map[string]bool{}
	for _, m := range before.Messages {
		if after.Message(m.ID) == nil {
			messages[m.ID] = true
			for _, p := range m.Parts {
				if p.Media != nil {
					r.files = append(r.files, event.Part{Kind: p.Kind, Media: p.Media})
				}
			}
		}
	}
	for _, turn := range before.Turns {
		if after.Turn(turn.ID) == nil {
			r.turns[turn.ID] = true
		}
	}
	for _, e := range transcript.Compact(log[:at]) {
		if e.Message != "" && messages[e.Message] || e.Message == "" && r.turns[e.Turn] {
			r.events = append(r.events, e)
		}
	}
	return r, nil
}
