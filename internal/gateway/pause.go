package gateway

import (
	"context"

	"github.com/leat-dev/leat/internal/store/journal"
)

// PauseCompaction compacts a conversation's log as far as possible, and prevents its compaction until release is called, so
// that the log stays the same up to the head of the returned summary. New events are still appended, and the conversation can
// still be deleted. It is for copies that are read in several steps, such as exports.
func (g *Gateway) PauseCompaction(ctx context.Context, p Principal, conversation string) (journal.Summary, func(), error) {
	w, err := g.writers.acquire(ctx, conversation)
	if err != nil {
		return journal.Summary{}, nil, err
	}
	defer w.release()
	s := w.info()
	if err := Decide(p, ActionRead, &s); err != nil {
		return s, nil, err
	}
	release, isFirst := g.compactor.pause(conversation)
	var upto int64
	err = w.submit(ctx, true, func(t *tx) error {
		if len(t.current().Open) == 0 && len(w.turns.active()) == 0 {
			upto = w.head
		}
		return nil
	})
	if err == nil && upto > 0 && isFirst {
		err = g.compactor.compact(ctx, conversation, upto)
	}
	if err == nil {
		s, err = g.journal.Conversation(ctx, conversation)
	}
	if err != nil {
		release()
		return s, nil, JournalError("read conversation", err)
	}
	return s, release, nil
}
