package slack

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/channel"
)

// subtypes are the kinds of messages that people write. Others are edits, joins and messages of programs. A broadcast is a reply in a
// thread that is also shown in the channel.
var subtypes = []string{"", "file_share", "thread_broadcast", "me_message"}

// inbound returns the message that an event brings, or false if it brings none. An event about a mention and one about the message
// with it bring the same message. The inbox takes the first of them, because both have the same id.
func (c *bot) inbound(ctx context.Context, self *account, m *message) (channel.InboundMessage, bool) {
	if m.Type != "message" && m.Type != "app_mention" || !slices.Contains(subtypes, m.Subtype) || m.Bot != "" || m.User == "" || m.User == self.User ||
		m.Channel == "" || timeOf(m.TS).IsZero() {
		return channel.InboundMessage{}, false
	}
	lookups, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	at := place{channel: m.Channel, thread: m.Thread}
	isGroup := !at.isDirect()
	if isGroup {
		at.thread = cmp.Or(m.Thread, m.TS) // the answer to a message at the top begins a thread
	}
	in := channel.InboundMessage{
		ID: reference(m.Channel, m.TS, m.User), ChatID: at.id(), SenderID: m.User, SenderName: c.person(lookups, m.User).name,
		Timestamp: timeOf(m.TS).Truncate(time.Second),
	}
	text, isMentioned := withoutMention(m.Text, self.User)
	in.Content = plain(text, func(user string) string { return c.person(lookups, user).name })
	in.Hints.Group, in.Hints.Addressed = isGroup, isGroup && (isMentioned || m.Parent == self.User)
	in.Hints.Command, in.Hints.Args = channel.ParseCommand(in.Content)
	in.Hints.ForceSync = in.Hints.Command != ""
	in.Media = media(m.Files)
	return in, in.Content != "" || len(in.Media) > 0
}

// pressed returns a pressed button as the command that it stands for, or false if it stands for none. The id contains the time of the
// press, because the same person can press the same button again.
func (c *bot) pressed(p *press) (channel.InboundMessage, bool) {
	if p.Type != "block_actions" || len(p.Actions) == 0 || p.User.ID == "" || p.Channel.ID == "" {
		return channel.InboundMessage{}, false
	}
	action := p.Actions[0]
	in := channel.InboundMessage{
		ID: "press/" + p.Channel.ID + "/" + p.Container.Message + "/" + p.User.ID + "/" + action.TS, SenderID: p.User.ID,
		Timestamp: timeOf(action.TS).Truncate(time.Second),
		Content:   action.Value,
	}
	sender, _ := c.people.get(p.User.ID)
	in.SenderName = cmp.Or(sender.name, p.User.Name)
	at := place{channel: p.Channel.ID, thread: cmp.Or(p.Container.Thread, p.Message.Thread)}
	if at.thread == p.Container.Message && at.isDirect() {
		at.thread = "" // the first message of a thread is not in the thread
	}
	in.ChatID = at.id()
	in.Hints.Command, in.Hints.Args = channel.ParseCommand(action.Value)
	in.Hints.ForceSync, in.Hints.Group, in.Hints.Addressed = true, !at.isDirect(), true
	return in, in.Hints.Command != ""
}

// commanded returns a slash command. An app may have one for each of Leat's commands, such as /new, or one for all, such as
// "/leat new". Slack doesn't say in which thread it was typed, so it belongs to the channel. A command has no id of a message, so its
// trigger stands in for one.
func (c *bot) commanded(s *slash, at time.Time) (channel.InboundMessage, bool) {
	in := channel.InboundMessage{
		ID: "command/" + s.Trigger, ChatID: s.Channel, SenderID: s.User, Timestamp: at.Truncate(time.Second),
		Content: strings.TrimSpace(s.Command + " " + s.Text),
	}
	sender, _ := c.people.get(s.User)
	in.SenderName = cmp.Or(sender.name, s.Name)
	in.Hints.Command, in.Hints.Args = channel.ParseCommand(in.Content)
	if in.Hints.Command == "" {
		in.Content = s.Text
		in.Hints.Command, in.Hints.Args = channel.ParseCommand("/" + s.Text)
	}
	in.Hints.ForceSync = in.Hints.Command != ""
	in.Hints.Group, in.Hints.Addressed = !place{channel: s.Channel}.isDirect(), true
	return in, s.User != "" && s.Channel != "" && s.Trigger != "" && in.Content != ""
}
