package all

import (
	"log/slog"
	"slices"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/wecom"
)

// weComSecret is the variable that has the bot's secret if no option gives it.
const weComSecret = "WECOM_BOT_SECRET"

// weComOptions are the options of the kind wecom, besides those of every channel.
var weComOptions = slices.Concat(
	[]agent.Option{{Name: "bot_id", Help: "id of the bot"}},
	agent.SecretOptions("secret", "secret of the bot's long connection", weComSecret),
	[]agent.Option{
		{Name: "streaming", Help: "whether answers are shown while they are written", Default: "false"},
		{Name: "url", Help: "address of another server, with ws:// or wss://", Default: "that of WeCom"},
	},
)

// openWeCom makes a WeCom bot from its configuration.
func openWeCom(s agent.Spec, log *slog.Logger) (channel.Channel, error) {
	o := wecom.Options{Name: s.Name, BotID: s.Options["bot_id"], URL: s.Options["url"], Log: log}
	var err error
	if o.Secret, err = secretOf(s, "secret", weComSecret); err != nil {
		return nil, err
	}
	if o.Streaming, err = s.Bool("streaming", false); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	return wecom.New(o), nil
}
