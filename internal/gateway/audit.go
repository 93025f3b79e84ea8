package gateway

import (
	"context"
	"sync"

	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Audit returns the log of what was done. Reading it is the admin's; a surface asks Decide.
func (g *Gateway) Audit() *audit.Log { return g.audit }

type fromKey struct{}

// WithFrom returns a context that says from which address a request came, for the audit log.
func WithFrom(ctx context.Context, from string) context.Context {
	return context.WithValue(ctx, fromKey{}, from)
}

// by says who asks, for the audit log.
func by(ctx context.Context, p Principal) audit.By {
	from, _ := ctx.Value(fromKey{}).(string)
	return audit.By{Admin: p.Admin, Acting: p.Acting, Tenant: p.Tenant, Subject: p.Subject, From: from}
}

// By says who asks, as the audit log names it.
func (g *Gateway) By(ctx context.Context, p Principal) audit.By { return by(ctx, p) }

// note adds a command's audit entry to its commit.
func (w *writer) note(t *tx, c Command, ack Ack) error {
	e := audit.Entry{Action: c.Type, By: c.by, Conversation: w.id, Turn: ack.Turn, Message: ack.Message, Effect: ack.Seq}
	if c.Subject != "" {
		e.Tenant, e.Subject = w.summary.Tenant, c.Subject
	}
	if ack.AlreadyEnded {
		e.Result = ReasonAnswered
	}
	w.wrote(t, c)
	kv, err := w.g.audit.Note(e)
	if err != nil {
		return err
	}
	t.put = append(t.put, kv)
	t.then(w.g.audit.Wake)
	return nil
}

// removing carries out a command that takes something away, unless a hold keeps it. That a hold refused it is on record.
// do calls release when the removal is committed, if there is more to do then.
func (g *Gateway) removing(ctx context.Context, s journal.Summary, c Command, do func(release func()) (Ack, error)) (Ack, error) {
	release, err := g.holds.Removing(s)
	if err != nil {
		e := audit.Entry{Action: c.Type, By: c.by, Conversation: s.ID, Result: ReasonHeld}
		if aerr := g.audit.Record(ctx, e); aerr != nil {
			g.log.Warn("refusal not in the audit log", "conversation", s.ID, "error", aerr)
		}
		return Ack{}, err
	}
	release = sync.OnceFunc(release)
	defer release()
	return do(release)
}
