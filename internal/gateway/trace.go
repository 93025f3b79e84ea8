package gateway

import (
	"cmp"
	"context"
	"slices"

	"github.com/leat-dev/leat/internal/store/journal"
)

// Trace tells when what came of a turn: to the gateway, and into the log, as far as the turn has come; of it what comes after a
// seq, 0 for all. Whoever may read the turn may see it. It is there for as long as traces are kept; else the error is ErrNotFound.
func (g *Gateway) Trace(ctx context.Context, p Principal, turn string, after int64) (journal.Trace, error) {
	conversation, _, err := g.Turn(ctx, p, ActionRead, turn)
	if err != nil {
		return journal.Trace{}, err
	}
	t, err := g.journal.Trace(ctx, conversation, turn)
	if err != nil {
		return journal.Trace{}, JournalError("look up trace", err)
	}
	i, _ := slices.BinarySearchFunc(t.Commits, after+1, func(c journal.TraceCommit, seq int64) int { return cmp.Compare(c.Seq, seq) })
	t.Commits = append([]journal.TraceCommit{}, t.Commits[i:]...)
	t.Replaced = slices.DeleteFunc(t.Replaced, func(r journal.TraceReplace) bool { return r.Seq <= after })
	return t, nil
}
