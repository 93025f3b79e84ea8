package openclaw

import (
	"crypto/rand"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/socket"
)

const (
	// source marks messages that came from a client of OpenClaw. The ids of such messages are the ids of runs.
	source = "openclaw"
	// path is that of the WebSocket. The Control UI is below it.
	path = "/openclaw"
)

const (
	// helloFrame is the size in bytes of the largest first frame.
	helloFrame = 64 << 10
	// helloLimit is how long a client may take for its first frame.
	helloLimit = 15 * time.Second
	// maxFrame is the size in bytes of the largest later frame.
	maxFrame = 26 << 20
	// tickEvery is the interval between two ticks. Clients disconnect after twice this time without a frame.
	tickEvery = 15 * time.Second
	// maxRequests is how many requests of a connection may wait. A client that sends more isn't read until some are done.
	maxRequests = 32
	// maxSessions is how many conversations a connection may read at the same time.
	maxSessions = 64
)

// surface has the handlers. All fields are set before the first request.
type surface struct {
	srv     *server.Server
	gw      *gateway.Gateway
	viewers *server.ViewerMetrics
	pings   *socket.Wheel
	boot    string // identifies this process to clients
	start   time.Time
}

// Register adds the routes to a server. The Control UI is served from a folder; if it is empty, only the WebSocket is.
func Register(srv *server.Server, gw *gateway.Gateway, controlUI string) {
	s := &surface{
		srv: srv, gw: gw, viewers: srv.Metrics().Viewers(source), pings: socket.NewWheel(tickEvery, nil), boot: rand.Text(), start: time.Now(),
	}
	srv.Handle(server.Route{Method: http.MethodGet, Pattern: path, Access: server.InBand, Stream: true, Handler: s.socket})
	if controlUI != "" {
		s.registerPage(controlUI)
	}
}

// socket answers GET /openclaw.
func (s *surface) socket(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	if err := server.Upgrades(w, r); err != nil {
		return err
	}
	id := server.IdentityOf(r.Context())
	addr := server.ClientAddr(r)
	handshake, values := server.HandshakeOf(r)
	conn, ok := socket.Accept(w, r, s.srv.DetachSocket(w, r, socket.Options{
		Stall: s.srv.Options().Stall, ReadLimit: helloFrame, Values: values,
	}))
	if !ok {
		return nil
	}
	c := &connection{
		s: s, conn: conn, ctx: conn.Context(), handshake: handshake, isLocal: addr.IsValid() && addr.IsLoopback(),
		nonce: rand.Text(), id: rand.Text(), requests: make(chan request, maxRequests), sessions: map[string]*session{},
		subscriptions: map[string]bool{},
	}
	c.identity.Store(&id)
	conn.Serve(c)
	return nil
}

// The close codes for a refused first frame.
const (
	closeProtocol = websocket.StatusProtocolError
	closeRefused  = websocket.StatusPolicyViolation
)
