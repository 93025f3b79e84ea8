package matrix

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leat-dev/leat/internal/channel"
)

// inbound returns the message that an event brings, or false if it brings none.
func (c *bot) inbound(ctx context.Context, identity *account, room string, e *roomEvent) (in channel.InboundMessage, ok bool, err error) {
	var m received
	if e.Type != "m.room.message" || e.Sender == identity.id || json.Unmarshal(e.Content, &m) != nil {
		return in, false, nil
	}
	if m.Kind == kindNotice || m.Relation.Type == "m.replace" { // of another bot, or an edit
		return in, false, nil
	}
	people, err := c.rooms.of(ctx, room)
	if err != nil && !isFinal(err) {
		return in, false, err
	}
	at, text := place{room: room}, m.text()
	if m.Relation.Type == "m.thread" {
		at.thread = m.Relation.Event
	}
	// The quotation is not a part of what the person has written, and could contain a mention of the bot.
	if m.Relation.InReplyTo != nil {
		text = withoutFallback(text)
	}
	in = channel.InboundMessage{
		ID: e.ID, ChatID: at.id(), SenderID: e.Sender, SenderName: people.nameOf(e.Sender), Timestamp: e.at(),
		Content: strings.TrimSpace(text), Media: m.media(),
	}
	if in.Hints.Group = people == nil || people.isGroup(); in.Hints.Group {
		var isMentioned bool
		in.Content, isMentioned = withoutMention(in.Content, identity, people[identity.id])
		in.Hints.Addressed = isMentioned || m.Mentions != nil && slices.Contains(m.Mentions.Users, identity.id)
		if !in.Hints.Addressed {
			if in.Hints.Addressed, err = c.isReply(ctx, identity, room, &m.Relation); err != nil {
				return in, false, err
			}
		}
	}
	in.Hints.Command, in.Hints.Args = command(in.Content)
	in.Hints.ForceSync = in.Hints.Command != ""
	return in, in.Content != "" || len(in.Media) > 0, nil
}

// command returns the command with which a text begins. Many clients keep words with a slash for themselves, so an exclamation mark
// does as well.
func command(text string) (name, args string) {
	if remainder, ok := strings.CutPrefix(text, "!"); ok {
		text = "/" + remainder
	}
	return channel.ParseCommand(text)
}

// isReply reports whether a message answers one of the bot: it replies to it, or is in a thread that begins with it.
func (c *bot) isReply(ctx context.Context, identity *account, room string, r *relation) (bool, error) {
	id := r.Event
	if r.InReplyTo != nil && !r.IsFallback {
		id = r.InReplyTo.Event
	}
	if id == "" {
		return false, nil
	}
	e, err := c.client.event(ctx, room, id)
	if err != nil && !isFinal(err) {
		return false, err
	}
	return err == nil && e.Sender == identity.id, nil
}

// withoutFallback removes the quotation of the answered message, with which older clients begin a reply.
func withoutFallback(text string) string {
	if !strings.HasPrefix(text, "> ") {
		return text
	}
	for strings.HasPrefix(text, ">") {
		_, text, _ = strings.Cut(text, "\n")
	}
	return strings.TrimPrefix(text, "\n")
}

// withoutMention removes the first mention of the bot from a text: its id, or one of its names as a word. It reports whether there was
// one. Names are not case-sensitive.
func withoutMention(text string, identity *account, name string) (string, bool) {
	names := []string{identity.id}
	for _, n := range []string{name, identity.name, localpart(identity.id)} {
		if n != "" {
			names = append(names, "@"+n, n)
		}
	}
	for _, n := range names {
		from, to := findWord(text, n)
		if from < 0 {
			continue
		}
		before, after := strings.TrimSpace(text[:from]), strings.TrimSpace(text[to:])
		if before == "" { // Leat: hello
			after = strings.TrimSpace(strings.TrimLeft(after, ":,"))
		}
		return strings.TrimSpace(before + " " + after), true
	}
	return text, false
}

// findWord returns the range of a name that isn't a part of a longer one, or -1.
func findWord(text, name string) (from, to int) {
	for i := range text {
		end := i + len(name)
		if end > len(text) || !strings.EqualFold(text[i:end], name) {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[end:])
		if !isNameRune(before) && !isNameRune(after) && (before != '@' || name[0] == '@') {
			return i, end
		}
	}
	return -1, -1
}

// isNameRune reports whether a character may be a part of a name. utf8.RuneError stands for the end of the text.
func isNameRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-", r))
}
