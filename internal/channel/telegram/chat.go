package telegram

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxText is the limit of a message, in UTF-16 units of its visible text, and maxRich that of a rich draft, in characters.
	maxText = 4096
	maxRich = 32_768
	// cursor follows a text that grows.
	cursor = " ▍"
	// privateGap and groupGap are the times between two messages or edits in a chat. The limits are not published; about one a
	// second in private chats and 20 a minute in groups are known to pass.
	privateGap = 1100 * time.Millisecond
	groupGap   = 3100 * time.Millisecond
	// botGap is the time between two requests of the bot, to all chats together: about 30 a second pass.
	botGap = 34 * time.Millisecond
	// draftGap is the time between two drafts, and draftLife the time after which an unchanged draft is sent again: it would
	// disappear after about 30 s.
	draftGap  = 400 * time.Millisecond
	draftLife = 20 * time.Second
	// typingLife is a little less than the 5 s for which "typing" is shown.
	typingLife = 4500 * time.Millisecond
)

// rules are those of Telegram. A message that grows doesn't become the answer, because an edit doesn't notify.
var rules = live.Rules{
	Platform: "telegram", Format: markup.Telegram, MaxText: maxText, Cursor: cursor, HasButtons: true, TypingLife: typingLife, MaxFile: maxUpload,
}

// chat is a chat of a delivery. It remembers what the chat has refused.
type chat struct {
	c  *bot
	at place
	// draft is the id of the turn's draft, which only private chats use.
	draft int64
	// isPlain is set when formatting was refused, asDocument when a picture was refused as a photo, and noRich when a rich draft was
	// refused.
	isPlain, asDocument, noRich bool
}

// privateChat is a chat with one person. Only those have drafts.
type privateChat struct{ *chat }

// groupChat is a chat with several people. A reaction shows whose message is being answered.
type groupChat struct{ *chat }

var (
	_ live.FileChat  = (*chat)(nil)
	_ live.FindChat  = (*chat)(nil)
	_ live.VoiceChat = (*chat)(nil)
	_ live.DraftChat = privateChat{}

	_ live.DraftFormatter = privateChat{}
	_ live.ReactChat      = groupChat{}
)

// newChat returns the chat for a delivery of a turn, or of a message, which has none.
func (c *bot) newChat(at place, turn string) live.FileChat {
	ch := &chat{c: c, at: at, draft: draftID(turn)}
	if at.isPrivate() {
		return privateChat{ch}
	}
	return groupChat{ch}
}

// gatePlace returns where the requests to a chat are counted. Its topics share the limit.
func (p place) gatePlace() live.Place {
	at := live.Place{ID: place{chat: p.chat}.id(), Gap: privateGap}
	if !p.isPrivate() {
		at.Gap = groupGap
	}
	return at
}

// draftID returns the id of a turn's draft: a positive number that is the same each time. Two turns with one draft would overwrite
// each other's text.
func draftID(turn string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(turn)) // never fails
	return int64(h.Sum32()>>1) | 1
}

// Post implements [live.Chat].
func (t *chat) Post(ctx context.Context, p live.Post) (string, error) {
	params := t.content(p)
	params.Thread, params.Silent, params.Reply, params.Buttons = t.at.topic(), p.IsSilent, t.replyTo(p.ReplyTo), keyboardOf(p.Buttons)
	var result message
	if err := t.call(ctx, "sendMessage", params, &result); err != nil {
		return "", err
	}
	return messageRef(t.at.chat, result.ID), nil
}

// Edit implements [live.Chat].
func (t *chat) Edit(ctx context.Context, id string, p live.Post) error {
	if p.Kind == live.Question {
		return t.call(ctx, "editMessageReplyMarkup", target{t.at.chat, messageNumber(id)}, nil)
	}
	params := t.content(p)
	params.Message = messageNumber(id)
	return t.call(ctx, "editMessageText", params, nil)
}

// Delete implements [live.Chat].
func (t *chat) Delete(ctx context.Context, id string) error {
	return t.call(ctx, "deleteMessage", target{t.at.chat, messageNumber(id)}, nil)
}

