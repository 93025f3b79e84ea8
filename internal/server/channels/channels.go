// Package channels serves the routes with which operators manage channels: their states, the admission of people, and sending
// messages to chats. Only admins may use them.
package channels

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
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
}

type surface struct {
	srv      *server.Server
	gw       *gateway.Gateway
	pipeline pipeline
}

// Register adds the routes to a server.
func Register(srv *server.Server, gw *gateway.Gateway, p pipeline) {
	s := &surface{srv, gw, p}
	srv.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/channels", Access: server.Admin, Handler: s.list})
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/channels/allow", Access: server.Admin, Handler: s.allow})
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/channels/{name}/send", Access: server.Admin, Handler: s.send})
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/channels/{name}/attach", Access: server.Admin, Handler: s.attach(p.Attach)})
	srv.Handle(server.Route{Method: http.MethodPost, Pattern: "/api/channels/{name}/detach", Access: server.Admin, Handler: s.attach(p.Detach)})
}

// row is a channel in the list.
type row struct {
	channel.State
	Ready     bool   `json:"ready"`
	Error     string `json:"error,omitempty"`
	LastError string `json:"lastError,omitempty"`
	FailedAt  int64  `json:"failedAt,omitempty"` // epoch milliseconds
}

// list answers GET /api/channels with the channels, and the people who want to be admitted.
func (s *surface) list(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	rows := []row{}
	for _, state := range s.pipeline.States() {
		entry := row{State: state, Ready: state.Err == nil}
		if state.Err != nil {
			entry.Error = state.Err.Error()
		}
		if state.LastFailure != nil {
			entry.LastError, entry.FailedAt = state.LastFailure.Error(), state.FailedAt.UnixMilli()
		}
		rows = append(rows, entry)
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
	server.WriteJSON(w, http.StatusOK, person)
	return nil
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
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "no such channel")
	case err != nil && r.Context().Err() == nil:
		return server.Errorf(http.StatusBadGateway, gateway.ReasonUpstream, "%v", err)
	case err != nil:
		return err
	}
	server.WriteJSON(w, http.StatusOK, accepted{true})
	return nil
}

// attach answers the routes that attach a chat to a conversation and detach it.
func (s *surface) attach(change func(ctx context.Context, channel, chat, conversation string) error) server.Handler {
	return func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
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
		switch err := change(r.Context(), r.PathValue("name"), in.Chat, in.Conversation); {
		case errors.Is(err, channel.ErrUnknownChannel):
			return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "no such channel")
		case errors.Is(err, channel.ErrAttached):
			return server.Errorf(http.StatusConflict, server.ReasonExists, "the chat shows this conversation already")
		case err != nil:
			return err
		}
		server.WriteJSON(w, http.StatusOK, accepted{true})
		return nil
	}
}

// accepted is the answer of a change without a result.
type accepted struct {
	OK bool `json:"ok"`
}

// sendLimit is how long a request to send waits for the platform.
const sendLimit = time.Minute
