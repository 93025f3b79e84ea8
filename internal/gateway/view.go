package gateway

import (
	"context"
	"fmt"

	"github.com/leat-dev/leat/transcript"
)

// ViewTranscript calls fn with the newest part of a conversation's transcript. If fn returns false because it needs an older
// part, it is called a second time with the whole transcript. fn must not change or retain the transcript, and must be fast,
// because no commit is shown to readers meanwhile.
func (g *Gateway) ViewTranscript(ctx context.Context, p Principal, conversation string, fn func(*transcript.Transcript) bool) error {
	f, err := g.Feed(ctx, p, conversation)
	if err != nil {
		return err
	}
	defer f.Release()
	found := false
	f.View(func(t *transcript.Transcript) { found = fn(t) })
	if found {
		return nil
	}
	r, err := g.journal.Read(ctx, conversation, 0, 0)
	if err != nil {
		return JournalError("look at conversation", err)
	}
	var whole transcript.Transcript
	for i := range r.Events {
		if err := whole.Apply(&r.Events[i]); err != nil {
			return fmt.Errorf("gateway: fold: %w", err)
		}
	}
	fn(&whole)
	return nil
}
