package feishu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxText is the limit of a text, in bytes of a JSON string. The body of a request with a card may have 30 KB. The card is a
	// string of JSON in the JSON of the body, so that its text is escaped twice, which at most doubles it.
	maxText = 14 << 10
	// maxStatus is the limit of a status card, in bytes of its Markdown.
	maxStatus = 6 << 10
	// chatGap is the time between two messages or edits in a chat: five messages a second pass, and ten edits of a card.
	chatGap = 250 * time.Millisecond
	// botGap is the time between two requests of the bot: 1,000 a minute pass.
	botGap = 60 * time.Millisecond
)

// rules are those of Feishu. A card that grows becomes the answer.
var rules = live.Rules{
	Platform: "feishu", Format: markup.Feishu, MaxText: maxText, InPlace: true, Idempotent: true, HasButtons: true, TypingLife: time.Hour, MaxFile: maxUpload,
}

// chat is a chat of a delivery. It remembers what the chat has refused.
type chat struct {
	c  *bot
	at place
	// isResumed is set if the turn was delivered in part before. A message that is created again may then be an older one.
	isResumed bool
	// hasReplied is set when a message was sent as a reply, or can't be: only the first message of an answer is one.
	hasReplied bool
	// isPlain is set when a card was refused. The next message is sent as plain text.
	isPlain bool
	// entities are the cards that were created for messages, by the keys of those: a card is sent once.
	entities map[string]string
	// sequences are the last sequence numbers of cards.
	sequences map[string]int64
	upload    upload // the newest file
}

var _ live.FileChat = (*chat)(nil)

// newChat returns the chat for one delivery.
func (c *bot) newChat(at place) *chat {
	return &chat{c: c, at: at, entities: map[string]string{}, sequences: map[string]int64{}}
}

// place is a chat, or a thread in one.
type place struct {
	chat string
	root string // the first message of the thread, or empty
}

// id returns the place as a chat id of the pipeline: CHAT or CHAT/MESSAGE.
func (p place) id() string {
	if p.root == "" {
		return p.chat
	}
	return p.chat + "/" + p.root
}

// parsePlace reads what id returned.
func parsePlace(id string) (p place) {
	p.chat, p.root, _ = strings.Cut(id, "/")
	return p
}

// limits returns where the requests to a chat are counted. Its threads share the limit.
func (p place) limits() live.Place { return live.Place{ID: p.chat, Gap: chatGap} }

// outgoing is a message. Its content is a string of JSON.
type outgoing struct {
	Receiver string `json:"receive_id,omitempty"`
	Type     string `json:"msg_type"`
	Content  string `json:"content"`
	InThread bool   `json:"reply_in_thread,omitempty"`
	UUID     string `json:"uuid,omitempty"`
}

// Post implements [live.Chat].
func (t *chat) Post(ctx context.Context, p live.Post) (string, error) {
	if p.Kind == live.Text && p.IsLive {
		return t.postGrowing(ctx, p)
	}
	if t.isPlain && p.Kind != live.Card {
		content, err := cardJSON(map[string]string{"text": p.Text.Text})
		if err != nil {
			return "", err
		}
		return t.send(ctx, "text", content, p.ReplyTo, p.Key)
	}
	content, err := cardJSON(newCard(t.at, p))
	if err != nil {
		return "", err
	}
	id, err := t.send(ctx, "interactive", content, p.ReplyTo, p.Key)
	if has(err, codesCard...) && p.Kind != live.Card {
		t.isPlain = true
		return "", errors.Join(live.ErrRepeat, err)
	}
	return id, err
}

// send sends a message and returns its id.
func (t *chat) send(ctx context.Context, kind, content, parent, key string) (string, error) {
	m := outgoing{Type: kind, Content: content, UUID: uuidOf(key), InThread: t.at.root != ""}
	isReply := strings.HasPrefix(parent, messagePrefix) && !t.hasReplied
	path := "/im/v1/messages?receive_id_type=chat_id"
	switch {
	case isReply:
		path = messagePath(parent) + "/reply"
	case t.at.root != "":
		path = messagePath(t.at.root) + "/reply"
	default:
		m.Receiver = t.at.chat
	}
	var message struct {
		ID string `json:"message_id"`
	}
	err := t.c.client.call(ctx, request{method: http.MethodPost, path: path, params: m}, &message)
	isMissing := isReply && has(err, codesMissing...)
	if err == nil || isMissing {
		t.hasReplied = true
	}
	if isMissing { // the person has withdrawn the message
		return "", errors.Join(live.ErrRepeat, err)
	}
	return message.ID, explain(err)
}

// Edit implements [live.Chat].
func (t *chat) Edit(ctx context.Context, id string, p live.Post) error {
	if _, entity, ok := strings.Cut(id, "/"); ok {
		err := t.grow(ctx, entity, p)
		if !has(err, codesCard...) || p.IsLive {
			return err
		}
		// The platform can't show the answer as a card, so it is sent as plain text.
		t.isPlain = true
		if deleted := t.Delete(ctx, id); deleted != nil && !errors.Is(deleted, live.ErrMissing) {
			return deleted
		}
		return errors.Join(live.ErrMissing, err)
	}
	content, err := cardJSON(newCard(t.at, p))
	if err != nil {
		return err
	}
	return explain(t.c.client.call(ctx, request{method: http.MethodPatch, path: messagePath(id), params: map[string]string{"content": content}}, nil))
}

// Delete implements [live.Chat].
func (t *chat) Delete(ctx context.Context, id string) error {
	message, _, _ := strings.Cut(id, "/")
	return explain(t.c.client.call(ctx, request{method: http.MethodDelete, path: messagePath(message)}, nil))
}

// ShowTyping implements [live.Chat]. The platform has no such indicator.
func (t *chat) ShowTyping(context.Context) error { return nil }

// messagePrefix is the prefix of the ids of messages.
const messagePrefix = "om_"

// messagePath returns the path of a message in the API. Ids are the platform's, but nothing guarantees their characters.
func messagePath(id string) string { return "/im/v1/messages/" + url.PathEscape(id) }

// uuidOf returns the uuid for a key, or "" without one. It may have 50 characters.
func uuidOf(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// statusText returns a status card as Markdown.
func statusText(s *live.Status) string {
	text := s.Fit(maxStatus, func(s *live.Status) string {
		m, _ := markup.Parse(s.Markdown()).Next(0, markup.Feishu, maxText)
		return m.Text
	})
	return text + "\n\n" + s.Time()
}

// plain returns a text as a message.
func plain(text string) markup.Message {
	m, _ := markup.Parse(text).Next(0, markup.Feishu, maxText)
	return m
}
