package matrix

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

// botGap is the time between two requests of the bot, to all rooms together.
const botGap = 20 * time.Millisecond

// Options configure a channel. All but Streaming are required.
type Options struct {
	// Name is that of the channel in the configuration, not the one that people see.
	Name   string
	Server string // address of the homeserver's client API, such as https://matrix.example.org
	Token  string // access token of the bot's account
	// Streaming shows answers while they are written. Without it each answer is sent when it is complete.
	Streaming bool
	Log       *slog.Logger
}

// Check returns an error if the options can't be those of a bot.
func (o Options) Check() error {
	u, err := url.Parse(o.Server)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return errors.New("the server of a Matrix bot has the form https://matrix.example.org")
	}
	if strings.ContainsAny(o.Token, " \t\r\n") {
		return errors.New("the access token of a Matrix bot contains no spaces")
	}
	return nil
}

// account is the bot itself.
type account struct {
	id   string // such as @leat:example.org
	name string // displayname, or empty
}

// bot is a Matrix bot. Make it with New.
type bot struct {
	// Bot decides about requests to rooms. The sync doesn't use it.
	*live.Bot
	isLive bool // answers are shown while they are written
	client *client
	log    *slog.Logger
	// rooms caches members, because names and the size of a room are needed for each message.
	rooms   rooms
	account atomic.Pointer[account] // nil until it is known
	// limitedUntil is the end of the last penalty of the homeserver, in nanoseconds of the epoch.
	limitedUntil atomic.Int64
}

// New returns a channel for one bot.
func New(o Options) channel.Channel {
	c := &bot{isLive: o.Streaming, client: newClient(strings.TrimSuffix(o.Server, "/"), o.Token), log: o.Log, Bot: live.NewBot(o.Name, rules, botGap, o.Log)}
	c.rooms.client = c.client
	return c
}

// Link implements [channel.Linked].
func (c *bot) Link() string {
	if a := c.account.Load(); a != nil {
		return "https://matrix.to/#/" + a.id
	}
	return ""
}

// Capabilities implements [channel.Channel].
func (c *bot) Capabilities() channel.CapabilitySet {
	return channel.CapabilitySet{Idempotent: true, FileUpload: true}
}

// Send implements [channel.Channel].
func (c *bot) Send(ctx context.Context, m channel.OutboundMessage) error {
	at := parsePlace(m.ChatID)
	return c.Bot.Send(ctx, at.gatePlace(), c.newChat(at), m)
}

var (
	_ channel.MediaChannel  = (*bot)(nil)
	_ channel.StreamChannel = (*bot)(nil)
)

// SendStream implements [channel.StreamChannel].
func (c *bot) SendStream(ctx context.Context, chatID string, metadata channel.StreamMetadata, events <-chan channel.StreamEvent) error {
	at := parsePlace(chatID)
	t := c.newChat(at)
	var ch live.FileChat = t
	if !c.isLive || t.wantsQuiet(ctx) {
		ch = live.Quiet(t)
	}
	return c.Deliver(ctx, at.gatePlace(), ch, metadata, events)
}

// place is a room, or a thread in one.
type place struct {
	room   string
	thread string // the event with which the thread begins, or empty
}

// id returns the place as a chat id of the pipeline: ROOM or ROOM/EVENT.
func (p place) id() string {
	if p.thread == "" {
		return p.room
	}
	return p.room + "/" + p.thread
}

// parsePlace reads what id returned. Room ids contain no slash.
func parsePlace(id string) place {
	room, thread, _ := strings.Cut(id, "/")
	return place{room, thread}
}
