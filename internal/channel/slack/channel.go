package slack

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

// defaultURL is the address of Slack's Web API.
const defaultURL = "https://slack.com/api"

// Options configure a channel. Name, Token, Log and one of AppToken and SigningSecret are required. With both an app token and a
// signing secret the bot receives by Socket Mode, and requests are accepted as well.
type Options struct {
	// Name is that of the channel in the configuration.
	Name  string
	Token string // of the bot; it begins with xoxb-
	// AppToken makes the bot receive by Socket Mode. It begins with xapp-.
	AppToken string
	// SigningSecret makes the bot receive requests of the Events API.
	SigningSecret string
	// Streaming shows answers while they are written. Without it each answer is sent when it is complete.
	Streaming bool
	// URL is the address of another server with the Web API. If it is empty, it is that of Slack.
	URL string
	Log *slog.Logger
}

// Check returns an error if the options can't be those of a bot. It recognizes the kinds of tokens by their beginnings, because they
// are easily confused in the settings of an app.
func (o Options) Check() error {
	switch {
	case !strings.HasPrefix(o.Token, "xoxb-"):
		return errors.New("the token of a Slack bot begins with xoxb-; it is on the page OAuth & Permissions of the app")
	case o.AppToken != "" && !strings.HasPrefix(o.AppToken, "xapp-"):
		return errors.New("the app-level token of a Slack app begins with xapp-; it is on the page Basic Information of the app")
	case o.AppToken == "" && o.SigningSecret == "":
		return errors.New("a Slack bot needs app_token, to receive by Socket Mode, or signing_secret, to receive requests")
	}
	return nil
}

// bot is a Slack bot. Make it with New.
type bot struct {
	// Bot decides about requests to chats. Limits of methods are those of the client.
	*live.Bot
	isLive bool // answers are shown while they are written
	client *client
	secret string // for signatures of requests, or empty
	log    *slog.Logger
	// people caches names for events, which have only ids.
	people people
	// account is needed for mentions and for searches. Until it is known, requests to the webhook are refused, and Slack repeats
	// them.
	account atomic.Pointer[account] // the bot itself, once it is known
	// The inbox is set by Run. A chat needs it to pass on that a person has stopped a stream.
	inbox atomic.Pointer[channel.Inbox]
}

// New returns a channel for one bot.
func New(o Options) channel.Channel {
	return &bot{
		isLive: o.Streaming, secret: o.SigningSecret, log: o.Log, Bot: live.NewBot(o.Name, rules, botGap, o.Log),
		client: newClient(strings.TrimSuffix(cmp.Or(o.URL, defaultURL), "/")+"/", o.Token, o.AppToken, o.URL != ""),
	}
}

// Link returns the address of the bot for people.
func (c *bot) Link() string {
	if a := c.account.Load(); a != nil {
		return strings.TrimSuffix(a.URL, "/") + "/team/" + a.User
	}
	return ""
}

// Capabilities implements [channel.Channel].
func (c *bot) Capabilities() channel.CapabilitySet { return channel.CapabilitySet{FileUpload: true} }

// Send implements [channel.Channel]. A key is made for a message without one, because the history is searched by key.
func (c *bot) Send(ctx context.Context, m channel.OutboundMessage) error {
	at, err := parsePlace(m.ChatID)
	if err != nil {
		return err
	}
	if m.Key == "" {
		m.Key = uuid.NewString() // a message without a key could not be found
	}
	return c.Bot.Send(ctx, at.gatePlace(), c.newChat(at, nil), m)
}

// gatePlace returns where the requests to a chat are counted.
func (p place) gatePlace() live.Place { return live.Place{ID: p.id(), Gap: gap} }

// identify returns the bot itself. It retries until ctx ends or the token is refused. The ids are needed to recognize mentions of the
// bot and its messages.
func (c *bot) identify(ctx context.Context) (*account, error) {
	for failed := 1; ; failed++ {
		var a account
		err := c.client.call(ctx, "auth.test", nil, &a)
		if err == nil {
			c.account.Store(&a)
			return &a, nil
		}
		if isRefused(err) || ctx.Err() != nil {
			return nil, err
		}
		c.log.Warn("Slack can't be reached; trying again", "error", err)
		if err := c.pause(ctx, failed, err); err != nil {
			return nil, err
		}
	}
}

var _ channel.StreamChannel = (*bot)(nil)

// SendStream implements [channel.StreamChannel].
func (c *bot) SendStream(ctx context.Context, chatID string, metadata channel.StreamMetadata, events <-chan channel.StreamEvent) error {
	at, err := parsePlace(chatID)
	if err != nil {
		return err
	}
	var ch live.FileChat = c.newChat(at, metadata.State)
	if !c.isLive {
		ch = live.Quiet(ch)
	}
	return c.Deliver(ctx, at.gatePlace(), ch, metadata, events)
}

// gap is the time between two requests that show something in a chat: what a stream allows. Messages and edits wait longer. The
// limits of this package delay those by themselves.
const gap = 600 * time.Millisecond

// botGap is the time between two requests of the bot, to all chats together. The limits of Slack count for methods.
const botGap = 20 * time.Millisecond
