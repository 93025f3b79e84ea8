package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/all"
	"github.com/leat-dev/leat/internal/channel/web"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/host"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/channels"
	"github.com/leat-dev/leat/internal/service/webhook"
	"github.com/leat-dev/leat/internal/voice/wire"
)

// openChannels makes the configured channels. They receive and deliver nothing before the gateway has started. A channel that can't be
// made fails the start, because its name is in the configuration on purpose.
func openChannels(list config.Channels, c channel.Config, speech *wire.Service) (*channel.Pipeline, error) {
	p := channel.New(c)
	for _, s := range list {
		ch, o, err := all.New(s, c.Log.With("channel", s.Name))
		if err != nil {
			return nil, err
		}
		readFrom(ch, p, speech)
		p.Add(ch, o)
	}
	return p, nil
}

// notice returns a failed delivery as webhooks describe it. A reply to a command has no conversation, so only the log and metrics have it.
func notice(f channel.StreamFailed) webhook.Failure {
	return webhook.Failure{
		Conversation: f.Conversation, Tenant: f.Tenant, Subject: f.Subject, Channel: f.Channel, Chat: f.Chat, Turn: f.Turn, Seq: f.Seq,
		Error: deliveryError(f.Err, errors.Is(f.Err, channel.ErrUnknownOutcome)),
	}
}

// reportFailure adds notices for webhooks of a delivery that a built-in channel gave up.
func (a *App) reportFailure(ctx context.Context, f channel.StreamFailed) error {
	return a.hooks.ReportFailure(ctx, notice(f))
}

// pluginNotice is notice for channels that are plugins.
func pluginNotice(f host.Failure) webhook.Failure {
	return webhook.Failure{
		Conversation: f.Conversation, Tenant: f.Tenant, Subject: f.Subject, Channel: f.Channel, Chat: f.Chat, Turn: f.Turn, Seq: f.Seq,
		Error: deliveryError(f.Err, f.IsUnknown),
	}
}

// reportPluginFailure counts a delivery that a plugin gave up, and adds notices for webhooks.
func (a *App) reportPluginFailure(ctx context.Context, f host.Failure) error {
	a.metrics.channel.CountFailure(f.Channel, f.IsUnknown)
	return a.hooks.ReportFailure(ctx, pluginNotice(f))
}

// deliveryError returns the error of a delivery that failed for good. isUnknown means that it was possibly delivered.
func deliveryError(err error, isUnknown bool) event.Error {
	code := "undeliverable"
	if isUnknown {
		code = "possibly_delivered"
	}
	return event.Error{Code: code, Message: err.Error()}
}

// registerChannels adds the routes of channels.
func (a *App) registerChannels(srv *server.Server) {
	if a.plugins.host == nil {
		channels.Register(srv, a.gateway, a.channels, nil)
		return
	}
	channels.Register(srv, a.gateway, a.channels, a.plugins.host)
}

// channelSignals returns the health signals of all channels, each once.
func (a *App) channelSignals() []string {
	signals := a.channels.Signals()
	if a.plugins.host != nil {
		signals = append(signals, a.plugins.host.Signals()...)
	}
	slices.Sort(signals)
	return slices.Compact(signals)
}

// watchChannels subscribes the channels to committed events, and lets them send the last answers of a gateway that shuts down. If the tracer
// can trace deliveries, it does.
func watchChannels(p *channel.Pipeline, cfg *gateway.Config) {
	if d, ok := cfg.Tracer.(channel.StreamDelegate); ok {
		p.Observe(d)
	}
	cfg.Watchers = append(cfg.Watchers, p)
	cfg.Drained = p.Shutdown
}

// changedChannel is a channel whose configuration is new or has changed.
type changedChannel struct {
	channel channel.Channel
	options channel.Options
}

// makeChannels makes the channels that are new or changed. It makes none of the unchanged ones, whose connections stay.
func (r *reloader) makeChannels(next *config.Config) ([]changedChannel, error) {
	var changed []changedChannel
	for _, s := range next.Channels {
		if slices.ContainsFunc(r.liveConfig.Channels, func(o agent.Spec) bool { return reflect.DeepEqual(o, s) }) {
			continue
		}
		ch, o, err := all.New(s, r.log.With("channel", s.Name))
		if err != nil {
			return nil, fmt.Errorf("%w: channels: %w", config.ErrInvalid, err)
		}
		readFrom(ch, r.channels, r.voice)
		changed = append(changed, changedChannel{ch, o})
	}
	return changed, nil
}

// applyChannels replaces the changed channels and removes those that the configuration no longer has. A channel that can't be
// replaced is logged, and the others still are.
func (r *reloader) applyChannels(next *config.Config, changed []changedChannel) {
	for _, c := range changed {
		if err := r.channels.Replace(context.Background(), c.channel, c.options); err != nil {
			r.log.Error("channel not replaced", "channel", c.channel.Name(), "error", err)
		}
	}
	for _, s := range r.liveConfig.Channels {
		if !slices.ContainsFunc(next.Channels, func(o agent.Spec) bool { return o.Name == s.Name }) {
			r.channels.Remove(s.Name)
		}
	}
}

// readFrom lets a web channel show conversations to visitors whose missed frames are gone, and lets visitors talk.
func readFrom(ch channel.Channel, p *channel.Pipeline, speech *wire.Service) {
	if chat, ok := ch.(*web.Channel); ok {
		chat.ReadFrom(p)
		chat.SpeakWith(speech, p)
	}
}

// webPath is the path of the channel that is named web. Another web channel has its name as a further segment. /ws itself belongs to
// Eliza's clients.
const webPath = "/web"

// chatAt returns the channel that a path below webPath belongs to, and the prefix that the channel doesn't know.
func chatAt(path string) (name, prefix string) {
	switch first, _, _ := strings.Cut(path, "/"); first {
	case "", "ws", "voice", "widget.js", "files", "media":
		return "web", webPath
	default:
		return first, webPath + "/" + first
	}
}

// mountChats adds the routes of web channels. A channel decides itself which origins may connect, because its pages belong to others
// than those of the gateway.
func mountChats(srv *server.Server, p *channel.Pipeline) {
	serve := func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		if addr := server.ClientAddr(r); addr.IsValid() { // behind a trusted proxy it isn't that of the connection
			client := *r
			client.RemoteAddr = net.JoinHostPort(addr.String(), "0")
			r = &client
		}
		name, prefix := chatAt(r.PathValue("path"))
		var err error
		http.StripPrefix(prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { err = p.ServePage(w, r, name) })).ServeHTTP(w, r)
		if err != nil {
			return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "no web chat is at this path")
		}
		return nil
	}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
		srv.Handle(server.Route{
			Method: method, Pattern: webPath + "/{path...}", Access: server.Public, AnyOrigin: true, MaxBody: web.MaxUpload, Stream: method == http.MethodGet,
			Handler: serve,
		})
	}
}
