package discord

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
)

// command is a slash command of the application, in the form in which the platform also returns it. Optional fields are missing there
// or have their defaults.
type command struct {
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Options     []options `json:"options,omitempty"`
	// Contexts are where the command can be used, and Installs how the bot was added: the bot has to be in the channel to reply.
	Contexts []int `json:"contexts"`
	Installs []int `json:"integration_types"`
}

// options are the arguments of a command. Type 3 is a text.
type options struct {
	Type        int    `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required,omitempty"`
}

// commands returns those that the pipeline knows. Discord demands a description for each argument, and shows it while a person types.
func commands() []command {
	var list []command
	for _, c := range channel.Commands() {
		o := command{Name: c.Name, Description: c.About}
		if c.Argument != "" {
			o.Options = []options{{Type: 3, Name: c.Argument, Description: "The " + c.Argument, Required: c.Required}}
		}
		list = append(list, o)
	}
	const inServer, inDirectChat, addedToServer = 0, 1, 0
	for i := range list {
		list[i].Contexts, list[i].Installs = []int{inServer, inDirectChat}, []int{addedToServer}
	}
	return list
}

// registerAgain are the waits after failed requests to register the commands. A failure does little harm, so the waits are long.
var registerAgain = retry.Schedule{Initial: time.Second, Max: 5 * time.Minute, Jitter: true}

// register makes sure that the slash commands are registered. It retries until ctx ends or the platform refuses them: the bot works
// without them, because a command can also be written as a message.
func (c *bot) register(ctx context.Context, application string) {
	for failed := 1; ; failed++ {
		err := c.updateCommands(ctx, application)
		e := refusal(err)
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case e.Status != 0 && e.Status < http.StatusInternalServerError && e.Status != http.StatusTooManyRequests:
			c.log.Error("the slash commands of a Discord bot can't be registered", "error", err)
			return
		case failed == 1:
			c.log.Warn("the slash commands of a Discord bot can't be registered; trying again", "error", err)
		}
		if retry.Sleep(ctx, max(registerAgain.Wait(failed), e.RetryAfter)) != nil {
			return
		}
	}
}

// updateCommands replaces the commands of the application if they differ from those of the bot. Few replacements are allowed in a minute
// and a day, and a bot may be restarted more often.
func (c *bot) updateCommands(ctx context.Context, application string) error {
	var current []command
	if err := c.client.call(ctx, at(http.MethodGet, "/applications/%s/commands", application), nil, &current); err != nil {
		return err
	}
	own := commands()
	if reflect.DeepEqual(normalize(current), normalize(own)) {
		return nil
	}
	return c.client.call(ctx, at(http.MethodPut, "/applications/%s/commands", application), own, nil)
}

// normalize returns commands in an order that doesn't depend on the platform.
func normalize(list []command) []command {
	list = slices.SortedFunc(slices.Values(list), func(a, b command) int { return cmp.Compare(a.Name, b.Name) })
	for i := range list {
		list[i].Contexts, list[i].Installs = slices.Sorted(slices.Values(list[i].Contexts)), slices.Sorted(slices.Values(list[i].Installs))
		if len(list[i].Options) == 0 {
			list[i].Options = nil // an empty list and a missing one are equal
		}
	}
	return list
}
