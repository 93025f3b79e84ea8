package inspection

import (
	"cmp"
	"context"
	"slices"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Trace returns when each event of a turn arrived and was committed, after a seq; 0 returns all. A running turn's trace ends at its
// last commit. Readers of the turn may see it. If the trace was removed, the error is [gateway.ErrNotFound].
func (in *Inspector) Trace(ctx context.Context, p gateway.Principal, turn string, after int64) (journal.Trace, error) {
	conversation, _, err := in.gateway.Turn(ctx, p, gateway.ActionRead, turn)
	if err != nil {
		return journal.Trace{}, err
	}
	t, err := in.journal.Trace(ctx, conversation, turn)
	if err != nil {
		return journal.Trace{}, gateway.JournalError("look up trace", err)
	}
	start, _ := slices.BinarySearchFunc(t.Commits, after+1, func(c journal.TraceCommit, seq int64) int { return cmp.Compare(c.Seq, seq) })
	t.Commits = append([]journal.TraceCommit{}, t.Commits[start:]...)
	t.Replacements = slices.DeleteFunc(t.Replacements, func(r journal.TraceReplace) bool { return r.Seq <= after })
	return t, nil
}
