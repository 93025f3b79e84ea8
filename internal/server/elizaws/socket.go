// The WebSocket of Eliza's clients, with the same life as that of the native protocol.

package elizaws

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/socket"
	"github.com/leat-dev/leat/internal/service/signals"
)

const (
	// maxFrame is the size in bytes of the largest frame that a client may send, as in Eliza. A larger one closes with 1009.
	maxFrame = 64 << 10
	// authLimit is how long a client may take to authenticate.
	authLimit = 10 * time.Second
	// replayLimit is how many of the newest signals a client without a cursor gets.
	replayLimit = 120
	// statusEvery is the interval between two status frames.
	statusEvery = 5 * time.Second
	// pingEvery is the interval between two WebSocket pings.
	pingEvery = 20 * time.Second
	// maxAnswers is how many frames may wait for the writer. A client that causes more of them is not read until some are written.
	maxAnswers = 16
	// maxClient is the length in bytes of the longest clientId and conversation id.
	maxClient = 128
	// perAddress is how many connections one address may have: enough for a family behind one router, too few for a flood.
	perAddress = 256
)

// errUnauthorized reports that a client's first frame had no valid token.
var errUnauthorized = errors.New("elizaws: unauthorized")

// webSocket is one connection to /ws.
type webSocket struct {
	s         *surface
	handshake server.Handshake
	conn      *socket.Conn
	ctx       context.Context // the connection's
	identity  atomic.Pointer[server.Identity]
	client    string // the client's id; empty if it sent none
	after     int64  // the last signal that the client has; -1 if it sent no cursor
	frames    *hub.Cursor

	answers chan []byte // to the writer
	active  atomic.Bool // the client is authenticated
	leave   []func()    // ends the counts of the connection, in reverse order
}

// clientFrame is a frame of a client. Other types and fields are ignored.
//
// Fields that may have a wrong type are raw messages: a frame with a wrong field is handled like one
// without it, as in Eliza.
type clientFrame struct {
	Type         string          `json:"type"`
	Token        json.RawMessage `json:"token"`
	Conversation json.RawMessage `json:"conversationId"`
	Seq          int64           `json:"seq"`
}

// conversation returns the conversation that the frame names, or "" if it names none.
func (f *clientFrame) conversation() (id string) {
	if json.Unmarshal(f.Conversation, &id) != nil || len(id) > maxClient {
		return ""
	}
	return id
}

// socket answers GET /ws.
//
// A token in the URL is used only if QueryToken allows it, and never replaces valid credentials of the
// handshake. The limit per address comes before the handshake, so a flood gets plain HTTP errors. The end
// of a connection is not an error of the request.
func (s *surface) socket(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	id := server.IdentityOf(r.Context())
	if query := r.URL.Query(); query.Has("token") && s.srv.TokenNeeded() {
		if !s.QueryToken {
			return server.Errorf(http.StatusUnauthorized, server.ReasonUnauthorized, "tokens in the URL are refused; send an auth message, or set ELIZA_ALLOW_WS_QUERY_TOKEN=1")
		}
		if !isAuthenticated(id.Principal) {
			var err error
			if id, err = s.srv.Authenticate(r, query.Get("token")); err != nil {
				s.srv.Metrics().Unauthorized(true)
				return err
			}
		}
	}
	if err := server.Upgrades(w, r); err != nil {
		return err
	}
	leave, err := s.enter(r)
	if err != nil {
		return err
	}
	// Joined before the handshake is answered: a client that is connected misses no frame.
	c := &webSocket{
		s: s, client: clientID(r), after: lastEvent(r), frames: s.Hub.Join(), answers: make(chan []byte, maxAnswers),
		leave: []func(){leave},
	}
	handshake, values := server.HandshakeOf(r)
	conn, ok := socket.Accept(w, r, s.srv.DetachSocket(w, r, socket.Options{
		Stall: s.srv.Options().Stall, ReadLimit: maxFrame, Values: values,
	}))
	if !ok {
		leave()
		return nil
	}
	c.conn, c.ctx, c.handshake = conn, conn.Context(), handshake
	c.identity.Store(&id)
	conn.Serve(c)
	return nil
}

// Ready implements [socket.Handler]. Every frame is sent by a goroutine that waits.
func (c *webSocket) Ready() {}

// End implements [socket.Handler]. It releases what is left when the connection has ended. Eliza's clients always reconnect, so only a
// panic is logged.
func (c *webSocket) End(cause error) {
	if errors.Is(cause, socket.ErrPanic) {
		c.s.srv.Log().Error("socket failed", "request", server.RequestID(c.ctx), "error", cause)
	}
	for _, fn := range slices.Backward(c.leave) {
		fn()
	}
}

func isAuthenticated(p gateway.Principal) bool { return p.Admin || p.Subject != "" }

// clientID returns the id that a client has chosen for itself. If the id is invalid, clientID returns "".
//
// The id addresses the output of terminal commands to one page, so only characters without a special
// meaning are accepted.
func clientID(r *http.Request) string {
	id := r.URL.Query().Get("clientId")
	if id == "" || len(id) > maxClient {
		return ""
	}
	for _, b := range []byte(id) {
		if (b < '0' || b > '9') && (b < 'A' || b > 'Z') && (b < 'a' || b > 'z') && b != '.' && b != '_' && b != '-' {
			return ""
		}
	}
	return id
}

// lastEvent returns the number of the last signal that the client has, or -1 if it sent no cursor.
func lastEvent(r *http.Request) int64 {
	query := r.URL.Query()
	for _, name := range []string{"lastEventId", "since"} {
		if n, ok := signals.ParseID(query.Get(name)); ok {
			return n
		}
	}
	return -1
}

