package server

import (
	"context"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
)

// commandLimit bounds a command. It is longer than the gateway retries a commit, so that the gateway's own error, which tells the
// client whether to retry, arrives before this limit.
const commandLimit = 35 * time.Second

// CommandContext returns a context for a change that must not be abandoned halfway: it doesn't end when the client disconnects,
// only after [commandLimit]. Call cancel when the change is made.
func CommandContext(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), commandLimit)
}

// Do runs a command to its end even if the client disconnects.
func Do(ctx context.Context, gw *gateway.Gateway, p gateway.Principal, conversation string, c gateway.Command) (gateway.Ack, error) {
	ctx, cancel := CommandContext(ctx)
	defer cancel()
	return gw.Do(ctx, p, conversation, c)
}
