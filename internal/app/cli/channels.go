package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

// channelsCmd shows and manages the channels of a running gateway.
type channelsCmd struct {
	List   channelsListCmd   `cmd:"" default:"withargs" help:"List the channels with their states, and the people who want to be admitted."`
	Allow  channelsAllowCmd  `cmd:"" help:"Admit a person by the code that the bot gave them."`
	Send   channelsSendCmd   `cmd:"" help:"Send a message to a chat."`
	Attach channelsAttachCmd `cmd:"" help:"Show a conversation in a chat."`
	Detach channelsDetachCmd `cmd:"" help:"End what attach began."`
}

// channelsListCmd lists the channels. With --check it fails if one doesn't work, for scripts and monitoring.
type channelsListCmd struct {
	operator
	Check bool `help:"Exit with status 1 if a channel doesn't work."`
	JSON  bool `name:"json" help:"Print JSON."`
}

// Run prints a line for each channel, and one for each request to be admitted.
func (c *channelsListCmd) Run(a *app) error {
	channels, requests, err := c.client().Channels(a.ctx)
	if err != nil || c.JSON {
		return a.printJSON(struct {
			Channels []leat.Channel `json:"channels"`
			Pairings []leat.Pairing `json:"pairings"`
		}{channels, requests}, c.explain(err))
	}
	if len(channels) == 0 {
		fmt.Fprintln(a.stderr, "No channels are configured. Start the gateway with --channel telegram, or see docs/channels.")
	}
	w := a.table()
	failed := ""
	for _, ch := range channels {
		state := "ready"
		switch {
		case !ch.Ready && ch.Error == "": // a plugin that is starting
			state, failed = "not ready", ch.Name
		case !ch.Ready:
			state, failed = "not ready: "+ch.Error, ch.Name
		case ch.Penalized > 0:
			state = fmt.Sprintf("the platform makes %d chats wait until %s", ch.Penalized, time.UnixMilli(ch.PenaltyEnd).Format(time.TimeOnly))
		case ch.LastErr != "":
			state = fmt.Sprintf("%d failed, at %s: %s", ch.Failures, time.UnixMilli(ch.FailedAt).Format(time.DateTime), ch.LastErr)
		}
		about := cmp.Or(ch.Link, capabilityNames(ch.Capabilities))
		fmt.Fprintf(w, "%s\t%s\t%d chats\t%d waiting\t%d delivering\t%s\t%s\n", ch.Name, ch.Kind, ch.Chats, ch.Backlog, ch.Deliveries, about, state)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range requests {
		fmt.Fprintf(a.stdout, "%s (%s) wants to talk to %s; to admit them: leat channels allow %s\n", r.Name, r.Sender, r.Channel, r.Code)
	}
	if c.Check && failed != "" {
		return fmt.Errorf("channel %s doesn't work", failed)
	}
	return nil
}

// capabilityNames lists what a plugin declares. It returns "" for a built-in channel.
func capabilityNames(c *leat.ChannelCapabilities) string {
	if c == nil {
		return ""
	}
	var names []string
	for _, capability := range []struct {
		name string
		has  bool
	}{{"reactions", c.Reactions}, {"files", c.FileUpload}, {"only answers", c.ReactiveOnly}, {"idempotent", c.Idempotent}} {
		if capability.has {
			names = append(names, capability.name)
		}
	}
	return strings.Join(names, ", ")
}

type channelsAllowCmd struct {
	operator
	Code string `arg:"" help:"The code."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run admits the person. The next message of the person is answered.
func (c *channelsAllowCmd) Run(a *app) error {
	p, err := c.client().AllowPerson(a.ctx, c.Code)
	if err != nil || c.JSON {
		return a.printJSON(p, c.explain(err))
	}
	fmt.Fprintf(a.stdout, "%s (%s) may talk to %s now.\n", p.Name, p.Sender, p.Channel)
	return nil
}

type channelsSendCmd struct {
	operator
	Channel string `arg:"" help:"Name of the channel."`
	Chat    string `arg:"" help:"The platform's id of the chat."`
	Text    string `arg:"" help:"The message, as Markdown."`
}

// Run sends the message and returns when the platform has accepted it.
func (c *channelsSendCmd) Run(a *app) error {
	return c.explain(c.client().SendToChat(a.ctx, c.Channel, c.Chat, c.Text))
}

type channelsAttachCmd struct {
	operator
	Channel      string `arg:"" help:"Name of the channel."`
	Chat         string `arg:"" help:"The platform's id of the chat."`
	Conversation string `arg:"" help:"Id of the conversation, or the beginning of its id."`
}

// Run attaches the conversation. A running answer appears in the chat at once.
func (c *channelsAttachCmd) Run(a *app) error {
	return c.explain(c.change(a.ctx, (*leat.Client).AttachChat))
}

// change calls AttachChat or DetachChat.
func (c *channelsAttachCmd) change(ctx context.Context, call func(client *leat.Client, ctx context.Context, channel, chat, conversation string) error) error {
	client := c.client()
	conversation, err := findConversation(ctx, client, c.Conversation)
	if err != nil {
		return err
	}
	return call(client, ctx, c.Channel, c.Chat, conversation)
}

type channelsDetachCmd struct{ channelsAttachCmd }

// Run detaches the conversation. The next message in the chat begins a new one.
func (c *channelsDetachCmd) Run(a *app) error {
	return c.explain(c.change(a.ctx, (*leat.Client).DetachChat))
}
