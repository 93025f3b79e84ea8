// Package channels serves the routes with which operators manage channels: their states, the conversations that chats show, the admission
// of people, and sending messages to chats. Only admins may use them. The webhooks of the platforms are public.

package channels

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/leat-dev/leat/agent/plugin"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/host"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/audit"
)

// pipeline is what the routes need of [channel.Pipeline].
type pipeline interface {
	States() []channel.State
	Pairings(ctx context.Context) ([]channel.Pairing, error)
	Allow(ctx context.Context, code string) (channel.Person, error)
	Send(ctx context.Context, m channel.OutboundMessage) error
	Attach(ctx context.Context, channel, chat, conversation string) error
	Detach(ctx context.Context, channel, chat, conversation string) error
	ServeWebhook(w http.ResponseWriter, r *http.Request, channel string) error
}

// pluginHost is what the routes need of [host.Host]. Its channels can be listed, attached and detached; how people are admitted and
// how messages are sent is up to each plugin.
type pluginHost interface {
	Channels(ctx context.Context) ([]host.ChannelState, error)
	Attach(ctx context.Context, channel, chat, conversation string) error
	Detach(ctx context.Context, channel, chat, conversation string) error
}

// surface is the set of routes.
type surface struct {
	srv      *server.Server
	gw       *gateway.Gateway
	pipeline pipeline
	plugins  pluginHost // nil if plugins are disabled
}

// Register adds the routes to a server. plugins is nil if plugins are disabled.
func Register(srv *server.Server, gw *gateway.Gateway, p pipeline, plugins pluginHost) {
	s := &surface{srv, gw, p, plugins}
	srv.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/channels", Access: server.Admin, Handler: s.list})
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/channels/allow", Access: server.Admin, Handler: s.allow})
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/channels/{name}/send", Access: server.Admin, Handler: s.send})
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/channels/{name}/attach", Access: server.Admin, Handler: s.attach})
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/channels/{name}/detach", Access: server.Admin, Handler: s.detach})
	for _, method := range []string{http.MethodGet, http.MethodPost} { // some platforms check an address with GET
		srv.Handle(server.Route{Method: method, Pattern: "/api/channels/{name}/webhook", Access: server.Public, AnyHost: true, Handler: s.webhook})
	}
}

// allow answers POST /api/channels/allow with the person who was admitted.
func (s *surface) allow(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var in struct {
		Code string `json:"code"`
	}
	if err := server.Decode(r, &in); err != nil {
		return err
	}
	person, err := s.pipeline.Allow(r.Context(), in.Code)
	if errors.Is(err, channel.ErrCode) {
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "no such pairing code; it may have expired")
	}
	if err != nil {
		return err
	}
	e := audit.Entry{Action: "channel.allow", Actor: gateway.Actor(r.Context(), p), Tenant: channel.TenantOf(person.Channel), Subject: person.Sender}
	if err := s.gw.Audit().Record(r.Context(), e); err != nil {
		s.srv.Log().Warn("not in the audit log", "action", e.Action, "error", err) // the person is admitted
	}
	return server.Respond(w, person, nil)
}

// send answers POST /api/channels/{name}/send when the platform has accepted the message.
func (s *surface) send(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	var in struct {
		Chat string `json:"chat"`
		Text string `json:"text"`
	}
	if err := server.Decode(r, &in); err != nil {
		return err
	}
	if in.Chat == "" || in.Text == "" {
		return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "chat and text are required")
	}
	ctx, cancel := context.WithTimeout(r.Context(), sendLimit)
	defer cancel()
	err := s.pipeline.Send(ctx, channel.OutboundMessage{Channel: r.PathValue("name"), ChatID: in.Chat, Content: in.Text, Key: r.Header.Get("Idempotency-Key")})
	switch {
	case errors.Is(err, channel.ErrUnknownChannel):
		return s.refusePlugin(r)
	case err != nil && r.Context().Err() == nil:
		return server.Errorf(http.StatusBadGateway, gateway.ReasonUpstream, "%v", err)
	case err != nil:
		return err
	}
	return server.Respond(w, accepted{true}, nil)
}

// refusePlugin answers a request to send to a channel that isn't built in. A plugin only shows conversations.
func (s *surface) refusePlugin(r *http.Request) error {
	if s.plugins != nil {
		states, err := s.plugins.Channels(r.Context())
		if err != nil {
			return err
		}
		if slices.ContainsFunc(states, func(c host.ChannelState) bool { return c.Name == r.PathValue("name") }) {
			return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "the channel is a plugin, which shows conversations only; add the message to the conversation of the chat")
		}
	}
	return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "no such channel")
}