// ShowTyping implements [live.Chat].
func (t *chat) ShowTyping(ctx context.Context) error {
	return t.call(ctx, "sendChatAction", chatAction{t.at.chat, t.at.topic(), "typing"}, nil)
}

// DraftTimes implements [live.DraftChat].
func (privateChat) DraftTimes() (gap, life time.Duration) { return draftGap, draftLife }

// DraftFormat implements [live.DraftFormatter]. A rich draft has room for eight times the text and shows tables as such.
func (t privateChat) DraftFormat() (format markup.Format, maxText int) {
	if t.isRich() {
		return markup.TelegramRich, maxRich
	}
	return rules.Format, rules.MaxText
}

// isRich reports whether drafts are rich, until the chat or the server refuses one.
func (t privateChat) isRich() bool { return !t.noRich && !t.c.noRich.Load() }

// ShowDraft implements [live.DraftChat].
func (t privateChat) ShowDraft(ctx context.Context, p live.Post) error {
	if t.isRich() {
		return t.call(ctx, "sendRichMessageDraft", richDraft{t.at.chat, t.at.topic(), t.draft, true, richMessage{p.Text.HTML, true}}, nil)
	}
	params := t.content(p)
	// Drafts have no link previews, so the method has no such parameter.
	params.Preview = nil
	params.Thread, params.Draft, params.CanStop = t.at.topic(), t.draft, true
	return t.call(ctx, "sendMessageDraft", params, nil)
}

// React implements [live.ReactChat]. Bots can use a fixed set of emoji.
func (t groupChat) React(ctx context.Context, id, emoji string) error {
	params := reaction{ChatID: t.at.chat, Message: messageNumber(id), Reactions: []reactionType{}}
	if emoji != "" {
		params.Reactions = append(params.Reactions, reactionType{"emoji", emoji})
	}
	return t.call(ctx, "setMessageReaction", params, nil)
}

// content returns what a message shows, as parameters.
func (t *chat) content(p live.Post) outgoing {
	params := outgoing{ChatID: t.at.chat, Text: p.Text.Text, Entities: p.Text.Entities}
	if p.Kind != live.Answer {
		params.Preview = &preview{true}
	}
	if p.Kind == live.Card {
		params.Text, params.Mode = card(p.Status), "HTML"
	}
	if t.isPlain {
		params.Entities = nil
	}
	return params
}

// call makes a request. If the chat refuses something that a message can do without, the next request is made without it.
func (t *chat) call(ctx context.Context, method string, params, result any) error {
	err := t.c.client.call(ctx, requestLimit, method, params, result)
	if err == nil {
		// Formatting that was refused in one text may be valid in the next.
		t.isPlain = false
	}
	return t.explain(err)
}

// replyTo makes a message a reply. In private chats it is clear what is answered.
func (t *chat) replyTo(id string) *reply {
	number := messageNumber(id)
	if number == 0 || t.at.isPrivate() {
		return nil
	}
	return &reply{number, true}
}

// maxProbes is how many numbers of messages are tried to find a lost one.
const maxProbes = 50

// Find implements [live.FindChat]. The numbers in the gap are tried: the Bot API edits only messages of the bot itself, so an edit
// that succeeds has found it. Numbers are shared with other chats, so in a busy bot the gap can be too long; then the message stays.
func (t *chat) Find(ctx context.Context, gap live.Gap, request func(func() error) error) (string, error) {
	after, before := messageNumber(gap.After), messageNumber(gap.Before)
	switch {
	case before == 0 && after == 0:
		return "", nil
	case before == 0:
		before = after + 1 + maxProbes
	}
	for id := max(after+1, before-maxProbes); id < before; id++ {
		err := request(func() error {
			return t.call(ctx, "editMessageText", outgoing{ChatID: t.at.chat, Message: id, Text: "…"}, nil)
		})
		if err == nil {
			return messageRef(t.at.chat, id), nil
		}
		if ctx.Err() != nil {
			return "", err
		}
	}
	return "", nil
}
