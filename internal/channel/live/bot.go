package live

import (
	"context"
	"log/slog"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel"
)

// Bot delivers for one bot. Make it with NewBot. Its methods may be called concurrently. A channel embeds it, so that the channel has
// its name, its platform and its penalties.
type Bot struct {
	name string
	// gates has one gate for each place, so deliveries to topics of one chat, and messages of Send, wait for each other there.
	rules Rules
	gates gates
	log   *slog.Logger
}

// NewBot returns a bot with the name of its channel in the configuration. It makes at most one request in each gap, in all chats
// together. The gap is that of the platform's limit for a whole bot. A penalty that the server imposes on the bot lengthens it for that
// time.
func NewBot(name string, r Rules, gap time.Duration, log *slog.Logger) *Bot {
	return &Bot{name: name, rules: r, log: log, gates: gates{gap: gap, byPlace: map[string]*gate{}}}
}

// Deliver delivers a turn to a chat, as [channel.StreamChannel] describes it. It reads events until they are closed or a request
// fails for good. All its requests are made by the goroutine of the caller. The chat belongs to this delivery alone: it may remember
// what the platform has refused. If the result is an error, the messages that show the running turn stay, so the next call can
// continue with them.
func (b *Bot) Deliver(ctx context.Context, at Place, ch Chat, metadata channel.StreamMetadata, events <-chan channel.StreamEvent) error {
	d := &delivery{
		sender: sender{bot: b, chat: ch, gate: b.gates.of(at)}, metadata: metadata, stream: channel.NewStream(metadata.Turn), startedAt: time.Now(),
		doc: markup.Parse(""),
	}
	// The gate outlives the delivery: a penalty that was imposed on it is still in force for the next one.
	defer d.gate.release()
	if err := d.restore(ctx); err != nil {
		return err
	}
	if c, ok := ch.(DraftChat); ok {
		d.drafts = c
		d.view.drafts = true
		d.view.draftGap, d.view.draftLife = c.DraftTimes()
	}
	_, reacts := ch.(ReactChat)
	d.view.reacts = reacts && d.state.ReplyTo != "" && !d.state.Reacted
	d.view.typingLife = b.rules.TypingLife
	d.view.hasText, d.view.hasCard = len(d.state.Texts) > 0, d.state.Card != ""
	if err := d.follow(ctx, events); err != nil {
		return err
	}
	return d.finish(ctx)
}

// Send sends one message, in parts if it is too long. It waits out penalties and outages until ctx ends.
// channel.ErrUnknownOutcome means that a part was possibly delivered. A text with no content sends nothing and succeeds. A refusal
// ends it, so the parts after it are not sent: an answer with a gap in the middle would be worse than one that ends early.
func (b *Bot) Send(ctx context.Context, at Place, ch Chat, m channel.OutboundMessage) error {
	s := sender{bot: b, chat: ch, gate: b.gates.of(at)}
	defer s.gate.release()
	unknown := 0
	for i, text := range b.splitText(m.Content) {
		_, err := s.post(ctx, Post{Kind: Answer, Text: text, ReplyTo: m.ReplyTo, Key: partKey(m.Key, i)})
		if err != nil && !isUnknown(ctx, err) {
			return err
		}
		if err != nil {
			unknown++
		}
	}
	if unknown > 0 {
		return channel.ErrUnknownOutcome
	}
	return nil
}

// Name implements [channel.Channel].
func (b *Bot) Name() string { return b.name }

// Platform implements [channel.Channel].
func (b *Bot) Platform() string { return b.rules.Platform }

// Penalties returns how many chats the platform makes wait because of its limits, and until when.
func (b *Bot) Penalties() (chats int, end time.Time) { return b.gates.penalized() }

// splitText returns the messages of a text. Each is within the limit after rendering, in the unit of the format. A part of the text
// that shows nothing, such as a link definition, gives no message.
func (b *Bot) splitText(text string) (list []markup.Message) {
	doc := markup.Parse(text)
	for from := 0; from < doc.Len(); {
		var m markup.Message
		if m, from = doc.Next(from, b.rules.Format, b.rules.MaxText); m.Text != "" {
			list = append(list, m)
		}
	}
	return list
}
