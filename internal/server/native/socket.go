// The WebSocket of the native protocol: one connection for any number of subscriptions and requests.

package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/socket"
)

// errUnauthorized marks the errors of a client's first frame: it brought no valid token.
var errUnauthorized = errors.New("native: unauthorized")

// webSocket is one connection to /api/ws. It carries the commands and subscriptions of many conversations.
//
// Frames are handled one at a time, in order. Goroutines run commands and follow subscriptions. All of them write through conn, which
// writes one frame at a time, and all end with ctx.
type webSocket struct {
	n         *native
	handshake server.Handshake
	conn      *socket.Conn
	// The connection's.
	ctx context.Context

	identity atomic.Pointer[server.Identity]
	// The last expiry that the client was warned of, in Unix nanoseconds.
	lastWarning atomic.Int64

	// Only the handlers of frames use these.
	// For the expiry of the token; nil if it doesn't expire.
	warning *time.Timer
	subs    []*subscription
	lanes   lanes
	// The client gets read positions.
	followsReadings bool

	// One slot for each request that runs; nil before the first one.
	pending chan struct{}

	mu sync.Mutex
	// Those whose frame the connection didn't take at once.
	blocked []*subscription
}

var _ socket.Handler = (*webSocket)(nil)

// socket answers GET /api/ws.
//
// Credentials in the handshake are optional: a browser can't set headers on a WebSocket, so it may send
// its token in the first frame. Until then frames are limited to authFrame bytes. The client learns the
// cause of the end from Farewell.
func (n *native) socket(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	if err := server.Upgrades(w, r); err != nil {
		return err
	}
	handshake, values := server.HandshakeOf(r)
	s := &webSocket{n: n, handshake: handshake}
	conn, ok := socket.Accept(w, r, n.s.DetachSocket(w, r, socket.Options{
		Stall: n.s.Options().Stall, ReadLimit: authFrame, Values: values,
	}))
	if !ok {
		return nil
	}
	s.conn, s.ctx = conn, conn.Context()
	id := server.IdentityOf(r.Context())
	s.identity.Store(&id)
	conn.Serve(s)
	return nil
}

// End implements [socket.Handler]. It releases what is left when the connection has ended, and logs internal errors.
func (s *webSocket) End(cause error) {
	if s.warning != nil {
		s.warning.Stop()
	}
	for len(s.subs) > 0 {
		s.unsubscribe(s.subs[0].conversation)
	}
	if server.Describe(cause).Status == http.StatusInternalServerError && !errors.Is(cause, socket.ErrDisconnected) {
		s.n.s.Log().Error("socket failed", "request", server.RequestID(s.ctx), "error", cause)
	}
}

// Farewell implements [socket.Handler]. It tells the client why the connection ends, and by the close code whether to reconnect.
func (s *webSocket) Farewell(cause error) socket.Farewell {
	var end socket.Farewell
	switch {
	case errors.Is(cause, server.ErrShutdown):
		end = socket.Farewell{Code: websocket.StatusServiceRestart, Reason: "restarting"}
	case errors.Is(cause, server.ErrExpired):
		end = socket.Farewell{Code: closeExpired, Reason: "the token has expired"}
	case errors.Is(cause, errUnauthorized), server.Describe(cause).Status == http.StatusUnauthorized: // 401: its session was ended
		end = socket.Farewell{Code: websocket.StatusPolicyViolation, Reason: "Unauthorized"}
	default:
		return end
	}
	if b, err := json.Marshal(newError("error", "", "", cause)); err == nil {
		end.Frame = b
	}
	return end
}

// Begin implements [socket.Handler]. It authenticates the client and greets it.
//
// The read limit is raised only after authentication, so a stranger can't make the gateway buffer a large
// frame.
func (s *webSocket) Begin() error {
	if err := s.authenticate(); err != nil {
		return err
	}
	s.conn.SetReadLimit(maxCommand)
	expires := s.identity.Load().Expires
	s.conn.EndAt(expires, server.ErrExpired)
	if err := s.send(helloFrame{Type: "hello", Protocol: Protocol, Expires: milliseconds(expires)}); err != nil {
		return err
	}
	s.conn.Heartbeat(s.n.wheel)
	s.scheduleWarning()
	return nil
}

// Frame implements [socket.Handler]. It handles a frame of the client. An invalid frame is answered and the connection continues; every other
// error ends it.
func (s *webSocket) Frame(b []byte, err error) error {
	f, err := parseFrame(b, err)
	switch {
	case err == nil:
		return s.handle(f)
	case server.Describe(err).Status == http.StatusBadRequest:
		return s.refuseFrame(f, err)
	}
	return err
}

// authenticate waits for the token of a client whose handshake had no credentials.
//
// Any fault of the first frame has the same error, so it reveals nothing about the expected one. Only a
// refused token is counted in the metrics as invalid.
func (s *webSocket) authenticate() error {
	if p := s.principal(); p.Admin || p.Subject != "" {
		return nil
	}
	required := fmt.Errorf("%w: %w", errUnauthorized,
		server.Errorf(http.StatusUnauthorized, server.ReasonUnauthorized, "the first frame must be auth with a valid token, within %v", authLimit))
	f, err := parseFrame(s.conn.ReadFirst(authLimit, required))
	if err != nil || f.Type != "auth" {
		return required
	}
	id, err := s.n.s.Authenticate(s.handshake.Request(s.ctx), f.Token)
	if err != nil {
		s.n.s.Metrics().Unauthorized(true)
		return fmt.Errorf("%w: %w", errUnauthorized, err)
	}
	s.identity.Store(&id)
	return nil
}

