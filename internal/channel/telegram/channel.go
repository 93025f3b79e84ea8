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

// Options configure a [Channel]. Name, Token and Log are required.
type Options struct {
	Name  string
	Token string // of the bot, from @BotFather
	// Streaming shows answers while they are written. Without it each answer is sent when it is complete.
	Streaming bool
	// URL is the address of a Bot API server of one's own. If it is empty, it is that of Telegram.
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

// Channel is a Telegram bot. Make it with New.
type Channel struct {
	name   string
	client *client
	log    *slog.Logger
	gates  gates
	bot    atomic.Pointer[user] // the bot, once it is known
}

// New returns a channel for one bot. It implements [channel.StreamChannel] if the options say so.
func New(o Options) channel.Channel {
	c := &Channel{
		name: o.Name, log: o.Log, gates: gates{byChat: map[int64]*gate{}},
		client: newClient(strings.TrimSuffix(cmp.Or(o.URL, defaultURL), "/"), o.Token, o.URL != ""),
	}
	if o.Streaming {
		return &streamer{c}
	}
	return c
}

// Name implements [channel.Channel].
func (c *Channel) Name() string { return c.name }

// Link implements [channel.Linked].
func (c *Channel) Link() string {
	if me := c.bot.Load(); me != nil {
		return "https://t.me/" + me.Username
	}
	return ""
}

// Platform implements [channel.Channel].
func (c *Channel) Platform() string { return "telegram" }

// Capabilities implements [channel.Channel].
func (c *Channel) Capabilities() channel.CapabilitySet { return channel.CapabilitySet{} }

// Send implements [channel.Channel].
func (c *Channel) Send(ctx context.Context, m channel.OutboundMessage) error {
	at, err := parsePlace(m.ChatID)
	if err != nil {
		return err
	}
	g := c.gates.of(at.chat)
	defer g.use(-1)
	report := report{c: c, gate: g, at: at, text: m.Content, replyTo: messageNumber(m.ReplyTo)}
	return report.send(ctx)
}

// streamer is a Channel that streams. It is a type of its own, because the pipeline finds out what a channel can do from its methods.
type streamer struct{ *Channel }

var _ channel.StreamChannel = (*streamer)(nil)
