package telegram

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
)

// maxText is the limit of a message, in UTF-16 units of its visible text.
const maxText = 4096

// sendAgain are the waits after requests that failed for a reason that may pass.
var sendAgain = retry.Schedule{Initial: time.Second, Max: time.Minute, Jitter: true}

// report is a text that has to arrive: a final answer or a reply to a command. It is sent as normal messages, which notify.
type report struct {
	c       *bot
	gate    *gate
	at      place
	text    string // Markdown
	replyTo int64  // number of the message that it answers, or 0

	// from is the position in text of the next message. before is called before each message with the position behind it, and
	// after with its number. Both may be nil.
	from   int
	before func(ctx context.Context, next int) error
	after  func(ctx context.Context, id int64) error
	// unknown is how many messages were possibly delivered.
	unknown int
}

// send sends the messages that are left. It waits out penalties and outages until ctx ends. A message without an answer may have
// been delivered; it is not sent again, and counted in unknown.
func (r *report) send(ctx context.Context) error {
	doc := markup.Parse(r.text)
	for r.from < doc.Len() {
		m, next := doc.Next(r.from, markup.Telegram, maxText)
		if m.Text != "" {
			if err := r.message(ctx, m, next); err != nil {
				return err
			}
		}
		r.from = next
	}
	return nil
}

// message sends one message, which ends at position next of the text.
func (r *report) message(ctx context.Context, m markup.Message, next int) error {
	if r.before != nil {
		if err := r.before(ctx, next); err != nil {
			return err
		}
	}
	params := outgoing{ChatID: r.at.chat, Thread: r.at.topic(), Text: m.Text, Entities: m.Entities, Reply: replyTo(r.replyTo)}
	var result message
	err := r.deliver(ctx, &params, &result)
	if errors.Is(err, errUnknown) {
		r.unknown++
		return ctx.Err()
	}
	if err == nil && r.after != nil {
		return r.after(ctx, result.ID)
	}
	return err
}

// deliver sends a message until it is accepted, its outcome is unknown, or the chat can't be reached. It changes what the chat
// refuses and the message can do without.
func (r *report) deliver(ctx context.Context, params *outgoing, result *message) error {
	for {
		err := r.c.persist(ctx, func() error { return r.c.request(ctx, r.gate, true, "sendMessage", params, result) })
		switch {
		case isMarkupRefused(err) && params.Entities != nil:
			params.Entities = nil
		case isThreadMissing(err) && params.Thread != 0:
			params.Thread = 0
		case migratedTo(err) != 0 && params.ChatID != migratedTo(err):
			params.ChatID = migratedTo(err)
		default:
			return err
		}
	}
}

// persist repeats a request that has to arrive, but must not take effect twice. It waits out penalties and outages until ctx
// ends. The result is nil, the error of ctx, an unknown outcome, or a refusal, which wraps channel.ErrUnreachable if the chat
// refuses everything.
func (c *bot) persist(ctx context.Context, send func() error) error {
	for failed := 0; ; {
		err := send()
		switch {
		case err == nil, errors.Is(err, errUnknown), ctx.Err() != nil:
			return err
		case code(err) == http.StatusTooManyRequests: // the gate waits
		case isPassing(err):
			failed++
			if err := retry.Sleep(ctx, sendAgain.Wait(failed)); err != nil {
				return err
			}
		case isTerminal(err):
			return errors.Join(channel.ErrUnreachable, err)
		default:
			return err
		}
	}
}

// outgoing are the parameters of sendMessage, editMessageText and sendMessageDraft.
type outgoing struct {
	ChatID   int64           `json:"chat_id"`
	Thread   int64           `json:"message_thread_id,omitempty"`
	Message  int64           `json:"message_id,omitempty"`
	Draft    int64           `json:"draft_id,omitempty"`
	CanStop  bool            `json:"can_stop,omitempty"`
	Text     string          `json:"text"`
	Entities []markup.Entity `json:"entities,omitempty"`
	Mode     string          `json:"parse_mode,omitempty"`
	Silent   bool            `json:"disable_notification,omitempty"`
	Reply    *reply          `json:"reply_parameters,omitempty"`
	Buttons  *keyboard       `json:"reply_markup,omitempty"`
	Preview  *preview        `json:"link_preview_options,omitempty"`
}

// reply makes a message a reply. A reply to a message that was deleted is sent as a normal message.
type reply struct {
	Message int64 `json:"message_id"`
	Lenient bool  `json:"allow_sending_without_reply"`
}

func replyTo(number int64) *reply {
	if number == 0 {
		return nil
	}
	return &reply{number, true}
}

// preview switches link previews off.
type preview struct {
	Disabled bool `json:"is_disabled"`
}

// topic returns the topic for a request. The general topic must be omitted.
func (p place) topic() int64 {
	if p.thread == 1 {
		return 0
	}
	return p.thread
}

// migratedTo returns the new id of a group that became a supergroup, or 0.
func migratedTo(err error) int64 {
	if refusal, ok := errors.AsType[*apiError](err); ok {
		return refusal.MigratedTo
	}
	return 0
}
