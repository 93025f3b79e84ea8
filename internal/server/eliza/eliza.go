package eliza

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/feed"
)

// Options configure the chat. The zero value is ready to use.
type Options struct {
	// Heartbeat is the interval between two heartbeats of a stream. If it is 0, defaultHeartbeat applies. Clients give up after
	// 60 s.
	Heartbeat time.Duration
}

// defaultHeartbeat is the interval of Eliza's own server.
const defaultHeartbeat = 5 * time.Second

type surface struct {
	srv       *server.Server
	gw        *gateway.Gateway
	heartbeat time.Duration
	viewers   *server.ViewerMetrics
}

// Register adds the chat's routes to a server.
//
// All of these routes require a principal, except /api/auth/status, which a page asks before it has a
// token. The routes that wait for a turn are marked as streams: their contexts
// end when the server shuts down.
func Register(srv *server.Server, gw *gateway.Gateway, opt Options) {
	s := &surface{srv: srv, gw: gw, heartbeat: opt.Heartbeat, viewers: srv.Metrics().Viewers("eliza")}
	s.heartbeat = cmp.Or(s.heartbeat, defaultHeartbeat)
	const (
		conversations = "/api/conversations"
		conversation  = conversations + "/{id}"
		messages      = conversation + "/messages"
	)
	for _, r := range []server.Route{
		{Method: http.MethodGet, Pattern: conversations, Handler: s.list},
		{Method: http.MethodPost, Pattern: conversations, Handler: s.create},
		{Method: http.MethodGet, Pattern: conversation, Handler: s.get},
		{Method: http.MethodPatch, Pattern: conversation, Handler: s.patch},
		{Method: http.MethodDelete, Pattern: conversation, Handler: s.delete},
		{Method: http.MethodGet, Pattern: messages, Handler: s.messages},
		{Method: http.MethodPost, Pattern: messages, Handler: s.send, MaxBody: server.MaxMessageBody, Stream: true},
		{Method: http.MethodPost, Pattern: messages + "/stream", Handler: s.sendStream, MaxBody: server.MaxMessageBody, Stream: true},
		{Method: http.MethodGet, Pattern: messages + "/stream", Handler: s.attach, Stream: true},
		{Method: http.MethodPost, Pattern: messages + "/truncate", Handler: s.truncate},
		{Method: http.MethodPost, Pattern: conversation + "/read", Handler: s.markRead},
		{Method: http.MethodPost, Pattern: conversation + "/greeting", Handler: s.greet},
		{Method: http.MethodPost, Pattern: conversations + "/cleanup-empty", Handler: s.cleanup},
		{Method: http.MethodPost, Pattern: conversation + "/import", Handler: s.importMessages, MaxBody: server.MaxMessageBody},
		{Method: http.MethodPost, Pattern: "/api/turns/{id}/abort", Handler: s.abort},
	} {
		r.Access = server.Authenticated
		r.Handler = translated(r.Handler)
		srv.Handle(r)
	}
	srv.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/auth/status", Access: server.Public, Handler: s.access})
}

// translated wraps a handler so that its errors have the texts that Eliza's clients know.
func translated(h server.Handler) server.Handler {
	return func(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
		return translate(h(w, r, p))
	}
}

// translate replaces the errors whose text Eliza's clients compare or show. A conversation that was
// deleted while a request waited is reported like one that never existed. An unknown agent gets 503 and
// not 400, because the clients then show that the agent isn't running. Other errors are unchanged.
func translate(err error) error {
	var rejected *gateway.Rejection
	switch {
	case errors.Is(err, gateway.ErrNotFound), errors.Is(err, feed.ErrDeleted):
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "Conversation not found")
	case errors.Is(err, errTurnGone):
		return server.Errorf(http.StatusGone, server.ReasonNotFound, "the message is no longer in the conversation")
	case errors.As(err, &rejected) && rejected.Reason == gateway.ReasonUnknownAgent:
		return server.Errorf(http.StatusServiceUnavailable, rejected.Reason, "Agent is not running: %s", rejected.Message)
	}
	return err
}
