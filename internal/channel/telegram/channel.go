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
)

// defaultURL is the address of the public Bot API.
const defaultURL = "https://api.telegram.org"

// Options configure a channel. Name, Token and Log are required.
type Options struct {
	Name  string
	Token string // of the bot, from @BotFather
	// Streaming shows answers while they are written. Without it each answer is sent when it is complete.
	Streaming bool
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
	return nil
}

// bot is a Telegram bot. Make it with New.
type bot struct {
	name    string
	client  *client
	log     *slog.Logger
	gates   gates
	account atomic.Pointer[user] // the bot itself, once it is known
}

// New returns a channel for one bot. It implements [channel.StreamChannel] if Streaming is set.
func New(o Options) channel.Channel {
	c := &bot{
		name: o.Name, log: o.Log, gates: gates{byChat: map[int64]*gate{}},
		client: newClient(strings.TrimSuffix(cmp.Or(o.URL, defaultURL), "/"), o.Token, o.URL != ""),
	}
	if o.Streaming {
		return &streamer{c}
	}
	return c
}

// Name implements [channel.Channel].
func (c *bot) Name() string { return c.name }

// Link implements [channel.Linked].
func (c *bot) Link() string {
	if account := c.account.Load(); account != nil {
		return "https://t.me/" + account.Username
	}
	return ""
}

// Platform implements [channel.Channel].
func (c *bot) Platform() string { return "telegram" }

// Capabilities implements [channel.Channel].
func (c *bot) Capabilities() channel.CapabilitySet { return channel.CapabilitySet{} }

// Send implements [channel.Channel].
func (c *bot) Send(ctx context.Context, m channel.OutboundMessage) error {
	at, err := parsePlace(m.ChatID)
	if err != nil {
		return err
	}
	g := c.gates.of(at.chat)
	defer g.use(-1)
	report := report{c: c, gate: g, at: at, text: m.Content, replyTo: messageNumber(m.ReplyTo)}
	return report.send(ctx)
}

// streamer is a bot that streams. It is a separate type, because the pipeline finds out from a
// channel's methods what it can do.
type streamer struct{ *bot }

var _ channel.StreamChannel = (*streamer)(nil)
