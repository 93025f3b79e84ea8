// The routes.

package langgraph

import (
	"net/http"

	"github.com/leat-dev/leat/internal/base/keylock"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// source marks messages that came from clients of LangGraph.
const source = "langgraph"

// prefix is the path below which the server of LangGraph is: the url or apiUrl of clients ends with it.
const prefix = "/langgraph"

// surface has the handlers. All fields are set before the first request.
type surface struct {
	srv     *server.Server
	gw      *gateway.Gateway
	chats   chats.Chats
	viewers *server.ViewerMetrics
	starts  keylock.Locks // by conversation: held while a run begins
}

// Register adds the routes to a server.
func Register(srv *server.Server, gw *gateway.Gateway) {
	s := &surface{srv: srv, gw: gw, chats: chats.Chats{Gateway: gw}, viewers: srv.Metrics().Viewers(source)}
	routes := []server.Route{
		{Method: http.MethodGet, Pattern: "/ok", Handler: s.ok},
		{Method: http.MethodGet, Pattern: "/info", Handler: s.info},
		{Method: http.MethodPost, Pattern: "/assistants/search", Handler: s.searchAssistants},
		{Method: http.MethodPost, Pattern: "/assistants/count", Handler: s.countAssistants},
		{Method: http.MethodGet, Pattern: "/assistants/{agent}", Handler: s.assistant},
		{Method: http.MethodPost, Pattern: "/threads", Handler: s.createThread},
		{Method: http.MethodPost, Pattern: "/threads/search", Handler: s.searchThreads},
		{Method: http.MethodGet, Pattern: "/threads/{id}", Handler: s.thread},
		{Method: http.MethodPatch, Pattern: "/threads/{id}", Handler: s.updateThread},
		{Method: http.MethodDelete, Pattern: "/threads/{id}", Handler: s.deleteThread},
		{Method: http.MethodGet, Pattern: "/threads/{id}/state", Handler: s.state},
		{Method: http.MethodPost, Pattern: "/threads/{id}/history", Handler: s.history},
		{Method: http.MethodPost, Pattern: "/threads/{id}/commands", Handler: s.command, MaxBody: maxBody},
		{Method: http.MethodPost, Pattern: "/threads/{id}/stream/events", Handler: s.threadStream, Stream: true},
		{Method: http.MethodGet, Pattern: "/threads/{id}/runs", Handler: s.runs},
		{Method: http.MethodPost, Pattern: "/threads/{id}/runs", Handler: s.createRun, MaxBody: maxBody},
		{Method: http.MethodPost, Pattern: "/threads/{id}/runs/stream", Handler: s.streamRun, MaxBody: maxBody, Stream: true},
		{Method: http.MethodPost, Pattern: "/threads/{id}/runs/wait", Handler: s.waitRun, MaxBody: maxBody, Stream: true},
		{Method: http.MethodGet, Pattern: "/threads/{id}/runs/{turn}", Handler: s.run},
		{Method: http.MethodGet, Pattern: "/threads/{id}/runs/{turn}/stream", Handler: s.joinStream, Stream: true},
		{Method: http.MethodGet, Pattern: "/threads/{id}/runs/{turn}/join", Handler: s.joinRun, Stream: true},
		{Method: http.MethodPost, Pattern: "/threads/{id}/runs/{turn}/cancel", Handler: s.cancelRun},
		{Method: http.MethodPost, Pattern: "/runs", Handler: s.createRun, MaxBody: maxBody},
		{Method: http.MethodPost, Pattern: "/runs/stream", Handler: s.streamRun, MaxBody: maxBody, Stream: true},
		{Method: http.MethodPost, Pattern: "/runs/wait", Handler: s.waitRun, MaxBody: maxBody, Stream: true},
		{Method: http.MethodGet, Pattern: "/runs/{turn}/stream", Handler: s.joinStream, Stream: true},
		{Method: http.MethodPost, Pattern: "/runs/cancel", Handler: s.cancelRuns},
	}
	for i := range routes {
		routes[i].Pattern, routes[i].Errors = prefix+routes[i].Pattern, respondError
	}
	srv.HandleAll(server.Authenticated, routes)
}

// ok answers the health check of clients.
func (s *surface) ok(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	return server.Respond(w, struct {
		OK bool `json:"ok"`
	}{true}, nil)
}

// serverInfo is what clients ask a server for first. The flags are those that Studio reads.
type serverInfo struct {
	Version string          `json:"version"`
	Flags   map[string]bool `json:"flags"`
}

// apiVersion is the version of LangGraph's API whose routes these are.
const apiVersion = "0.4.0"

func (s *surface) info(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	return server.Respond(w, serverInfo{apiVersion, map[string]bool{"assistants": true, "crons": false, "langsmith": false}}, nil)
}
