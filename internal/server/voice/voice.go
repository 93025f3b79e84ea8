package voice

import (
	"errors"
	"net/http"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/voice/wire"
)

// closeExpired is the close code of a connection whose token has expired, as on the other sockets.
const closeExpired websocket.StatusCode = 4001

// surface has the handler.
type surface struct {
	gateway *gateway.Gateway
	service *wire.Service
	viewers *server.ViewerMetrics
	// hasDetector says that package ui serves a speech detector.
	hasDetector bool
}

// Register adds the route. If hasDetector is set, the first frame of each connection offers the speech detector,
// which package ui serves. The service limits the number of connections, and each one counts as a viewer of the
// principal.
func Register(s *server.Server, gw *gateway.Gateway, service *wire.Service, hasDetector bool) {
	v := &surface{gateway: gw, service: service, viewers: s.Metrics().Viewers("voice"), hasDetector: hasDetector}
	s.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/conversations/{id}/voice", Access: server.Authenticated, Stream: true, Handler: v.serve})
}

// serve answers GET /api/conversations/{id}/voice. Access is decided before the handshake, so that a conversation of another user looks
// like one that doesn't exist.
func (v *surface) serve(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	s, err := v.gateway.Conversation(r.Context(), p, gateway.ActionRead, r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := server.Upgrades(w, r); err != nil {
		return err
	}
	request, err := wire.ParseRequest(r.URL.Query())
	if err != nil {
		return server.Invalid("%v", err)
	}
	leave, err := v.gateway.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	account := p.Account()
	request.Listener = s.ID + "\x00" + account.Tenant + "\x00" + account.Subject
	request.Farewell = farewell
	request.Detector = v.hasDetector
	return v.talk(w, r, request, &conversation{gateway: v.gateway, principal: p, id: s.ID})
}

// talk accepts the connection and serves it. The context of a stream ends with the server, with the session of its cookie and with its
// credentials, so the connection needs no timers for them.
func (v *surface) talk(w http.ResponseWriter, r *http.Request, request wire.Request, c *conversation) error {
	// The server has checked the Origin header. Audio doesn't become smaller by compression.
	socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil // Accept has answered
	}
	metrics := v.viewers.Open()
	defer metrics.Close()
	return v.service.Serve(r.Context(), socket, request, c)
}

// farewell returns how to end a connection after an error of the gateway or the end of the request's context. For
// other causes the code is 0, and the service chooses one.
func farewell(cause error) (code websocket.StatusCode, reason string) {
	if errors.Is(cause, server.ErrExpired) {
		return closeExpired, "the token has expired"
	}
	if server.Restarting(cause) {
		return websocket.StatusServiceRestart, "restarting"
	}
	switch d := server.Describe(cause); d.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return websocket.StatusPolicyViolation, d.Message
	}
	return 0, ""
}
