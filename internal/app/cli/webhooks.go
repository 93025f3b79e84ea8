package cli

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/webhook"
	"github.com/leat-dev/leat/transcript"
)

// look lets webhooks see the conversations that they tell of. One that is gone has nothing to see.
func look(gw *gateway.Gateway) webhook.Look {
	return func(ctx context.Context, conversation string, fn func(*transcript.Transcript) bool) error {
		err := gw.ViewTranscript(ctx, gateway.Principal{Admin: true}, conversation, fn)
		if errors.Is(err, gateway.ErrNotFound) {
			return nil
		}
		return err
	}
}
