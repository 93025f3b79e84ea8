package telegram

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

// defaultURL is the address of the public Bot API.
const defaultURL = "https://api.telegram.org"

// Options configure a channel. Name, Token and Log are required.
type Options struct {
	// Name is that of the channel in the configuration.
	Name  string
	Token string // of the bot, from @BotFather
	// Streaming shows answers while they are written. Without it each answer is sent when it is complete.
	Streaming bool
	// Webhook is the address at which Telegram reaches the gateway's webhook of the channel. If it is empty, the bot polls.
	Webhook string
	// URL is the address of another Bot API server. If it is empty, it is that of Telegram.
	URL string
	Log *slog.Logger
}

// tokenForm is the form of a bot's token.
var tokenForm = regexp.MustCompile(`^\d+:[A-Za-z0-9_-]+$`)

// Check returns an error if the options can't be those of a bot.
func (o Options) Check() error {
	if !tokenForm.MatchString(o.Token) {
		return errors.New("the token of a Telegram bot has the form 123456:ABC...; @BotFather shows it")
	}
	if o.Webhook != "" && !strings.HasPrefix(o.Webhook, "https://") {
		return errors.New("webhook must begin with https://, because Telegram calls no other addresses")
	}
	return nil
}

// bot is a Telegram bot. Make it with New.
type bot struct {
	// Bot decides about requests to chats. Polls don't use it.
	*live.Bot
	isLive  bool // answers are shown while they are written
	client  *client
	webhook string // the public address, or empty if the bot polls
	log     *slog.Logger
	account atomic.Pointer[user] // the bot itself, once it is known
	noRich  atomic.Bool          // the server doesn't know rich drafts
}

// New returns a channel for one bot.
func New(o Options) channel.Channel {
	return &bot{
		isLive: o.Streaming, webhook: o.Webhook, log: o.Log, Bot: live.NewBot(o.Name, rules, botGap, o.Log),
		client: newClient(strings.TrimSuffix(cmp.Or(o.URL, defaultURL), "/"), o.Token, o.URL != ""),
	}
}

// Link returns the address of the bot for people.
func (c *bot) Link() string {
	if account := c.account.Load(); account != nil {
		return "https://t.me/" + account.Username
	}
	return ""
}

// Capabilities implements [channel.Channel].
func (c *bot) Capabilities() channel.CapabilitySet {
	return channel.CapabilitySet{Reactions: true, FileUpload: true}
}

// Send implements [channel.Channel].
func (c *bot) Send(ctx context.Context, m channel.OutboundMessage) error {
	at, err := parsePlace(m.ChatID)
	if err != nil {
		return err
	}
	return c.Bot.Send(ctx, at.gatePlace(), c.newChat(at, ""), m)
}

var (
	_ channel.VoiceChannel   = (*bot)(nil)
	_ channel.WebhookChannel = (*bot)(nil)
)

// SendsVoice implements [channel.VoiceChannel].
func (c *bot) SendsVoice() {}

// SendStream implements [channel.StreamChannel].
func (c *bot) SendStream(ctx context.Context, chatID string, metadata channel.StreamMetadata, events <-chan channel.StreamEvent) error {
	at, err := parsePlace(chatID)
	if err != nil {
		return err
	}
	ch := c.newChat(at, metadata.Turn)
	if !c.isLive {
		ch = live.Quiet(ch)
	}
	return c.Deliver(ctx, at.gatePlace(), ch, metadata, events)
}