// webhook passes a request of a platform to its channel, which checks that it comes from there.
func (s *surface) webhook(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	err := s.pipeline.ServeWebhook(w, r, r.PathValue("name"))
	if errors.Is(err, channel.ErrUnknownChannel) {
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "no channel with this name receives webhooks")
	}
	return err
}

// accepted is the answer of a change without a result.
type accepted struct {
	OK bool `json:"ok"`
}

// sendLimit is how long a request to send waits for the platform.
const sendLimit = time.Minute

// kindPlugin is the kind of channels that are plugins.
const kindPlugin = "plugin"

// row is a channel in the list.
type row struct {
	channel.State
	Ready     bool   `json:"ready"`
	Error     string `json:"error,omitempty"`
	LastError string `json:"lastError,omitempty"`
	FailedAt  int64  `json:"failedAt,omitempty"` // epoch milliseconds
	// PenaltyEnd is until when the platform makes chats wait, in epoch milliseconds.
	PenaltyEnd int64 `json:"penaltyEnd,omitempty"`
	// Capabilities is what a plugin declares. Those of built-in channels are documented, so it is nil.
	Capabilities *plugin.Capabilities `json:"capabilities,omitempty"`
}

// newRow returns the row of a channel that is ready if it has no error.
func newRow(state channel.State) row {
	r := row{State: state, Ready: state.Err == nil}
	if state.Penalized > 0 {
		r.PenaltyEnd = state.PenaltyEnd.UnixMilli()
	}
	if state.Err != nil {
		r.Error = state.Err.Error()
	}
	if state.LastFailure != nil {
		r.LastError, r.FailedAt = state.LastFailure.Error(), state.FailedAt.UnixMilli()
	}
	return r
}

// list answers GET /api/channels with the channels, and the people who want to be admitted.
func (s *surface) list(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	rows := []row{}
	for _, state := range s.pipeline.States() {
		rows = append(rows, newRow(state))
	}
	if s.plugins != nil {
		states, err := s.plugins.Channels(r.Context())
		if err != nil {
			return err
		}
		for _, p := range states {
			entry := newRow(channel.State{
				Name: p.Name, Kind: kindPlugin, Chats: p.Chats, Deliveries: p.Deliveries, Failures: p.Failures,
				Err: p.Err, LastFailure: p.LastFailure, FailedAt: p.FailedAt,
			})
			entry.Ready, entry.Capabilities = p.IsReady, &p.Capabilities
			rows = append(rows, entry)
		}
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.Name, b.Name) })
	}
	requests, err := s.pipeline.Pairings(r.Context())
	if err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, struct {
		Channels []row             `json:"channels"`
		Pairings []channel.Pairing `json:"pairings"`
	}{rows, append([]channel.Pairing{}, requests...)})
	return nil
}

// attachment attaches a chat to a conversation, or detaches it.
type attachment func(ctx context.Context, channel, chat, conversation string) error

// attach answers POST /api/channels/{name}/attach.
func (s *surface) attach(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	changes := []attachment{s.pipeline.Attach}
	if s.plugins != nil {
		changes = append(changes, s.plugins.Attach)
	}
	return change(w, r, changes)
}

// detach answers POST /api/channels/{name}/detach.
func (s *surface) detach(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	changes := []attachment{s.pipeline.Detach}
	if s.plugins != nil {
		changes = append(changes, s.plugins.Detach)
	}
	return change(w, r, changes)
}

// change calls the first of the changes that knows the channel. A built-in channel comes before a plugin with the same name.
func change(w http.ResponseWriter, r *http.Request, changes []attachment) error {
	var in struct {
		Chat         string `json:"chat"`
		Conversation string `json:"conversation"`
	}
	if err := server.Decode(r, &in); err != nil {
		return err
	}
	if in.Chat == "" || in.Conversation == "" {
		return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "chat and conversation are required")
	}
	for _, f := range changes {
		switch err := f(r.Context(), r.PathValue("name"), in.Chat, in.Conversation); {
		case errors.Is(err, channel.ErrUnknownChannel), errors.Is(err, host.ErrUnknownChannel):
			continue
		case errors.Is(err, channel.ErrAttached), errors.Is(err, host.ErrAttached):
			return server.Errorf(http.StatusConflict, server.ReasonExists, "the chat shows this conversation already")
		case err != nil:
			return err
		}
		return server.Respond(w, accepted{true}, nil)
	}
	return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "no such channel")
}
