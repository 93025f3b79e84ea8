package whatsapp

import (
	"context"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
)

// receiptLimit limits the request of a read receipt, because the next ones wait for it.
const receiptLimit = 5 * time.Second

// identifyAgain are the waits after failed attempts to reach the API.
var identifyAgain = retry.Schedule{Initial: time.Second, Max: time.Minute, Jitter: true}

// Run implements [channel.Channel]. It checks the token and the number, and then sends read receipts: messages arrive at the
// webhook.
func (n *number) Run(ctx context.Context, _ channel.Inbox) error {
	if err := n.identify(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case id := <-n.receipts:
			if err := n.sendReceipt(ctx, id); err != nil { // it is not necessary
				n.log.Debug("read receipt was not sent", "error", err)
			}
		}
	}
}

// identify asks for the number itself. It retries until ctx ends or the token or the number is refused.
func (n *number) identify(ctx context.Context) error {
	for failed := 1; ; failed++ {
		var account struct {
			Phone string `json:"display_phone_number"`
		}
		err := n.client.call(ctx, http.MethodGet, path(n.options.Number)+"?fields=display_phone_number,verified_name", nil, &account)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			n.phone.Store(&account.Phone)
			n.log.Info("WhatsApp number is ready", "link", n.Link())
			return nil
		case isRefused(err):
			return err
		}
		if failed == 1 { // once for an outage
			n.log.Warn("WhatsApp can't be reached; trying again", "error", err)
		}
		_ = retry.Sleep(ctx, identifyAgain.Wait(failed)) // if ctx ends, so does the loop
	}
}

// sendReceipt marks a message as read and shows the typing indicator.
func (n *number) sendReceipt(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, receiptLimit)
	defer cancel()
	params := map[string]any{
		"messaging_product": "whatsapp", "status": "read", "message_id": id, "typing_indicator": map[string]string{"type": "text"},
	}
	return n.client.call(ctx, http.MethodPost, path(n.options.Number)+"/messages", params, nil)
}
