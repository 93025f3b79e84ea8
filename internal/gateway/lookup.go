// Whether a conversation has a message or a turn. Only the newest are in memory; for older ones the log is read once.

package gateway

import (
	"context"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/transcript"
)

// isOldMessageID reports whether a message that is no longer in memory already has m's id. It has to read the whole log, so it
// skips UUIDs, which don't repeat. Clients that number their messages restart at 1 with every page load.
func (w *writer) isOldMessageID(ctx context.Context, m *CommandMessage) (bool, error) {
	if m == nil || m.ID == "" || uuid.Validate(m.ID) == nil || !w.isNewMessageID(m.ID) {
		return false, nil
	}
	earlier := false
	w.feed.View(func(t *transcript.Transcript) { earlier = t.Earlier })
	if !earlier {
		return false, nil
	}
	history, _, err := w.readLog(ctx)
	if err != nil {
		return false, JournalError("look for message", err)
	}
	return history.Message(m.ID) != nil, nil
}

// isNewMessageID reports whether no message in memory has the id. Older messages may have it.
func (w *writer) isNewMessageID(id string) (isNew bool) {
	w.feed.View(func(t *transcript.Transcript) { isNew = t.Message(id) == nil })
	return isNew
}

// readLog folds the conversation's whole log, and returns the seq of its last event.
func (w *writer) readLog(ctx context.Context) (*transcript.Transcript, int64, error) {
	r, err := w.core.journal.Read(ctx, w.id, 0, 0)
	if err != nil {
		return nil, 0, err
	}
	t := &transcript.Transcript{}
	for i := range r.Events {
		if err := t.Apply(&r.Events[i]); err != nil {
			return nil, 0, err
		}
	}
	return t, r.Head, nil
}

// hasTurn reports whether a turn belongs to the conversation, however old it is.
func (w *writer) hasTurn(turn string) bool {
	v, err := w.core.journal.Get(w.core.life, journalkey.Turn(turn))
	return err == nil && string(v) == w.id
}
