package feishu

import (
	"context"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
)

// identifyAgain are the waits after failed attempts to reach the platform.
var identifyAgain = retry.Schedule{Initial: time.Second, Max: time.Minute, Jitter: true}

// Run implements [channel.Channel]. It checks the app and its secret; messages arrive at the webhook.
func (c *bot) Run(ctx context.Context, _ channel.Inbox) error {
	for failed := 1; ; failed++ {
		err := c.identify(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			c.log.Info("Feishu bot is ready", "link", c.Link())
			<-ctx.Done()
			return nil
		case isRefused(err):
			return err
		}
		if failed == 1 { // once for an outage
			c.log.Warn("Feishu can't be reached; trying again", "error", err)
		}
		_ = retry.Sleep(ctx, identifyAgain.Wait(failed)) // if ctx ends, so does the loop
	}
}

// identify asks for the id of the bot itself, by which mentions are recognised.
func (c *bot) identify(ctx context.Context) error {
	response, err := c.client.send(ctx, request{method: http.MethodGet, path: "/bot/v3/info"})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var result struct {
		Bot struct {
			OpenID string `json:"open_id"`
		} `json:"bot"`
	}
	if err := c.client.decode(ctx, response, &result); err != nil {
		return err
	}
	c.openID.Store(&result.Bot.OpenID)
	return nil
}
