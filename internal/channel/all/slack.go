package all

import (
	"cmp"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/slack"
)

// slackOptions allow two ways to receive. Socket Mode needs no public address, and requests need no open connection.
var slackOptions = slices.Concat(
	agent.SecretOptions("token", "token of the bot, which begins with xoxb-", "SLACK_BOT_TOKEN"),
	agent.SecretOptions("app_token", "app-level token, which begins with xapp-, to receive by Socket Mode", "SLACK_APP_TOKEN"),
	agent.SecretOptions("signing_secret", "signing secret, to receive requests at /api/channels/NAME/webhook", "SLACK_SIGNING_SECRET"),
	[]agent.Option{
		{Name: "streaming", Help: "whether answers are shown while they are written", Default: "true"},
		{Name: "url", Help: "address of another server with the Web API", Default: "that of Slack"},
	},
)

// openSlack makes a Slack channel, which receives by Socket Mode if it has an app-level token.
func openSlack(s agent.Spec, log *slog.Logger) (channel.Channel, error) {
	token, err := secretOf(s, "token", "SLACK_BOT_TOKEN")
	if err != nil {
		return nil, err
	}
	o := slack.Options{Name: s.Name, Token: token, URL: s.Options["url"], Log: log}
	// One of the next two is needed, which Check finds out.
	if o.AppToken, err = s.Secret("app_token"); err != nil {
		return nil, err
	}
	if o.SigningSecret, err = s.Secret("signing_secret"); err != nil {
		return nil, err
	}
	o.AppToken = cmp.Or(o.AppToken, strings.TrimSpace(os.Getenv("SLACK_APP_TOKEN")))
	o.SigningSecret = cmp.Or(o.SigningSecret, strings.TrimSpace(os.Getenv("SLACK_SIGNING_SECRET")))
	if o.Streaming, err = s.Bool("streaming", true); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	return slack.New(o), nil
}
