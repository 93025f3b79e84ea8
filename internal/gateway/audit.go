package gateway

import (
	"context"

	"github.com/leat-dev/leat/internal/service/audit"
)

// Audit returns the log of what was done. Reading it is the admin's; a surface asks Decide.
func (g *Gateway) Audit() *audit.Log { return g.audit }

type fromKey struct{}

// WithFrom returns a context that says from which address a request came, for the audit log.
func WithFrom(ctx context.Context, from string) context.Context {
	return context.WithValue(ctx, fromKey{}, from)
}

// By returns the principal of a request as the audit log names it.
func By(ctx context.Context, p Principal) audit.Actor {
	from, _ := ctx.Value(fromKey{}).(string)
	return audit.Actor{Admin: p.Admin, Acting: p.Acting, Tenant: p.Tenant, Subject: p.Subject, From: from}
}

// note adds a command's audit entry to its commit.
func (w *writer) note(t *tx, c Command, ack Ack) error {
	e := audit.Entry{Action: c.Type, Actor: c.by, Conversation: w.id, Turn: ack.Turn, Message: ack.Message, Effect: ack.Seq}
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
