package telegram

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/channel"
)

// inbound returns the message that an update brings, or false if it brings none. me is the bot.
func inbound(u *update, account *user) (channel.InboundMessage, bool) {
	switch {
	case u.Stop != nil:
		return stopCommand(u), true
	case u.Press != nil && u.Press.Message != nil:
		return press(u), true
	case u.Message == nil || u.Message.From == nil || u.Message.From.IsBot:
		return channel.InboundMessage{}, false
	}
	m := u.Message
	text := cmp.Or(m.Text, m.Caption)
	in := channel.InboundMessage{
		ID: messageRef(m.Chat.ID, m.ID), ChatID: m.place().id(), SenderID: strconv.FormatInt(m.From.ID, 10), SenderName: m.From.name(), Timestamp: time.Unix(m.Date, 0),
	}
	in.Hints.Command, in.Hints.Args = channel.ParseCommand(text)
	in.Hints.ForceSync = in.Hints.Command != ""
	in.Content = text
	if in.Hints.Group = m.Chat.Type != "private"; in.Hints.Group {
		in.Content, in.Hints.Addressed = withoutMention(text, account.Username)
		if m.Reply != nil && m.Reply.From != nil && m.Reply.From.ID == account.ID {
			in.Hints.Addressed = true
		}
	}
	in.Media = m.media()
	return in, in.Content != "" || len(in.Media) > 0
}

// isSameAlbum reports whether two updates bring files that a person sent as one message. The platform makes a message of each,
// one after another.
func isSameAlbum(u, o *update) bool {
	return o.Message != nil && o.Message.Album != "" && o.Message.Album == u.Message.Album && o.Message.Chat.ID == u.Message.Chat.ID
}

// addToAlbum adds the file of an update to the message that the first update of its album brought. The text is the caption of any
// of them.
func addToAlbum(m *channel.InboundMessage, u *update, account *user) {
	o, ok := inbound(u, account)
	if !ok {
		return
	}
	m.Media = append(m.Media, o.Media...)
	if m.Content == "" {
		m.Content, m.Hints = o.Content, o.Hints
	}
}

// press returns a pressed button as the command that it stands for.
func press(u *update) channel.InboundMessage {
	p := u.Press
	in := channel.InboundMessage{
		ID: "press/" + p.ID, ChatID: p.Message.place().id(), SenderID: strconv.FormatInt(p.From.ID, 10), SenderName: p.From.name(),
		Timestamp: time.Unix(p.Message.Date, 0), Content: p.Data,
	}
	in.Hints.Command, in.Hints.Args = channel.ParseCommand(p.Data)
	in.Hints.ForceSync, in.Hints.Group, in.Hints.Addressed = true, p.Message.Chat.Type != "private", true
	return in
}

// place returns the chat or the topic of a message.
func (m *message) place() place {
	at := place{chat: m.Chat.ID}
	if m.IsTopic {
		at.thread = m.Thread
	}
	return at
}

// stopCommand returns the stop button of a draft as the command that has the same effect. The platform tells neither the message
// nor the person, but drafts exist in private chats only, whose id is that of the person.
func stopCommand(u *update) channel.InboundMessage {
	s := u.Stop
	return channel.InboundMessage{
		ID: fmt.Sprintf("stop/%d", u.ID), ChatID: place{s.Chat.ID, s.Thread}.id(), SenderID: strconv.FormatInt(s.Chat.ID, 10), Timestamp: time.Unix(0, 0),
		Content: "/stop", Hints: channel.RoutingHints{ForceSync: true, Command: "stop"},
	}
}

// withoutMention removes the first mention of a bot from a text. It reports whether there was one. The names of bots are not
// case-sensitive. A mention is followed by no other character of names, so @leat is not found in @leat_bot.
func withoutMention(text, name string) (string, bool) {
	mention, lower := "@"+strings.ToLower(name), strings.ToLower(text)
	if len(lower) != len(text) { // a letter whose lower case has another length: positions would differ
		lower = text
	}
	for from := 0; name != ""; {
		i := strings.Index(lower[from:], mention)
		if i < 0 {
			break
		}
		i += from
		from = i + len(mention)
		if from < len(lower) && isNameByte(lower[from]) {
			continue
		}
		return strings.TrimSpace(strings.TrimSpace(text[:i]) + " " + strings.TrimSpace(text[from:])), true
	}
	return text, false
}

// isNameByte reports whether a byte may be a part of a bot's name, in lower case.
func isNameByte(b byte) bool { return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' }
