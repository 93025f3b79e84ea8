package wecom

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxText is the limit of a message, in bytes.
	maxText = 20480
	// maxCard is the limit of the tool calls below a text, in bytes.
	maxCard = 4 << 10
	// chatGap is the time between two messages or updates in a chat.
	chatGap = 500 * time.Millisecond
	// botGap is the time between two frames of the bot.
	botGap = 20 * time.Millisecond
)

var rules = live.Rules{Format: markup.WeCom, MaxText: maxText, InPlace: true, TypingLife: time.Hour, MaxFile: maxUpload}

func placeOf(chatID string) live.Place { return live.Place{ID: chatID, Gap: chatGap} }

// The ids of messages. Those that were sent have no id at the platform; nothing can be done with them afterwards.
const (
	idStream = "stream" // the text in the stream; the request and the time of the person's message follow
	idCard   = "card"   // the tool calls below it
	idHidden = "hidden" // a text that is sent when it is complete
	idSent   = "sent"
)

// chat is a chat of a delivery. The text and the tool calls of a running turn are both in its stream.
type chat struct {
	c      *bot
	id     string
	stream *stream // nil if the delivery answers no message, or one that is too old
	card   string  // the tool calls that are shown
}

var _ live.FileChat = (*chat)(nil)

func (c *bot) newChat(id, question string) *chat {
	t := &chat{c: c, id: id}
	if origin := c.origins.of(question); origin.request != "" {
		t.stream = c.newStream(origin)
	}
	return t
}

// restore continues the stream of an earlier delivery, by the id of its text.
func (t *chat) restore(id string) {
	parts := strings.Split(id, "/")
	if t.stream != nil || len(parts) != 3 || parts[0] != idStream {
		return
	}
	seconds, _ := strconv.ParseInt(parts[2], 10, 64) // 0 means long ago
	t.stream = t.c.newStream(callback{parts[1], time.Unix(seconds, 0)})
	t.stream.isBegun = true
}

// Post implements [live.Chat].
func (t *chat) Post(ctx context.Context, p live.Post) (string, error) {
	canStream := t.stream != nil && !t.stream.isFinished
	switch {
	case p.Kind == live.Card:
		t.card = statusText(p.Status)
		return idCard, t.show(ctx)
	case p.Kind == live.Text && canStream && t.stream.text == "":
		t.stream.text = p.Text.Text
		return t.stream.messageID(), t.show(ctx)
	case p.Kind == live.Text:
		return idHidden, nil
	case p.Kind == live.Answer && canStream && !t.stream.isExpired() && t.stream.text == "":
		err := t.stream.finish(ctx, p.Text.Text)
		if isExpired(err) {
			return "", errors.Join(live.ErrRepeat, err)
		}
		return idSent, repeatable(err)
	}
	content := p.Text.Text
	if t.stream != nil && p.Kind == live.Answer {
		if err := t.stream.freeze(ctx); err != nil {
			return "", repeatable(err)
		}
		content = t.stream.remainder(content)
	}
	if strings.TrimSpace(content) == "" {
		return idSent, nil
	}
	body := map[string]any{"chatid": t.id, "msgtype": "markdown", "markdown": map[string]string{"content": content}}
	return idSent, explain(t.c.link.request(ctx, commandSend, newID(commandSend), body, nil))
}

// Edit implements [live.Chat].
func (t *chat) Edit(ctx context.Context, id string, p live.Post) error {
	t.restore(id)
	isStream := strings.HasPrefix(id, idStream) && t.stream != nil
	switch {
	case id == idCard:
		t.card = statusText(p.Status)
		return t.show(ctx)
	case id == idHidden && p.IsLive:
		return nil
	case !isStream:
		return live.ErrMissing // it is sent as a new message
	case p.IsLive:
		t.stream.text = p.Text.Text
		return t.show(ctx)
	case t.stream.isFinished || t.stream.isExpired():
		return live.ErrMissing
	}
	err := t.stream.finish(ctx, p.Text.Text)
	if isExpired(err) {
		return errors.Join(live.ErrMissing, err)
	}
	return repeatable(err)
}

// Delete implements [live.Chat]. Messages can't be deleted: the text of the stream becomes a sign that the answer has ended.
func (t *chat) Delete(ctx context.Context, id string) error {
	switch t.restore(id); {
	case strings.HasPrefix(id, idStream) && t.stream != nil:
		t.stream.text = ""
	case id == idCard:
		t.card = ""
	}
	return t.show(ctx)
}

// ShowTyping implements [live.Chat]. A stream without a text would have to get one, also if the turn has none.
func (t *chat) ShowTyping(context.Context) error { return nil }

// show makes the stream show the text and the tool calls.
func (t *chat) show(ctx context.Context) error {
	if t.stream == nil || t.stream.isFinished {
		return nil
	}
	err := t.stream.update(ctx, t.card)
	if isExpired(err) {
		return nil // what is missing is sent at the end
	}
	return repeatable(err)
}

// abandon finishes a stream that has no answer: that of a turn that was stopped, or whose delivery has ended. Otherwise the person
// would see an animation until the platform ends it.
func (t *chat) abandon(ctx context.Context) {
	if t.stream == nil || t.stream.isFinished || !t.stream.isBegun || ctx.Err() != nil {
		return
	}
	if err := t.stream.finish(ctx, t.stream.text); err != nil {
		t.c.log.Debug("a stream was not finished", "error", err)
	}
}

// statusText returns the tool calls as Markdown.
func statusText(s *live.Status) string {
	text := s.Fit(maxCard, func(s *live.Status) string {
		m, _ := markup.Parse(s.Markdown()).Next(0, markup.WeCom, maxText)
		return m.Text
	})
	return text + "\n\n" + s.Time()
}
