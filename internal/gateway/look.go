package gateway

import (
	"context"
	"fmt"

	"github.com/leat-dev/leat/transcript"
)

// Look calls fn with the newest part of a conversation's transcript, and, where fn returns false because what it looks
// for is not there, again with the whole. fn may neither change nor keep what it sees, and has to be quick: the
// conversation stands still while it looks.
func (g *Gateway) Look(ctx context.Context, p Principal, conversation string, fn func(*transcript.Transcript) bool) error {
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
		return journalError("look at conversation", err)
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
