// The routes.

package responses

import (
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/internal/server/internal/models"
)

const (
	// source marks messages that came from this API, and names its viewers in the metrics.
	source = "responses"
	// headerConversation names the conversation of a request, and in a response the conversation that was used.
	headerConversation = "Leat-Conversation"
	// headerListed, if it is "true", lists the new conversation of a request that names none.
	headerListed = "Leat-Listed"
)

// surface has the handlers. All fields are set before the first request.
type surface struct {
	srv     *server.Server
	gw      *gateway.Gateway
	chats   chats.Chats
	viewers *server.ViewerMetrics
}

// Register adds the routes to a server. Unknown paths below /v1/ belong to package compat.
func Register(srv *server.Server, gw *gateway.Gateway) {
	s := &surface{srv: srv, gw: gw, chats: chats.Chats{Gateway: gw}, viewers: srv.Metrics().Viewers(source)}
	// Routes that may wait for an agent are streams, also if their response is whole: their context ends when the gateway stops, and they have
	// no limit on their duration.
	routes := []server.Route{
		{Method: http.MethodPost, Pattern: "/v1/responses", Handler: s.create, MaxBody: server.MaxMessageBody, Stream: true},
		{Method: http.MethodGet, Pattern: "/v1/responses/{response}", Handler: s.retrieve, Stream: true},
		{Method: http.MethodDelete, Pattern: "/v1/responses/{response}", Handler: s.remove},
		{Method: http.MethodPost, Pattern: "/v1/responses/{response}/cancel", Handler: s.cancel},
		{Method: http.MethodGet, Pattern: "/v1/responses/{response}/input_items", Handler: s.inputItems},
		{Method: http.MethodPost, Pattern: "/v1/conversations", Handler: s.createConversation, MaxBody: server.MaxMessageBody},
		{Method: http.MethodGet, Pattern: "/v1/conversations/{id}", Handler: s.conversation},
		{Method: http.MethodPost, Pattern: "/v1/conversations/{id}", Handler: s.updateConversation},
		{Method: http.MethodDelete, Pattern: "/v1/conversations/{id}", Handler: s.deleteConversation},
		{Method: http.MethodGet, Pattern: "/v1/conversations/{id}/items", Handler: s.listItems},
		{Method: http.MethodPost, Pattern: "/v1/conversations/{id}/items", Handler: s.addItems, MaxBody: server.MaxMessageBody},
		{Method: http.MethodGet, Pattern: "/v1/conversations/{id}/items/{item}", Handler: s.item},
		{Method: http.MethodDelete, Pattern: "/v1/conversations/{id}/items/{item}", Handler: s.deleteItem},
	}
	// All routes have errors in OpenAI's format, also for tokens and limits, because the clients read nothing else.
	for i := range routes {
		routes[i].Errors = models.RespondOpenAI
	}
	srv.HandleAll(server.Authenticated, routes)
}
