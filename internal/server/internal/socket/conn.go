package socket

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// ErrDisconnected is the cause of an end that the client can't be informed of: it closed the connection, broke the protocol, or
// stopped accepting bytes.
var ErrDisconnected = errors.New("socket: client disconnected")

// closeLimit bounds the farewell: its frame, and the client's answer to the close frame. A restart waits for it.
const closeLimit = 2 * time.Second

// Options configure a connection. All fields are required.
type Options struct {
	// Stall is how long one write may block. A connection whose client accepts no bytes for that long is cut.
	Stall time.Duration
	// ReadLimit is the size in bytes of the largest frame that the client may send. A larger one closes the connection with 1009.
	ReadLimit int64
	// Farewell returns how to end a connection. It is called once, possibly while the read loop still runs.
	Farewell func(cause error) Farewell
}

// Farewell is the end of a connection as its client sees it.
type Farewell struct {
	Frame  []byte               // a last frame before the close frame; nil for none
	Code   websocket.StatusCode // 0 cuts the connection without a close frame
	Reason string
}

// Conn is one accepted WebSocket.
type Conn struct {
	conn    *websocket.Conn
	options Options
	ctx     context.Context
	cancel  context.CancelCauseFunc
	tasks   sync.WaitGroup
	expiry  *time.Timer // of EndAt; only the read loop's goroutine uses it

	writeLock chan struct{} // the write lock: one slot
	stall     *time.Timer   // runs during a write
	lastWrite atomic.Int64  // Unix nanoseconds
}

// Accept answers the handshake of r. If the handshake is invalid, it sends the error response and returns false. It does not
// check the Origin header: the server has done so before it calls a handler.
func Accept(w http.ResponseWriter, r *http.Request, options Options) (*Conn, bool) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true,
		CompressionMode:    websocket.CompressionDisabled, // it would cost more CPU than everything else at high fan-out
	})
	if err != nil {
		return nil, false
	}
	conn.SetReadLimit(options.ReadLimit)
	c := &Conn{conn: conn, options: options, writeLock: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancelCause(r.Context())
	c.stall = time.AfterFunc(options.Stall, func() {
		c.cancel(ErrDisconnected)
		_ = c.conn.CloseNow()
	})
	c.stall.Stop()
	return c, true
}

// Context ends with the connection, before the farewell.
func (c *Conn) Context() context.Context { return c.ctx }

// Serve runs loop and returns the cause of the connection's end. The connection ends when loop returns, and loop must return when
// Read fails. Serve returns after every goroutine of the connection.
func (c *Conn) Serve(loop func() error) error {
	closed := make(chan struct{})
	stop := context.AfterFunc(c.ctx, func() {
		defer close(closed)
		c.close(context.Cause(c.ctx))
	})
	cause := loop()
	if stop() {
		c.close(cause)
	} else {
		<-closed
		cause = context.Cause(c.ctx)
	}
	c.cancel(cause)
	c.tasks.Wait()
	c.stall.Stop()
	if c.expiry != nil {
		c.expiry.Stop()
	}
	return cause
}

// Go runs task in a goroutine that Serve waits for. The task must return when the connection's context ends.
func (c *Conn) Go(task func()) { c.tasks.Go(task) }

// End ends the connection. It returns at once; only the first cause counts.
func (c *Conn) End(cause error) { c.cancel(cause) }

// EndAt ends the connection with cause at a time; the zero time cancels an earlier call. Only the read loop's goroutine may call it.
func (c *Conn) EndAt(at time.Time, cause error) {
	if c.expiry != nil {
		c.expiry.Stop()
		c.expiry = nil
	}
	if !at.IsZero() {
		c.expiry = time.AfterFunc(time.Until(at), func() { c.cancel(cause) })
	}
}

// close sends the farewell for cause and closes the connection, within closeLimit.
func (c *Conn) close(cause error) {
	defer func() { _ = c.conn.CloseNow() }()
	farewell := c.options.Farewell(cause)
	if farewell.Code == 0 {
		return
	}
	limit := time.AfterFunc(closeLimit, func() { _ = c.conn.CloseNow() })
	defer limit.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if c.Lock(ctx) != nil {
		return // the client accepts no bytes
	}
	if farewell.Frame != nil {
		_ = c.conn.Write(context.Background(), websocket.MessageText, farewell.Frame) // best effort: a close frame follows
	}
	c.Unlock()
	_ = c.conn.Close(farewell.Code, farewell.Reason)
}
