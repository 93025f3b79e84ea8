package telegram

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// pollTime is how long the server may hold a poll without an update; the API's limit is 50 s.
	pollTime = 30 * time.Second
	// spinnerLimit limits the request that ends the animation of a button, because the next updates wait for it.
	spinnerLimit = 3 * time.Second
)

// updateKinds are the updates that the bot asks for. stopped_message_generation is only sent if it is named.
var updateKinds = []string{"message", "callback_query", "stopped_message_generation"}

// pollAgain are the waits after failed polls.
var pollAgain = retry.Schedule{Initial: time.Second, Max: 30 * time.Second, Jitter: true}

// Run implements [channel.Channel]. Without a webhook it polls, which works behind every firewall.
func (c *bot) Run(ctx context.Context, inbox channel.Inbox) error {
	account, err := c.identify(ctx)
	if err != nil {
		return err
	}
	c.log.Info("Telegram bot is ready", "link", "https://t.me/"+account.Username)
	c.setMenu(ctx)
	if c.webhook != "" {
		return c.receive(ctx)
	}
	failed, offset := 0, int64(0)
	for ctx.Err() == nil {
		var updates []update
		params := map[string]any{"offset": offset, "timeout": int(pollTime / time.Second), "allowed_updates": updateKinds}
		err := c.client.call(ctx, pollTime+requestLimit, "getUpdates", params, &updates)
		if err == nil {
			offset, err = c.take(ctx, inbox, account, offset, updates)
		}
		switch {
		case ctx.Err() != nil:
		case err == nil:
			failed = 0
		// The token was revoked while the bot was running. Only an operator can replace it.
		case code(err) == http.StatusUnauthorized:
			return err
		case has(err, "webhook is active"): // of an earlier configuration
			if err := c.client.call(ctx, requestLimit, "deleteWebhook", struct{}{}, nil); err != nil && ctx.Err() == nil {
				return err
			}
		default:
			failed++
			if failed == 1 { // once for an outage
				c.log.Warn("Telegram updates can't be received; trying again", "error", err)
			}
			_ = retry.Sleep(ctx, max(pollAgain.Wait(failed), retryAfter(err))) // if ctx ends, so does the loop
		}
	}
	return nil
}

// take passes updates to the inbox and returns the offset behind those that it has stored. The next poll confirms them.
func (c *bot) take(ctx context.Context, inbox channel.Inbox, account *user, offset int64, updates []update) (int64, error) {
	for i := 0; i < len(updates); i++ {
		u := &updates[i]
		// An update that brings no message is confirmed as well, or it would be delivered again and again.
		if m, ok := inbound(u, account); ok {
			for i+1 < len(updates) && isSameAlbum(u, &updates[i+1]) { // the files of one message
				i++
				addToAlbum(&m, &updates[i], account)
			}
			if err := inbox.Receive(ctx, m); err != nil {
				return offset, fmt.Errorf("telegram: message %s: %w", m.ID, err)
			}
		}
		if u.Press != nil {
			c.stopSpinner(ctx, u.Press.ID)
		}
		offset = updates[i].ID + 1
	}
	return offset, nil
}

// stopSpinner ends the animation of a pressed button. The platform ends it by itself after a while, so a failure is only logged.
func (c *bot) stopSpinner(ctx context.Context, id string) {
	if err := c.client.call(ctx, spinnerLimit, "answerCallbackQuery", map[string]string{"callback_query_id": id}, nil); err != nil && ctx.Err() == nil {
		c.log.Debug("a pressed button was not confirmed", "error", err)
	}
}

// identify returns the bot itself. It retries until ctx ends or the token is refused.
func (c *bot) identify(ctx context.Context) (*user, error) {
	for failed := 1; ; failed++ {
		var account user
		err := c.client.call(ctx, requestLimit, "getMe", struct{}{}, &account)
		if err == nil {
			c.account.Store(&account)
			return &account, nil
		}
		if code(err) == http.StatusUnauthorized || code(err) == http.StatusNotFound || ctx.Err() != nil {
			return nil, err
		}
		c.log.Warn("Telegram can't be reached; trying again", "error", err)
		if err := retry.Sleep(ctx, max(pollAgain.Wait(failed), retryAfter(err))); err != nil {
			return nil, err
		}
	}
}

// retryAfter returns how long the server has asked to wait, or 0.
func retryAfter(err error) time.Duration { return live.Refusal[apiError](err).RetryAfter }
