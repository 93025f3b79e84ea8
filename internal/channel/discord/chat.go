package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxText is the limit of a message, in characters. The documentation's limit for the content of a message without a
	// subscription.
	maxText = 2000
	// cursor follows a text that grows.
	cursor = " ▍"
	// chatGap is the time between two messages or edits in a channel: five of each in 5 s are allowed.
	chatGap = 1200 * time.Millisecond
	// botGap is the time between two requests of the bot, in all channels together: 50 a second are allowed.
	botGap = 25 * time.Millisecond
	// typingLife is a little less than the 10 s for which "typing" is shown.
	typingLife = 9 * time.Second
)

// rules are those of Discord. A message that grows becomes the answer: an edit doesn't notify, but the first version of the message
// has.
var rules = live.Rules{
	Platform: "discord", Format: markup.Discord, MaxText: maxText, Cursor: cursor, InPlace: true, Idempotent: true, HasButtons: true, TypingLife: typingLife,
	MaxFile: maxUpload,
}

// chat is a channel of the platform for a delivery. Threads are channels of their own. It remembers what the channel has refused.
type chat struct {
	c  *bot
	id string
	// noReply is set when a reply was refused.
	noReply bool
	// unanswered are the messages whose creation got no answer, by key. They are forgotten with the delivery; a later one looks for the
	// message that was being created.
	unanswered map[string]unanswered
	// isInterrupted means that the delivery before was interrupted, so the next message to be created may exist.
	isInterrupted bool
	replyTo       string // the message that the interrupted delivery answers, or empty
	// newest is the id of the newest message that the delivery has created or knows, or 0. A lost message is newer.
	newest uint64
}

var _ live.FileChat = (*chat)(nil)

// newChat returns a chat for one delivery, which must not be shared with another. state is that of one that was interrupted, or nil.
func (c *bot) newChat(id string, state json.RawMessage) *chat {
	t := &chat{c: c, id: id, unanswered: map[string]unanswered{}}
	if state != nil {
		t.continueFrom(state)
	}
	return t
}

// placeOf returns where the requests to a channel are counted. The platform counts requests for each channel, and a thread is a
// channel with a separate count.
func placeOf(id string) live.Place { return live.Place{ID: id, Gap: chatGap} }

// outgoing is the body of a message or an edit.
type outgoing struct {
	// Content is nil for a message of Components V2, which must not have one.
	Content    *string     `json:"content,omitempty"`
	Flags      int         `json:"flags"`      // an edit without it leaves link previews as they are
	Components []component `json:"components"` // an edit without buttons removes them
	// Nonce and Enforce make the server return the message of an earlier request with the same nonce.
	Nonce   string `json:"nonce,omitempty"`
	Enforce bool   `json:"enforce_nonce,omitempty"`
	// Reference makes the message a reply. An edit can't change that.
	Reference *reference `json:"message_reference,omitempty"`
	// AllowedMentions is always sent: an edit without it would notify people who are mentioned in the new text.
	AllowedMentions *allowedMentions `json:"allowed_mentions"`
	// Attachments describe the files of a multipart request.
	Attachments []upload `json:"attachments,omitempty"`
}

// reference makes a message a reply. A reply to a message that was deleted is sent as a normal message.
type reference struct {
	Message string `json:"message_id"`
	Strict  bool   `json:"fail_if_not_exists"`
}

// allowedMentions names the kinds of mentions that notify. The bot allows none.
type allowedMentions struct {
	Parse []string `json:"parse"`
}

// content returns what a message shows. Previews of links would jump about while the text grows, so only the finished answer has
// them.
func content(p live.Post) outgoing {
	o := outgoing{Components: []component{}, AllowedMentions: &allowedMentions{Parse: []string{}}}
	if p.IsSilent {
		o.Flags |= flagSilent
	}
	if p.IsLive || p.Kind == live.Question {
		o.Flags |= flagNoPreviews
	}
	if p.Kind == live.Card {
		o.Flags |= flagComponents
		o.Components = card(p.Status)
		return o
	}
	o.Content, o.Components = &p.Text.Text, rowsOf(p.Buttons)
	return o
}

// Post implements [live.Chat]. The reply to a slash command replaces its animation, so it is an edit and not a new message.
func (t *chat) Post(ctx context.Context, p live.Post) (string, error) {
	if i := t.c.interactions.find(p.ReplyTo); i != nil && p.Kind == live.Answer {
		return t.answerInteraction(ctx, i, p)
	}
	body := content(p)
	body.Reference, body.Nonce, body.Enforce = t.reference(p.ReplyTo), nonceOf(p.Key), true
	return t.create(ctx, p.Key, body, p.IsLive, func(result *message) error {
		return t.c.client.call(ctx, at(http.MethodPost, "/channels/%s/messages", t.id), body, result)
	})
}

// create creates a message with the nonce of a key, unless it was created by a request without an answer. The time of the request is
// taken before it is made, because the server may create the message at any moment until the answer is lost.
func (t *chat) create(ctx context.Context, key string, body outgoing, isGrowing bool, send func(result *message) error) (string, error) {
	if id, err := t.find(ctx, key, body, isGrowing); id != "" || err != nil {
		t.newest = max(t.newest, numberOf(id))
		return id, t.explain(err)
	}
	began := time.Now()
	var result message
	err := send(&result)
	if errors.Is(err, live.ErrUnknown) {
		t.remember(key, began, body)
	}
	t.newest = max(t.newest, numberOf(result.ID))
	return result.ID, t.explain(err)
}

// Edit implements [live.Chat]. A message that is older than an hour can be edited a few times only. It is deleted then, so that the
// one which replaces it doesn't repeat its text.
func (t *chat) Edit(ctx context.Context, id string, p live.Post) error {
	body := content(p) // its flags repeat those that can't be changed, as the platform asks for
	err := t.c.client.call(ctx, at(http.MethodPatch, "/channels/%s/messages/%s", t.id, id), body, nil)
	if hasCode(err, codeOldMessage) {
		if failed := t.Delete(ctx, id); failed != nil {
			return failed
		}
	}
	return t.explain(err)
}

// Delete implements [live.Chat].
func (t *chat) Delete(ctx context.Context, id string) error {
	return t.explain(t.c.client.call(ctx, at(http.MethodDelete, "/channels/%s/messages/%s", t.id, id), nil, nil))
}

// ShowTyping implements [live.Chat].
func (t *chat) ShowTyping(ctx context.Context) error {
	return t.explain(t.c.client.call(ctx, at(http.MethodPost, "/channels/%s/typing", t.id), nil, nil))
}

// reference makes a message a reply to one that has an id of the platform. The ids of commands and of pressed buttons are others.
func (t *chat) reference(id string) *reference {
	if !isID(id) || t.noReply {
		return nil
	}
	return &reference{Message: id}
}

// explain returns the error of a request in the form that a [live.Chat] returns. If the channel refuses something that a message can
// do without, that is changed for the next request. The penalty is that of the server's answer, or of the limiter, which refuses in
// the same form.
func (t *chat) explain(err error) error {
	e := refusal(err)
	is := func(meaning error) error { return fmt.Errorf("%w: %w", meaning, err) }
	switch {
	case e.Status == http.StatusTooManyRequests:
		return &live.Penalty{Wait: e.RetryAfter, IsGlobal: e.Global, Err: err}
	case isReplyRefused(err) && !t.noReply:
		t.noReply = true
		return is(live.ErrRepeat)
	case isMissing(err):
		return is(live.ErrMissing)
	case isTerminal(err):
		return is(channel.ErrUnreachable)
	}
	return err
}
