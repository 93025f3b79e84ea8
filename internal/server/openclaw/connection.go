// The life of a connection. One goroutine carries out its requests in their order, one sends ticks, and one reads each conversation.

package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/socket"
)

// connection is one client.
type connection struct {
	s         *surface
	conn      *socket.Conn
	ctx       context.Context // of conn
	handshake server.Handshake
	identity  atomic.Pointer[server.Identity]
	isLocal   bool // the client is on this machine
	nonce, id string
	// isAppending means that the client can only append text to what it has, as the ACP bridge does.
	isAppending bool
	metrics     *server.Viewer // nil before the greeting
	requests    chan request

	// Only the goroutine of the requests uses these.
	sessions      map[string]*session // by key
	subscriptions map[string]bool     // keys of the sessions whose messages the client wants
	positions     *gateway.Positions  // nil if the client doesn't follow the list of sessions
	uses          int64               // of sessions

	// mu is locked until an event is written, so that the numbers have their order.
	mu  sync.Mutex
	seq int64 // of the last event
}

var _ socket.Handler = (*connection)(nil)

// principal returns the user of the connection.
func (c *connection) principal() gateway.Principal { return c.identity.Load().Principal }

// Begin implements [socket.Handler].
func (c *connection) Begin() error {
	greeting, id, err := c.connect()
	if err != nil {
		return err
	}
	c.conn.SetReadLimit(maxFrame)
	c.conn.EndAt(c.identity.Load().Expires, server.ErrExpired)
	c.metrics = c.s.viewers.Open()
	if err := c.write(response{Type: "res", ID: id, OK: true, Payload: greeting}); err != nil {
		return err
	}
	c.conn.Heartbeat(c.s.pings)
	c.conn.Go(c.serve)
	c.conn.Go(c.tick)
	return nil
}

// Frame implements [socket.Handler].
func (c *connection) Frame(b []byte, err error) error {
	if errors.Is(err, socket.ErrBinary) {
		return nil // as OpenClaw ignores frames that aren't JSON
	}
	if err != nil {
		return err
	}
	if !json.Valid(b) {
		return nil
	}
	var rq request
	if err := json.Unmarshal(b, &rq); err != nil || rq.Type != "req" || rq.ID == "" || rq.Method == "" {
		return c.write(response{Type: "res", ID: "invalid", Error: &fault{
			Code: codeInvalid, Message: "invalid request frame: type must be req, with an id and a method",
		}})
	}
	select {
	case c.requests <- rq: // its parameters are a copy
		return nil
	case <-c.ctx.Done():
		return socket.ErrDisconnected
	}
}

// serve carries out the requests until the connection ends.
func (c *connection) serve() {
	for {
		select {
		case rq := <-c.requests:
			if err := c.handle(&rq); err != nil {
				c.conn.End(err)
				return
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// tick sends the ticks, whose absence makes clients reconnect.
func (c *connection) tick() {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case at := <-ticker.C:
			if c.send("tick", map[string]int64{"ts": at.UnixMilli()}) != nil {
				return // the connection ends
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// send writes an event. The events after the greeting are numbered without gaps: a client that finds one reconnects.
func (c *connection) send(name string, payload any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := notice{Type: "event", Event: name, Payload: payload}
	if c.metrics != nil {
		c.seq++
		n.Seq = c.seq
	}
	return c.write(n)
}

// write writes a frame.
func (c *connection) write(frame any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return fmt.Errorf("openclaw: encode frame: %w", err)
	}
	if c.metrics != nil {
		c.metrics.Frame(len(b))
	}
	return c.conn.Write(b)
}

// Ready implements [socket.Handler]. Every frame is sent by a goroutine that waits.
func (c *connection) Ready() {}

// End implements [socket.Handler].
func (c *connection) End(cause error) {
	if c.positions != nil {
		c.positions.Close()
	}
	for _, s := range c.sessions {
		s.leave()
	}
	if c.metrics != nil {
		c.metrics.Close()
	}
	if errors.Is(cause, socket.ErrPanic) || server.Describe(cause).Status == http.StatusInternalServerError && !isExpected(cause) {
		c.s.srv.Log().Error("openclaw connection failed", "request", server.RequestID(c.ctx), "error", cause)
	}
}

// isExpected reports whether the client, and not the gateway, caused the end of a connection.
func isExpected(cause error) bool {
	_, isRefusal := errors.AsType[*refusal](cause)
	return isRefusal || errors.Is(cause, errSilent) || errors.Is(cause, socket.ErrDisconnected)
}

// shutdown is the event before a restart. It has no number, because another goroutine may be writing an event, and clients accept that.
const shutdown = `{"type":"event","event":"shutdown","payload":{"reason":"gateway stopping","restartExpectedMs":2000}}`

// Farewell implements [socket.Handler].
func (c *connection) Farewell(cause error) socket.Farewell {
	if r, ok := errors.AsType[*refusal](cause); ok {
		frame, err := json.Marshal(response{Type: "res", ID: r.id, Error: r.fault})
		if err != nil {
			return socket.Farewell{}
		}
		return socket.Farewell{Frame: frame, Code: r.code, Reason: "connect refused"}
	}
	switch {
	case errors.Is(cause, errSilent):
		return socket.Farewell{Code: closeRefused, Reason: "handshake timeout"}
	case errors.Is(cause, server.ErrShutdown):
		return socket.Farewell{Frame: []byte(shutdown), Code: websocket.StatusServiceRestart, Reason: "service restart"}
	case errors.Is(cause, server.ErrExpired):
		return socket.Farewell{Code: closeRefused, Reason: "the token has expired"}
	case errors.Is(cause, socket.ErrDisconnected):
		return socket.Farewell{}
	case server.Describe(cause).Status == http.StatusUnauthorized: // its session was ended
		return socket.Farewell{Code: closeRefused, Reason: "unauthorized"}
	}
	return socket.Farewell{Code: websocket.StatusInternalError, Reason: "internal error"}
}
