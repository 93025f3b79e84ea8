package all

import (
	"log/slog"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/discord"
)

// discordOptions have no choice of channels, because the bot answers in each one to which an administrator adds it.
var discordOptions = append(agent.SecretOptions("token", "token of the bot, from the Developer Portal", "DISCORD_BOT_TOKEN"),
	agent.Option{Name: "streaming", Help: "whether answers are shown while they are written", Default: "true"},
	agent.Option{Name: "url", Help: "address of another server with the API of Discord", Default: "that of Discord"},
)

// openDiscord makes a Discord channel. The token comes from the options, or else from the variable that other bots use as well.
func openDiscord(s agent.Spec, log *slog.Logger) (channel.Channel, error) {
	token, err := secretOf(s, "token", "DISCORD_BOT_TOKEN")
	if err != nil {
		return nil, err
	}
	o := discord.Options{Name: s.Name, Token: token, URL: s.Options["url"], Log: log}
	if o.Streaming, err = s.Bool("streaming", true); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	return discord.New(o), nil
}
