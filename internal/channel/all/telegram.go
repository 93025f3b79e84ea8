package all

import (
	"log/slog"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/telegram"
)

// telegramOptions need a webhook only if the gateway has a public address and shall not poll.
var telegramOptions = append(agent.SecretOptions("token", "token of the bot, from @BotFather", "TELEGRAM_BOT_TOKEN"),
	agent.Option{Name: "streaming", Help: "whether answers are shown while they are written", Default: "true"},
	agent.Option{Name: "webhook", Help: "public address of /api/channels/NAME/webhook at this gateway, if Telegram shall call it", Default: "none: the bot polls"},
	agent.Option{Name: "url", Help: "address of another Bot API server", Default: "that of Telegram"},
)

// openTelegram makes a Telegram channel. One token belongs to one gateway: the server refuses two that poll.
func openTelegram(s agent.Spec, log *slog.Logger) (channel.Channel, error) {
	token, err := secretOf(s, "token", "TELEGRAM_BOT_TOKEN")
	if err != nil {
		return nil, err
	}
	o := telegram.Options{Name: s.Name, Token: token, Webhook: s.Options["webhook"], URL: s.Options["url"], Log: log}
	if o.Streaming, err = s.Bool("streaming", true); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	return telegram.New(o), nil
}
