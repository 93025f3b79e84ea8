package feishu

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

// defaultURL is the address of Feishu. That of Lark is https://open.larksuite.com.
const defaultURL = "https://open.feishu.cn"

// Options configure a channel. All but Streaming and URL are required.
type Options struct {
	Name             string
	AppID, AppSecret string
	// EncryptKey is the key of the app's event subscriptions. It signs and encrypts the requests to the webhook.
	EncryptKey string
	// Streaming shows answers while they are written. Without it nothing of a running turn is shown
	// but its questions, and each answer is sent when it is complete.
	Streaming bool
	// URL is the address of Lark or of another server. If it is empty, it is that of Feishu.
	URL string
	Log *slog.Logger
}

// Check returns an error if the options can't be those of an app.
func (o Options) Check() error {
	switch {
	case !strings.HasPrefix(o.AppID, "cli_"):
		return errors.New("app_id has the form cli_…; the app's page shows it under Credentials")
	case o.AppSecret == "":
		return errors.New("the app's secret is missing; the app's page shows it under Credentials")
	case o.EncryptKey == "":
		return errors.New("encrypt_key is missing; set one on the app's page under Events and Callbacks, Encryption Strategy")
	}
	return nil
}

// bot is the bot of an app. Make it with New.
type bot struct {
	*live.Bot
	options Options
	client  *client
	log     *slog.Logger
	openID  atomic.Pointer[string] // of the bot itself, once it is known
	people  people
}

var (
	_ channel.WebhookChannel = (*bot)(nil)
	_ channel.MediaChannel   = (*bot)(nil)
	_ channel.StreamChannel  = (*bot)(nil)
)

// New returns a channel for the bot of one app.
func New(o Options) channel.Channel {
	return &bot{
		options: o, log: o.Log, Bot: live.NewBot(o.Name, rules, botGap, o.Log),
		client: newClient(strings.TrimSuffix(cmp.Or(o.URL, defaultURL), "/"), o.AppID, o.AppSecret, o.URL != ""),
	}
}

// Capabilities implements [channel.Channel].
func (c *bot) Capabilities() channel.CapabilitySet {
	return channel.CapabilitySet{FileUpload: true, Idempotent: true}
}

// Link returns the address that opens a chat with the bot.
func (c *bot) Link() string {
	host := "applink.feishu.cn"
	if strings.Contains(c.options.URL, "larksuite.com") {
		host = "applink.larksuite.com"
	}
	return "https://" + host + "/client/bot/open?appId=" + c.options.AppID
}

// Send implements [channel.Channel].
func (c *bot) Send(ctx context.Context, m channel.OutboundMessage) error {
	at := parsePlace(m.ChatID)
	return c.Bot.Send(ctx, at.limits(), c.newChat(at), m)
}

// SendStream implements [channel.StreamChannel].
func (c *bot) SendStream(ctx context.Context, chatID string, metadata channel.StreamMetadata, events <-chan channel.StreamEvent) error {
	at := parsePlace(chatID)
	ch := c.newChat(at)
	ch.isResumed = metadata.State != nil
	if !c.options.Streaming {
		return c.Deliver(ctx, at.limits(), live.Quiet(ch), metadata, events)
	}
	return c.Deliver(ctx, at.limits(), ch, metadata, events)
}
