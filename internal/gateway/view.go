// Reading a conversation's transcript in memory, and the title that a conversation gets from its first message.

package gateway

import (
	"context"
	"fmt"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// ViewTranscript calls fn with the newest part of a conversation's transcript. If fn returns false because it needs an older
// part, it is called a second time with the whole transcript. fn must not change or retain the transcript, and must be fast,
// because no commit is shown to readers meanwhile. The second call doesn't hold the feed up, but reads and folds all
// of the log. Its transcript has no further part, so the result of fn is ignored then.
func (g *Gateway) ViewTranscript(ctx context.Context, p Principal, conversation string, fn func(*transcript.Transcript) bool) error {
	f, err := g.Feed(ctx, p, conversation)
	if err != nil {
		return err
	}
	defer f.Release()
	isFound := false
	f.View(func(t *transcript.Transcript) { isFound = fn(t) })
	if isFound {
		return nil
	}
	r, err := g.journal.Read(ctx, conversation, 0, 0)
	if err != nil {
		return JournalError("look at conversation", err)
	}
	var history transcript.Transcript
	for i := range r.Events {
		if err := history.Apply(&r.Events[i]); err != nil {
			return fmt.Errorf("gateway: fold: %w", err)
		}
	}
	fn(&history)
	return nil
}

// FirstTitle returns the title that a conversation's first message makes, whatever its title is now. It is empty if there is no
// message yet.
func FirstTitle(ctx context.Context, g *Gateway, p Principal, conversation string) (title string, err error) {
	s, err := g.Conversation(ctx, p, ActionRead, conversation)
	if err != nil {
		return "", err
	}
	err = g.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool {
		if t.Earlier {
			return false // the first one is older than what is in memory
		}
		title = titleIn(t, &s)
		return true
	})
	return title, err
}

// titleIn returns the title that the owner's first message makes, or "". Messages of guests and of channels' other
// users don't count, since the title is the owner's.
func titleIn(t *transcript.Transcript, s *journal.Summary) string {
	for _, m := range t.Messages {
		if m.Role != event.User || m.Author != nil && m.Author.ID != "" && m.Author.ID != s.Owner {
			continue
		}
		for _, p := range m.Parts {
			if title := TitleOf(p.Text(event.Text)); p.Kind == event.KindText && title != "" {
				return title
			}
		}
	}
	return ""
}

// PauseCompaction compacts a conversation's log as far as possible, and prevents its compaction until release is called, so
// that the log stays the same up to the head of the returned summary. New events are still appended, and the conversation can
// still be deleted. It is for copies that are read in several steps, such as exports. Several callers may pause the
// same conversation; only the first one compacts. release may be called twice.
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
	err = w.submit(ctx, func(t *tx) error {
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
