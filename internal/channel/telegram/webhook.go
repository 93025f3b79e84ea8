package telegram

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
)

// secretHeader has the secret that the server was given with the webhook.
const secretHeader = "X-Telegram-Bot-Api-Secret-Token"

// maxUpdate limits the body of a webhook's request, in bytes. Files are not a part of an update, so an update is small.
const maxUpdate = 1 << 20

// secret returns the secret of the bot's webhook. It derives from the token, so it is the same after a restart.
func (c *bot) secret() string {
	h := hmac.New(sha256.New, []byte(c.client.token))
	_, _ = h.Write([]byte("webhook")) // never fails
	return hex.EncodeToString(h.Sum(nil))
}

// receive registers the webhook and waits until ctx ends: the requests of the server bring the updates.
func (c *bot) receive(ctx context.Context) error {
	params := map[string]any{"url": c.webhook, "secret_token": c.secret(), "allowed_updates": updateKinds}
	for failed := 1; ; failed++ {
		err := c.client.call(ctx, requestLimit, "setWebhook", params, nil)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			<-ctx.Done()
			return context.Cause(ctx)
		case code(err) == http.StatusBadRequest || code(err) == http.StatusUnauthorized: // for example an address without TLS
			return err
		}
		c.log.Warn("Telegram webhook can't be set; trying again", "error", err)
		if err := retry.Sleep(ctx, max(pollAgain.Wait(failed), retryAfter(err))); err != nil {
			return err
		}
	}
}

// ServeWebhook implements [channel.WebhookChannel]. The server repeats an update that isn't confirmed with a status of 200.
func (c *bot) ServeWebhook(w http.ResponseWriter, r *http.Request, inbox channel.Inbox) {
	account := c.account.Load()
	switch {
	case c.webhook == "":
		http.Error(w, "the channel polls", http.StatusNotFound)
		return
	// The comparison takes the same time for every wrong secret, so that its beginning can't be guessed.
	case !hmac.Equal([]byte(r.Header.Get(secretHeader)), []byte(c.secret())):
		http.Error(w, "wrong secret", http.StatusUnauthorized)
		return
	case account == nil:
		http.Error(w, "the channel is starting", http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpdate))
	if err != nil {
		http.Error(w, "the body can't be read", http.StatusBadRequest)
		return
	}
	var u update
	if err := json.Unmarshal(body, &u); err != nil {
		http.Error(w, "not an update", http.StatusBadRequest)
		return
	}
	// The offset only matters for polls.
	if _, err := c.take(r.Context(), inbox, account, 0, []update{u}); err != nil {
		c.log.Error("message could not be stored; Telegram repeats it", "error", err)
		http.Error(w, "not stored", http.StatusServiceUnavailable)
	}
}
