package wecom

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
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
	// maxCloses is how often the end of a stream without an answer is tried.
	maxCloses = 5
)

// rules are those of WeCom. The message that grows becomes the answer, because nothing can be deleted.
var rules = live.Rules{Platform: "wecom", Format: markup.WeCom, MaxText: maxText, InPlace: true, TypingLife: time.Hour, MaxFile: maxUpload}

// placeOf returns where the requests to a chat are counted.
func placeOf(chatID string) live.Place { return live.Place{ID: chatID, Gap: chatGap} }

// The ids of messages. The platform gives none; nothing can be done with a message after it was sent.
const (
	idStream = "stream" // the text in the stream
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
	upload upload  // the newest file
	// refusals counts refusals in a row because of too many messages.
	refusals int

	// save stores the record of the delivery, and state is the engine's part of it. They are not set for a single message.
	save  func(ctx context.Context, record any) error
	state json.RawMessage
}

var _ live.FileChat = (*chat)(nil)

// newChat returns the chat for a delivery. The stream of a message belongs to the first delivery that answers it.
func (c *bot) newChat(id, question string) *chat {
	t := &chat{c: c, id: id}
	if origin := c.origins.take(question); origin.request != "" {
		t.stream = c.newStream(origin)
	}
	return t
}

// Post implements [live.Chat].
func (t *chat) Post(ctx context.Context, p live.Post) (string, error) {
	s := t.stream
	isFree := s != nil && s.text == "" && s.canAnswer()
	switch {
	case p.Kind == live.Card:
		t.card = statusText(p.Status)
		return idCard, t.show(ctx)
	case p.Kind == live.Text && isFree && !s.isFinishing:
		s.text = p.Text.Text
		if err := t.show(ctx); err != nil {
			s.text = "" // the engine posts it again
			return "", err
		}
		return idStream, nil
	case p.Kind == live.Text:
		return idHidden, nil
	case p.Kind == live.Answer && isFree:
		switch err := t.answer(ctx, p.Text.Text); {
		case errors.Is(err, errUnsure):
			return "", errors.Join(live.ErrUnknown, err)
		case isExpired(err):
			return "", errors.Join(live.ErrRepeat, err)
		default:
			return idStream, t.repeatable(err)
		}
	}
	content := p.Text.Text
	if s != nil && p.Kind == live.Answer {
		if err := t.freeze(ctx); err != nil {
			return "", t.repeatable(err)
		}
		content = s.remainder(content)
	}
	if strings.TrimSpace(content) == "" {
		return idSent, nil
	}
	body := map[string]any{"chatid": t.id, "msgtype": "markdown", "markdown": map[string]string{"content": content}}
	err := t.c.link.request(ctx, commandSend, newID(commandSend), body, nil)
	if s != nil && p.Kind == live.Answer && (err == nil || errors.Is(err, errUnknown)) {
		s.frozen = "" // only the first message of the answer continues it
	}
	return idSent, t.explain(err)
}

// Edit implements [live.Chat].
func (t *chat) Edit(ctx context.Context, id string, p live.Post) error {
	s := t.stream
	switch {
	case id == idCard:
		t.card = statusText(p.Status)
		return t.show(ctx)
	case p.IsLive && (id != idStream || s == nil):
		return nil
	case p.IsLive:
		s.text = p.Text.Text
		return t.show(ctx)
	case id != idStream || s == nil || !s.canAnswer():
		return live.ErrMissing // it is sent as a new message
	}
	switch err := t.answer(ctx, p.Text.Text); {
	case errors.Is(err, errUnsure):
		return errors.Join(channel.ErrUnknownOutcome, err)
	case isExpired(err):
		return errors.Join(live.ErrMissing, err)
	default:
		return t.repeatable(err)
	}
}

// Delete implements [live.Chat]. Messages can't be deleted: a stream that has nothing to show any more ends with a sign.
func (t *chat) Delete(ctx context.Context, id string) error {
	switch s := t.stream; {
	case id == idStream && s != nil:
		s.text = ""
	case id == idCard:
		t.card = ""
	}
	if s := t.stream; s != nil && s.isOpen() && s.text == "" && t.card == "" {
		return t.repeatable(s.finish(ctx, ""))
	}
	return t.show(ctx)
}

// ShowTyping implements [live.Chat]. A stream without a text would have to get one, also if the turn has none.
func (t *chat) ShowTyping(context.Context) error { return nil }

// show makes the stream show the text and the tool calls. What the platform doesn't take any more is sent at the end.
func (t *chat) show(ctx context.Context) error {
	s := t.stream
	switch {
	case s == nil || s.isFinished || s.isFinishing:
		return nil
	case s.isExpired():
		return t.repeatable(t.freeze(ctx))
	}
	err := s.update(ctx, t.card)
	if isExpired(err) {
		s.isFinished = true
		return nil
	}
	return t.repeatable(err)
}

// freeze finishes a stream whose time is over with the text that it shows.
func (t *chat) freeze(ctx context.Context) error {
	s := t.stream
	if s.isFinished || s.isFinishing || !s.isExpired() {
		return nil
	}
	if !s.isBegun { // it shows nothing
		s.isFinished = true
		return nil
	}
	err := s.finish(ctx, s.text)
	if err == nil {
		s.frozen = s.text
	}
	if isExpired(err) {
		return nil
	}
	return err
}

// answer finishes the stream with the answer. The intention is stored before, so a later delivery doesn't change a stream that may
// show the answer. errUnsure means that it may, and that the platform can't say whether it does.
func (t *chat) answer(ctx context.Context, text string) error {
	s := t.stream
	if !s.isFinishing {
		s.isFinishing = true
		if err := t.store(ctx); err != nil {
			s.isFinishing = false
			return err
		}
	}
	err := s.finish(ctx, text)
	switch {
	case isExpired(err) && s.isUnsure:
		return errUnsure
	case errors.Is(err, errUnknown):
		s.isUnsure = true
	}
	return err
}

// abandon finishes a stream that has no answer, for example if the delivery has failed. Otherwise the person would see an animation
// until the platform ends it, and tool calls that seem to run. A delivery that is continued later keeps its stream.
func (t *chat) abandon(ctx context.Context) {
	for failed := 1; t.stream != nil && t.stream.isOpen() && ctx.Err() == nil; failed++ {
		err := t.stream.finish(ctx, t.stream.text)
		if err == nil || isExpired(err) || errors.Is(err, channel.ErrStopped) {
			return
		}
		if failed == maxCloses {
			t.c.log.Warn("a stream was not finished", "error", err)
			return
		}
		wait := connectAgain.Wait(failed)
		if isRate(err) {
			wait = ratePenalties.Wait(failed)
		}
		_ = retry.Sleep(ctx, wait) // if ctx ends, so does the loop
	}
}

// statusText returns the tool calls as Markdown, without the heading that the agent works: if the platform can't be reached until the
// time of the stream is over, the heading would stay forever.
func statusText(s *live.Status) string {
	text := s.Fit(maxCard, func(s *live.Status) string {
		_, rows, _ := strings.Cut(s.Markdown(), "\n\n")
		m, _ := markup.Parse(rows).Next(0, markup.WeCom, maxText)
		return m.Text
	})
	return text + "\n\n" + s.Time()
}
