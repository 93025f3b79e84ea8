package channel

import (
	"fmt"
	"net/http"
)

// ServeWebhook passes a request of a platform to a channel. An error wraps [ErrUnknownChannel] if no channel with that name receives
// webhooks; then nothing was written.
func (p *Pipeline) ServeWebhook(w http.ResponseWriter, r *http.Request, name string) error {
	if c := p.connector(name); c != nil {
		if ch, ok := c.runtime().channel.(WebhookChannel); ok {
			ch.ServeWebhook(w, r, c)
			return nil
		}
	}
	return fmt.Errorf("%w: %q", ErrUnknownChannel, name)
}
