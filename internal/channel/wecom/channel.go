package wecom

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

// defaultURL is the address of WeCom.
const defaultURL = "wss://openws.work.weixin.qq.com"

// Options configure a channel. All but Streaming and URL are required.
type Options struct {
	Name          string
	BotID, Secret string
	// Streaming shows answers while they are written. Without it nothing of a running turn is shown
	// but its questions, and each answer is sent when it is complete.
	Streaming bool
	// URL is the address of another server. If it is empty, it is that of WeCom.
	URL string
	Log *slog.Logger
}

// Check returns an error if the options can't be those of a bot.
func (o Options) Check() error {
	switch {
	case o.BotID == "":
		return errors.New("bot_id is missing; the bot's page shows it under API mode, long connection")
	case o.Secret == "":
		return errors.New("the bot's secret is missing; the bot's page shows it under API mode, long connection")
	case o.URL != "" && !strings.HasPrefix(o.URL, "ws://") && !strings.HasPrefix(o.URL, "wss://"):
		return errors.New("url begins with ws:// or wss://")
	}
	return nil
}

// bot is an intelligent bot. Make it with New.
type bot struct {
	*live.Bot
	options Options
	url     string
	dialer  *http.Client // of the WebSocket
	files   *http.Client // for files of people
	link    link
	origins callbacks
	log     *slog.Logger
}

var (
	_ channel.MediaChannel  = (*bot)(nil)
	_ channel.StreamChannel = (*bot)(nil)
)

// New returns a channel for one bot.
func New(o Options) channel.Channel {
	return &bot{
		options: o, url: cmp.Or(o.URL, defaultURL), dialer: &http.Client{}, log: o.Log, Bot: live.NewBot(o.Name, rules, botGap, o.Log),
		files: outbound.New(outbound.Options{AllowPrivate: o.URL != "", Timeout: transferLimit, MaxBody: maxDownload}),
		link:  link{pending: map[string]chan frame{}}, origins: callbacks{byMessage: map[string]callback{}},
	}
}

// Capabilities implements [channel.Channel].
func (c *bot) Capabilities() channel.CapabilitySet { return channel.CapabilitySet{FileUpload: true} }

// Send implements [channel.Channel].
func (c *bot) Send(ctx context.Context, m channel.OutboundMessage) error {
	return c.Bot.Send(ctx, placeOf(m.ChatID), c.newChat(m.ChatID, m.ReplyTo), m)
}

// SendStream implements [channel.StreamChannel].
func (c *bot) SendStream(ctx context.Context, chatID string, metadata channel.StreamMetadata, events <-chan channel.StreamEvent) error {
	ch := c.newChat(chatID, metadata.ReplyTo)
	if err := ch.restore(&metadata); err != nil {
		return err
	}
	var to live.FileChat = ch
	if !c.options.Streaming {
		to = live.Quiet(ch)
	}
	err := c.Deliver(ctx, placeOf(chatID), to, metadata, events)
	ch.abandon(ctx)
	return err
}