// Begin implements [socket.Handler]. It authenticates the client and starts the writer.
//
// A client that authenticates by a frame joins the hub again: the cursor from the handshake would deliver
// frames from before the authentication.
func (c *webSocket) Begin() error {
	greeting := []byte(nil)
	if !isAuthenticated(c.principal()) {
		if err := c.authenticate(); err != nil {
			return err
		}
		c.frames = c.s.Hub.Join()
		greeting = []byte(`{"type":"auth-ok"}`)
	}
	leave, err := c.s.gw.AddViewer(c.principal())
	if err != nil {
		return err
	}
	c.leave = append(c.leave, leave, func() { c.s.Hub.SetActive(c.frames, gateway.Principal{}, "") })
	c.conn.EndAt(c.identity.Load().Expires, server.ErrExpired)
	c.active.Store(true)
	positions := c.s.gw.Positions(c.principal()) // before the first answer, so that no later change is missed
	c.conn.Go(func() { c.conn.End(c.write(greeting)) })
	c.conn.Heartbeat(c.s.pings)
	c.conn.Go(func() { c.sendPositions(positions) })
	return nil
}

// Frame implements [socket.Handler]. It handles a frame of the client. The answers are written by another goroutine, so a slow client does
// not keep the connection from reading pings, until maxAnswers answers wait.
func (c *webSocket) Frame(b []byte, err error) error {
	f, ok, err := parseFrame(b, err)
	if err != nil || !ok {
		return err
	}
	switch f.Type {
	case "ping":
		select {
		case c.answers <- []byte(`{"type":"pong"}`):
		case <-c.ctx.Done():
			return socket.ErrDisconnected
		}
	case "active-conversation":
		id := f.conversation()
		c.s.Hub.SetActive(c.frames, c.principal(), id)
		if id != "" {
			c.markRead(id, 0)
		}
	case "conversation-read":
		if id := f.conversation(); id != "" {
			c.markRead(id, f.Seq)
		}
	case "auth":
		c.renew(f)
	}
	return nil
}

// parseFrame parses a frame. If that fails, ok is false and the frame is to be ignored, as Eliza does.
//
// It takes the results of a read, so it serves both the first read, which has its own limit, and
// the later ones.
func parseFrame(b []byte, err error) (f clientFrame, ok bool, _ error) {
	if errors.Is(err, socket.ErrBinary) {
		return f, false, nil
	}
	if err != nil {
		return f, false, err
	}
	if server.Unmarshal(b, &f, false) != nil {
		return clientFrame{}, false, nil
	}
	return f, true, nil
}

// authenticate waits for a token. It returns errUnauthorized unless the connection itself ended.
//
// The error says nothing about the reason, as in Eliza, so it doesn't help to guess a token.
func (c *webSocket) authenticate() error {
	f, ok, err := parseFrame(c.conn.ReadFirst(authLimit, errUnauthorized))
	if err != nil {
		return err
	}
	var token string
	if !ok || f.Type != "auth" || json.Unmarshal(f.Token, &token) != nil {
		return errUnauthorized
	}
	id, err := c.s.srv.Authenticate(c.handshake.Request(c.ctx), token)
	if err != nil {
		c.s.srv.Metrics().Unauthorized(true)
		return errUnauthorized
	}
	c.identity.Store(&id)
	return nil
}

// renew replaces the token by a newer one of the same user. Any other token is ignored, as Eliza ignores an auth that it doesn't need.
func (c *webSocket) renew(f clientFrame) {
	var token string
	if c.principal().Admin || json.Unmarshal(f.Token, &token) != nil || token == "" {
		return
	}
	id, err := c.s.srv.Authenticate(c.handshake.Request(c.ctx), token)
	if p := c.principal(); err == nil && id.Admin == p.Admin && id.Tenant == p.Tenant && id.Subject == p.Subject {
		c.identity.Store(&id)
		c.conn.EndAt(id.Expires, server.ErrExpired)
	}
}

// principal returns the user of the newest token.
func (c *webSocket) principal() gateway.Principal { return c.identity.Load().Principal }

// Farewell implements [socket.Handler]. It tells the client by the close code why the connection ends.
//
// Code 1008 means that the credentials are not valid, or no longer. All other causes are temporary.
func (c *webSocket) Farewell(cause error) (end socket.Farewell) {
	switch {
	case errors.Is(cause, errUnauthorized):
		return socket.Farewell{Code: websocket.StatusPolicyViolation, Reason: "Unauthorized"}
	case errors.Is(cause, server.ErrExpired):
		return socket.Farewell{Code: websocket.StatusPolicyViolation, Reason: "the token has expired"}
	case errors.Is(cause, server.ErrShutdown):
		end = socket.Farewell{Code: websocket.StatusServiceRestart, Reason: "restarting"}
		if !c.active.Load() {
			return end
		}
		// The writer may have ended before it could send this status.
		if b, err := json.Marshal(c.s.currentStatus(true, false, true)); err == nil {
			end.Frame = b
		}
		return end
	case errors.Is(cause, socket.ErrDisconnected):
		return end
	case server.Describe(cause).Status == http.StatusUnauthorized: // its session was ended
		return socket.Farewell{Code: websocket.StatusPolicyViolation, Reason: "Unauthorized"}
	case server.Describe(cause).Status == http.StatusTooManyRequests:
		return socket.Farewell{Code: websocket.StatusTryAgainLater, Reason: "too many connections"}
	}
	return end
}
