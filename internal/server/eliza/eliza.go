package eliza

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/feed"
)

// Options of the surface. All have defaults.
type Options struct {
	// Heartbeat is the time between two heartbeats of a stream; 0 is DefaultHeartbeat. Clients give up after 60 s.
	Heartbeat time.Duration
}

// DefaultHeartbeat is what Eliza's own server does.
const DefaultHeartbeat = 5 * time.Second

type surface struct {
	srv       *server.Server
	gw        *gateway.Gateway
	heartbeat time.Duration
	viewers   *server.ViewerMetrics
}

// Register adds the routes of the surface to a server.
func Register(srv *server.Server, gw *gateway.Gateway, opt Options) {
	s := &surface{srv: srv, gw: gw, heartbeat: opt.Heartbeat, viewers: srv.Metrics().Viewers("eliza")}
	if s.heartbeat == 0 {
		s.heartbeat = DefaultHeartbeat
	}
	const (
		all      = "/api/conversations"
		one      = all + "/{id}"
		messages = one + "/messages"
	)
	for _, r := range []server.Route{
		{Method: http.MethodGet, Pattern: all, Handler: s.list},
		{Method: http.MethodPost, Pattern: all, Handler: s.create},
		{Method: http.MethodGet, Pattern: one, Handler: s.get},
		{Method: http.MethodPatch, Pattern: one, Handler: s.patch},
		{Method: http.MethodDelete, Pattern: one, Handler: s.delete},
		{Method: http.MethodGet, Pattern: messages, Handler: s.messages},
		{Method: http.MethodPost, Pattern: messages, Handler: s.send, MaxBody: server.MaxMessageBody, Stream: true},
		{Method: http.MethodPost, Pattern: messages + "/stream", Handler: s.sendStream, MaxBody: server.MaxMessageBody, Stream: true},
		{Method: http.MethodGet, Pattern: messages + "/stream", Handler: s.attach, Stream: true},
		{Method: http.MethodPost, Pattern: messages + "/truncate", Handler: s.truncate},
		{Method: http.MethodPost, Pattern: one + "/read", Handler: s.read},
		{Method: http.MethodPost, Pattern: one + "/greeting", Handler: s.greet},
		{Method: http.MethodPost, Pattern: all + "/cleanup-empty", Handler: s.cleanup},
		{Method: http.MethodPost, Pattern: one + "/import", Handler: s.load, MaxBody: server.MaxMessageBody},
		{Method: http.MethodPost, Pattern: "/api/turns/{id}/abort", Handler: s.abort},
	} {
		r.Access = server.Authenticated
		r.Handler = said(r.Handler)
		srv.Handle(r)
	}
	srv.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/auth/status", Access: server.Public, Handler: s.access})
}

// said puts a handler's errors in the words that Eliza's clients know.
func said(h server.Handler) server.Handler {
	return func(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
		return words(h(w, r, p))
	}
}

func words(err error) error {
	var rejected *gateway.Rejection
	switch {
	case errors.Is(err, gateway.ErrNotFound), errors.Is(err, feed.ErrDeleted):
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "Conversation not found")
	case errors.Is(err, errGone):
		return server.Errorf(http.StatusGone, server.ReasonNotFound, "the message is no longer in the conversation")
	case errors.As(err, &rejected) && rejected.Reason == gateway.ReasonUnknownAgent:
		return server.Errorf(http.StatusServiceUnavailable, rejected.Reason, "Agent is not running: %s", rejected.Message)
	}
	return err
}

// commandLimit bounds how long a command may take: longer than a gateway tries to commit it.
const commandLimit = 35 * time.Second

// do carries a command out. A client that goes away takes nothing back.
func (s *surface) do(ctx context.Context, p gateway.Principal, conversation string, c gateway.Command) (gateway.Ack, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandLimit)
	defer cancel()
	return s.gw.Do(ctx, p, conversation, c)
}
