package gateway

import (
	"context"
	"log/slog"
	"sync"

	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
)

// removals deletes what is stored of conversations. A deletion is committed by the conversation's writer first; what is left then is
// removed in steps that can be repeated, so that the next start finishes a deletion that was interrupted.
type removals struct {
	journal     Journal
	feeds       *feed.Registry
	audit       *audit.Log
	holds       *Holds
	compactor   *compactor
	captures    *capture.Log
	attachments Attachments
	log         *slog.Logger
}

// run calls remove, unless a legal hold is on the conversation; then it records the refusal in the audit log and returns a *Rejection.
// No hold is placed until remove returns, or calls release because the removal is committed and more work follows.
func (r *removals) run(ctx context.Context, s journal.Summary, c Command, remove func(release func()) (Ack, error)) (Ack, error) {
	release, err := r.holds.Removing(s)
	if err != nil {
		e := audit.Entry{Action: c.Type, Actor: c.actor, Conversation: s.ID, Result: ReasonHeld}
		if aerr := r.audit.Record(ctx, e); aerr != nil {
			r.log.Warn("refusal not written to the audit log", "conversation", s.ID, "error", aerr)
		}
		return Ack{}, err
	}
	release = sync.OnceFunc(release)
	defer release()
	return remove(release)
}

// finish removes what is stored of a conversation whose deletion is committed. It can be repeated.
func (r *removals) finish(ctx context.Context, id string) error {
	// Audit entries that are written after the blanking would stay, so they are written first.
	if err := r.audit.Flush(ctx); err != nil {
		return err
	}
	return r.erase(ctx, id)
}

// erase removes everything that is stored of a conversation. The journal is the last, because its mark of the unfinished delete
// makes the next start repeat the rest.
func (r *removals) erase(ctx context.Context, id string) error {
	if err := r.captures.Forget(ctx, id); err != nil {
		return err
	}
	if err := r.attachments.Erase(ctx, id); err != nil {
		return err
	}
	return r.journal.Delete(ctx, id)
}
