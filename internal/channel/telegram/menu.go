package telegram

import (
	"context"

	"github.com/leat-dev/leat/internal/channel"
)

// menuEntry is a command in the menu of a bot.
type menuEntry struct {
	Command string `json:"command"`
	About   string `json:"description"`
}

// setMenu lists the commands in the menu of the bot. The bot works without it, so a failure is only logged.
func (c *bot) setMenu(ctx context.Context) {
	var menu []menuEntry
	for _, o := range channel.Commands() {
		menu = append(menu, menuEntry{o.Name, o.About})
	}
	if err := c.client.call(ctx, requestLimit, "setMyCommands", map[string]any{"commands": menu}, nil); err != nil && ctx.Err() == nil {
		c.log.Warn("the menu of a Telegram bot can't be set", "error", err)
	}
}
