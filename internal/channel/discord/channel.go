package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// defaultURL is the address of the platform.
	defaultURL = "https://discord.com"
	// permissions are those that the bot asks for: to see channels, send messages, also in threads, attach files, and read the
	// history. They are bits of a number, in which a link for adding the bot names them.
	permissions = 1<<10 | 1<<11 | 1<<15 | 1<<16 | 1<<38
)

// Options configure a channel. Name, Token and Log are required.
type Options struct {
	// Name is that of the channel in the configuration. It appears in logs and in ids of conversations.
	Name  string
	Token string // of the bot, from the Developer Portal
	// Streaming shows answers while they are written. Without it each answer is sent when it is complete.
	Streaming bool
	// URL is the address of another server with the same API. If it is empty, it is that of Discord.
	URL string
	Log *slog.Logger
}

// tokenForm is the form of a bot's token: three parts in base64. A form that is checked at the start finds a client secret that was
// pasted by mistake, which the platform would refuse much later.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// Check returns an error if the options can't be those of a bot.
func (o Options) Check() error {
	if !tokenForm.MatchString(o.Token) {
		return errors.New("the token of a Discord bot has three parts with dots between them; the Developer Portal shows it under Bot")
	}
	return nil
}

// bot is a Discord bot. Make it with New. All its methods may be called concurrently with Run.
type bot struct {
	// Bot decides about requests to chats. The gateway connection doesn't use it.
	*live.Bot
	isLive bool // answers are shown while they are written
	client *client
	log    *slog.Logger
	// interactions connect the replies of the pipeline with the slash commands that they answer.
	interactions interactions
	account      atomic.Pointer[account] // the bot itself, once it is known
}

// account is the bot as the gateway introduces it. Old bots have two different ids: one as a user, which mentions contain, and one as
// an application, to which commands belong.
type account struct {
	userID, applicationID string
}

// New returns a channel for one bot.
func New(o Options) channel.Channel {
	return &bot{
		isLive: o.Streaming, log: o.Log, Bot: live.NewBot(o.Name, rules, botGap, o.Log), interactions: interactions{byID: map[string]*interaction{}},
		client: newClient(strings.TrimSuffix(cmp.Or(o.URL, defaultURL), "/"), o.Token, o.URL != ""),
	}
}

// Link implements [channel.Linked]. It is the page on which the bot is added to a server. It is empty until the gateway has
// introduced the bot.
func (c *bot) Link() string {
	a := c.account.Load()
	if a == nil {
		return ""
	}
	query := url.Values{"client_id": {a.applicationID}, "scope": {"bot applications.commands"}, "permissions": {strconv.FormatUint(permissions, 10)}}
	return defaultURL + "/oauth2/authorize?" + query.Encode()
}

// Capabilities implements [channel.Channel]. The platform forgets the key of a message within minutes, so after a restart a repetition
// could appear twice.
func (c *bot) Capabilities() channel.CapabilitySet { return channel.CapabilitySet{FileUpload: true} }

// Send implements [channel.Channel].
func (c *bot) Send(ctx context.Context, m channel.OutboundMessage) error {
	if err := checkChat(m.ChatID); err != nil {
		return err
	}
	if m.Key == "" {
		m.Key = randomKey()
	}
	return c.Bot.Send(ctx, placeOf(m.ChatID), c.newChat(m.ChatID, nil), m)
}

var (
	_ channel.StreamChannel = (*bot)(nil)
	_ channel.MediaChannel  = (*bot)(nil)
)

// SendStream implements [channel.StreamChannel].
func (c *bot) SendStream(ctx context.Context, chatID string, metadata channel.StreamMetadata, events <-chan channel.StreamEvent) error {
	if err := checkChat(chatID); err != nil {
		return err
	}
	var ch live.FileChat = c.newChat(chatID, metadata.State)
	if !c.isLive {
		ch = live.Quiet(ch)
	}
	return c.Deliver(ctx, placeOf(chatID), ch, metadata, events)
}

// checkChat returns an error for an id that can't be that of a Discord channel. An id goes into the path of a request, so a text with
// a slash would reach another route.
func checkChat(id string) error {
	if !isID(id) {
		return fmt.Errorf("discord: %q is not the id of a channel: %w", id, channel.ErrUnreachable)
	}
	return nil
}

// isID reports whether a text has the form of an id of the platform.
func isID(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}