// parseFrame parses a frame that the connection has read. If the frame is invalid, the error has the status 400, and the connection
// stays usable. Any other error ends it.
func parseFrame(b []byte, err error) (f clientFrame, _ error) {
	if errors.Is(err, socket.ErrBinary) {
		return f, server.Invalid("binary frame: send frames as text")
	}
	if err != nil {
		return f, err
	}
	if err := server.Unmarshal(b, &f, true); err != nil {
		var parsed struct{ Type, ID, Conversation string }
		_ = json.Unmarshal(b, &parsed) // it fills in what it can, so that the client can match the error to its request
		return clientFrame{Type: parsed.Type, ID: parsed.ID, Conversation: parsed.Conversation}, err
	}
	return f, nil
}

// refuseFrame reports an invalid frame to the client.
//
// The kind depends on the type, as far as it could be parsed, because clients await rejected for the types
// listed here.
func (s *webSocket) refuseFrame(f clientFrame, err error) error {
	switch f.Type {
	case "command", "create", "read":
		return s.send(newError("rejected", f.ID, f.Conversation, err))
	}
	return s.send(newError("error", f.ID, "", err)) // an error with a conversation would end its subscription
}

// send writes one frame.
func (s *webSocket) send(frame any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return fmt.Errorf("frame: %w", err)
	}
	return s.conn.Write(b)
}

// The end of a viewer's token. The viewer is warned, may send a new token of the same user, and is disconnected otherwise.

const (
	// warnBefore is how long before the token of a socket expires the client is warned: enough time to fetch a new one.
	warnBefore = time.Minute
	// closeExpired is the close code of a socket whose token has expired. Clients reconnect with a new token.
	closeExpired = 4001
)

// principal returns the user of the newest token.
func (s *webSocket) principal() gateway.Principal { return s.identity.Load().Principal }

// scheduleWarning arranges for an "expiring" frame warnBefore the token's end. Each end is warned of once: a client that can't renew
// its token is not warned again. A token that never expires needs no timer.
func (s *webSocket) scheduleWarning() {
	if s.warning != nil {
		s.warning.Stop()
		s.warning = nil
	}
	if ends := s.identity.Load().Expires; !ends.IsZero() {
		s.warning = s.conn.AfterFunc(time.Until(ends.Add(-warnBefore)), func() { s.warn(ends) })
	}
}

// warn sends the frame that the token expires, unless the token was renewed at this very moment.
func (s *webSocket) warn(ends time.Time) {
	if !s.identity.Load().Expires.Equal(ends) || s.lastWarning.Swap(ends.UnixNano()) == ends.UnixNano() {
		return
	}
	_ = s.send(expiryFrame{Type: "expiring", Expires: milliseconds(ends)}) // if this fails, the connection ends
}

// renew replaces the token of a socket by a newer one of the same user. If the new token is refused, the socket keeps its old one.
//
// It handles a frame, so no other frame is handled between the new identity and the check of the
// subscriptions. Only changed scopes need that check, as the user is the same. A nil list of scopes means
// all of them and differs from an empty one.
func (s *webSocket) renew(f clientFrame) error {
	id, err := s.n.s.Authenticate(s.handshake.Request(s.ctx), f.Token)
	if err == nil && !sameUser(id.Principal, s.principal()) {
		err = server.Errorf(http.StatusForbidden, server.ReasonForbidden, "the token belongs to another user; open another connection for it")
	}
	if err != nil {
		return s.send(newError("error", f.ID, "", err))
	}
	before := s.principal()
	s.identity.Store(&id)
	s.conn.EndAt(id.Expires, server.ErrExpired)
	s.scheduleWarning()
	if !slices.Equal(before.Scopes, id.Scopes) || before.Scopes == nil != (id.Scopes == nil) {
		if err := s.recheck(); err != nil {
			return err
		}
	}
	return s.send(expiryFrame{Type: "authenticated", ID: f.ID, Expires: milliseconds(id.Expires)})
}

// recheck ends the subscriptions that the principal may no longer read after its scopes have changed.
func (s *webSocket) recheck() error {
	for _, sub := range slices.Clone(s.subs) {
		id := sub.conversation
		if _, err := s.n.gw.Conversation(s.ctx, s.principal(), gateway.ActionRead, id); err != nil {
			s.unsubscribe(id)
			if err := s.send(newError("error", "", id, err)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameUser reports whether two principals are the same user. Scopes are not compared: a new token may have
// others.
func sameUser(a, b gateway.Principal) bool {
	return a.Admin == b.Admin && a.Tenant == b.Tenant && a.Subject == b.Subject
}

// milliseconds returns t since the Unix epoch, or 0 if t is the zero time: it never expires.
func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
