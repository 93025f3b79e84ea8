package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/voice/wire"
	"github.com/leat-dev/leat/transcript"
)

const (
	// DefaultListen is the address that the channel listens on by default. It is the port of the seed's web channel, but on the loopback.
	DefaultListen = "127.0.0.1:18790"
	// listenOff is the value of [Options.Listen] for a channel that is only reached through another server.
	listenOff = "off"
	// Visitor is the sender of the messages of visitors who need no pairing code. It has to be in [channel.Options.Allow].
	Visitor = "visitor"
)

// Options configure a channel. Name and Log are required.
type Options struct {
	Name string
	// Listen is the address to listen on, or [listenOff]. If it is empty, it is [DefaultListen].
	Listen string
	// Origins are the origins of the pages that may connect, such as https://shop.example. "*" stands for all. The channel's own page
	// need not be listed if its address is a name of the loopback or a number.
	Origins []string
	// Public admits every visitor. Otherwise only people on the machine of the gateway are admitted, and others need
	// a pairing code. An admitted visitor who comes over the network still has fewer commands than one on the
	// machine; see [socket.command].
	Public bool
	Log    *slog.Logger
}

// Check returns an error if the options are invalid. It names the option, and doesn't try to listen.
func (o Options) Check() error {
	if listen := cmp.Or(o.Listen, DefaultListen); listen != listenOff {
		if _, port, err := net.SplitHostPort(listen); err != nil || port == "" {
			return fmt.Errorf("listen: invalid address %q; use one such as %s, or %s", listen, DefaultListen, listenOff)
		}
	}
	for _, origin := range o.Origins {
		if origin != "*" && !isOrigin(origin) {
			return fmt.Errorf("origins: invalid origin %q; use one such as https://shop.example", origin)
		}
	}
	return nil
}

// isOrigin reports whether a text is the origin of a page. A slash at the end is accepted, because people copy it
// with the address.
func isOrigin(text string) bool {
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Path == "" && u.RawQuery == "" && u.Fragment == ""
}

// conversations are what the channel reads of the conversations of its chats, for visitors whose missed frames are gone. The pipeline
// implements it.
type conversations interface {
	// ViewChat calls view with the newest part of the current conversation of a chat. If the chat has none, it doesn't call it.
	// view must not retain the transcript, and must be fast.
	ViewChat(ctx context.Context, channel, chat string, view func(*transcript.Transcript)) error
	// OpenChatMedia opens a file that the current conversation of a chat shows.
	OpenChatMedia(ctx context.Context, channel, chat string, m event.Media) (io.ReadCloser, error)
	// MessageID returns the id that a message of a person has in its conversation.
	MessageID(m channel.InboundMessage) string
}

// Channel is a web chat. Make it with [New]. Run may be called again after it has returned with an error, but not
// after its context has ended. All methods may be called concurrently, except ReadFrom and SpeakWith.
type Channel struct {
	options Options
	log     *slog.Logger
	// source is where histories come from. If it is nil, a reader whose frames are gone gets those that the room still
	// has.
	source conversations
	// voice and hearers are nil for a channel without voice. Then /voice answers 404.
	voice   *wire.Service
	hearers hearers
	rooms   rooms
	uploads uploads
	limits  limits
	// routes is built once. ServeHTTP checks the origin before it passes a request on.
	routes http.Handler
	// stopped is closed when the context of Run has ended. The visitors have to connect to another channel then, so nothing is added to
	// the rooms of this one.
	stopped chan struct{}

	mu sync.Mutex // protects the fields below
	// service is nil while Run doesn't run.
	service *service
	// address is the one that Run listens on, with the port that the system has chosen. It is empty if Run doesn't
	// listen.
	address string
}

var (
	_ channel.StreamChannel = (*Channel)(nil)
	_ channel.MediaChannel  = (*Channel)(nil)
)

// New returns a channel. Its options must have passed [Options.Check].
func New(o Options) *Channel {
	c := &Channel{options: o, log: o.Log, stopped: make(chan struct{})}
	c.rooms.byChat = map[string]*room{}
	c.uploads.byRef, c.uploads.byOwner = map[string]*upload{}, map[string]int64{}
	c.limits.byAddress = map[string]*visits{}
	c.routes = c.newRoutes()
	return c
}

// ReadFrom sets where histories come from. It is called before Run.
func (c *Channel) ReadFrom(source conversations) { c.source = source }

// Name implements [channel.Channel].
func (c *Channel) Name() string { return c.options.Name }

// Platform implements [channel.Channel].
func (c *Channel) Platform() string { return "web" }

// Capabilities implements [channel.Channel]. Idempotent holds as long as a room exists: it ignores repeated keys and
// turns that were delivered before.
func (c *Channel) Capabilities() channel.CapabilitySet {
	return channel.CapabilitySet{FileUpload: true, Idempotent: true}
}

// Link returns the address of the channel's own page, or "" if it doesn't listen.
func (c *Channel) Link() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.address == "" {
		return ""
	}
	return "http://" + c.address + "/"
}

// Send implements [channel.Channel]. The message is in the chat's room when it returns. The error wraps
// [channel.ErrUnreachable] if the id isn't one of this channel, so that the delivery isn't repeated. A visitor who
// isn't connected gets the message on the next connection, as long as the room exists.
func (c *Channel) Send(_ context.Context, m channel.OutboundMessage) error {
	if !isChat(m.ChatID) {
		return errUnknownChat
	}
	if c.isStopped() {
		return channel.ErrStopped
	}
	r := c.rooms.enter(m.ChatID)
	defer c.rooms.leave(r)
	r.sendMessage(m.Content, m.Key)
	return nil
}

// errUnknownChat means that a text isn't the id of a chat of this channel.
var errUnknownChat = fmt.Errorf("%w: not the id of a web chat", channel.ErrUnreachable)

// errCut means that the events ended before the turn. The delivery is repeated.
var errCut = errors.New("web: the stream of the turn was cut")
