package discord

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/internal/channel"
)

// inbound returns the message of a person, or false for one that a bot or the platform wrote, or that has no content. Messages of
// bots are ignored, because two bots that answer each other would never end. Webhooks are bots as well, although their messages have
// an author that looks like a person.
func inbound(m *message, botID string) (channel.InboundMessage, bool) {
	if m.Author == nil || m.Author.IsBot || m.Webhook != "" || m.Type != typeDefault && m.Type != typeReply {
		return channel.InboundMessage{}, false
	}
	in := channel.InboundMessage{
		ID: m.ID, ChatID: m.Channel, SenderID: m.Author.ID, SenderName: displayName(m.Author, m.Member), Timestamp: m.Timestamp,
		Content: m.Content, Media: m.media(),
	}
	if in.Hints.Group = m.Guild != ""; in.Hints.Group {
		in.Content, in.Hints.Addressed = withoutMention(m.Content, botID)
		if m.Reply != nil && m.Reply.Author != nil && m.Reply.Author.ID == botID {
			in.Hints.Addressed = true
		}
	}
	in.Hints.Command, in.Hints.Args = channel.ParseCommand(in.Content)
	in.Hints.ForceSync = in.Hints.Command != ""
	for _, u := range m.Mentions { // the agent sees names instead of ids
		name := "@" + displayName(&u, nil)
		in.Content = strings.NewReplacer("<@"+u.ID+">", name, "<@!"+u.ID+">", name).Replace(in.Content)
	}
	return in, in.Content != "" || len(in.Media) > 0
}

// withoutMention removes the first mention of a user from a text. It reports whether there was one. The mention only addresses the
// bot. In the text for the agent it would be noise, and it would precede a command.
func withoutMention(text, id string) (string, bool) {
	for _, mention := range []string{"<@" + id + ">", "<@!" + id + ">"} { // the second form is an old one
		if before, after, ok := strings.Cut(text, mention); ok {
			return strings.TrimSpace(strings.TrimSpace(before) + " " + strings.TrimSpace(after)), true
		}
	}
	return text, false
}

// Kinds of interactions.
const (
	interactionCommand = 2
	interactionPress   = 3
)

// message returns the message that stands for an interaction, or false if it stands for none of the pipeline's commands. A pressed
// button has its command as the custom id. In a server the person is a member, in a direct chat a user.
func (e *interactionEvent) message() (channel.InboundMessage, bool) {
	person, text := e.User, e.Data.CustomID
	if e.Member != nil && e.Member.User != nil {
		person = e.Member.User
	}
	if e.Type == interactionCommand {
		text = "/" + e.Data.Name
		for _, o := range e.Data.Options {
			text += " " + strings.TrimSpace(fmt.Sprint(o.Value))
		}
	}
	name, args := channel.ParseCommand(text)
	if name == "" || person == nil || e.Type != interactionCommand && e.Type != interactionPress {
		return channel.InboundMessage{}, false
	}
	return channel.InboundMessage{
		ID: interactionPrefix + e.ID, ChatID: e.Channel, SenderID: person.ID, SenderName: cmp.Or(displayName(person, e.Member), person.ID),
		Timestamp: timeOf(e.ID), Content: text,
		Hints: channel.RoutingHints{ForceSync: true, Command: name, Args: args, Group: e.Guild != "", Addressed: true},
	}, true
}
