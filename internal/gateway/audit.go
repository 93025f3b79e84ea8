package gateway

import (
	"context"

	"github.com/leat-dev/leat/internal/service/audit"
)

type fromKey struct{}

// WithFrom returns a context that carries the address from which a request came, for the audit log.
func WithFrom(ctx context.Context, from string) context.Context {
	return context.WithValue(ctx, fromKey{}, from)
}

// Actor returns the principal of a request in the form that the audit log records.
func Actor(ctx context.Context, p Principal) audit.Actor {
	from, _ := ctx.Value(fromKey{}).(string)
	return audit.Actor{Admin: p.Admin, Acting: p.Acting, Tenant: p.Tenant, Subject: p.Subject, From: from}
}
