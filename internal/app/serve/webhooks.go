package serve

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/webhook"
	"github.com/leat-dev/leat/transcript"
)

// webhookViewer lets webhooks read the conversations that they report on, with the rights of the admin. A deleted
// conversation has nothing to read, which is not an error.
func webhookViewer(gw *gateway.Gateway) webhook.ReadTranscript {
	return func(ctx context.Context, conversation string, fn func(*transcript.Transcript) bool) error {
		err := gw.ViewTranscript(ctx, gateway.Principal{Admin: true}, conversation, fn)
		if errors.Is(err, gateway.ErrNotFound) {
			return nil
		}
		return err
	}
}
