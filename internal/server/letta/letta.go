// The routes.

package letta

import (
	"net/http"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// source marks messages that came from Letta's clients.
const source = "letta"

// Prefixes of ids. Clients take an id without its prefix for a name.
const (
	agentPrefix        = "agent-"
	conversationPrefix = "conv-"
	runPrefix          = "run-"
)

// surface has the handlers. All fields are set before the first request.
type surface struct {
	srv     *server.Server
	gw      *gateway.Gateway
	chats   chats.Chats
	viewers *server.ViewerMetrics
}

// Register adds the routes to a server. They are below /letta, because the API's own paths are also those of other APIs.
func Register(srv *server.Server, gw *gateway.Gateway) {
	s := &surface{srv: srv, gw: gw, chats: chats.Chats{Gateway: gw}, viewers: srv.Metrics().Viewers(source)}
	var routes []server.Route
	add := func(method, path string, h server.Handler) {
		rt := server.Route{Method: method, Pattern: "/letta/v1" + path, Handler: h, Errors: respondError}
		if method == http.MethodPost {
			rt.MaxBody, rt.Stream = server.MaxMessageBody, true
		}
		routes = append(routes, rt)
	}
	// Lists and creations have a slash at their end, as in the API. Some clients leave it out.
	for _, end := range []string{"", "/{$}"} {
		add(http.MethodGet, "/health"+end, s.health)
		add(http.MethodGet, "/models"+end, s.models)
		add(http.MethodGet, "/agents"+end, s.agents)
		add(http.MethodGet, "/conversations"+end, s.conversations)
		add(http.MethodPost, "/conversations"+end, s.create)
		add(http.MethodGet, "/runs"+end, s.runs)
	}
	add(http.MethodGet, "/agents/{agent}", s.agent)
	add(http.MethodPatch, "/agents/{agent}", s.updateAgent)
	add(http.MethodGet, "/agents/{agent}/messages", s.agentMessages)
	add(http.MethodPost, "/agents/{agent}/messages", s.sendToAgent)
	add(http.MethodPost, "/agents/{agent}/messages/stream", s.streamToAgent)
	add(http.MethodPost, "/agents/{agent}/messages/cancel", s.cancelAgent)
	add(http.MethodGet, "/conversations/{conversation}", s.conversation)
	add(http.MethodPatch, "/conversations/{conversation}", s.update)
	add(http.MethodDelete, "/conversations/{conversation}", s.remove)
	add(http.MethodGet, "/conversations/{conversation}/messages", s.messages)
	add(http.MethodPost, "/conversations/{conversation}/messages", s.send)
	add(http.MethodPost, "/conversations/{conversation}/stream", s.attach)
	add(http.MethodPost, "/conversations/{conversation}/cancel", s.cancel)
	add(http.MethodGet, "/runs/{run}", s.run)
	add(http.MethodGet, "/runs/{run}/messages", s.runMessages)
	add(http.MethodPost, "/runs/{run}/stream", s.resume)
	srv.HandleAll(server.Authenticated, routes)
}

// failure is the body of an error.
type failure struct {
	Detail any `json:"detail"`
}

// respondError responds as the API does.
func respondError(w http.ResponseWriter, _ *http.Request, e *server.Error) {
	w.Header().Set("Leat-Reason", e.Reason)
	_ = writeJSON(w, e.Status, failure{chats.Sentence(e.Message)}) // best effort: the client may have disconnected
}

// writeJSON responds with a status and a JSON value.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	b, err := server.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(b)
	return err
}

// health answers GET /v1/health/.
func (s *surface) health(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	return server.Respond(w, map[string]string{"version": "leat", "status": "ok"}, nil)
}

// withoutPrefix returns an id without its prefix. Ids without one are accepted, because people copy them from the dashboard.
func withoutPrefix(id, prefix string) string { return strings.TrimPrefix(id, prefix) }
