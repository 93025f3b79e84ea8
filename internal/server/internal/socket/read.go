package socket

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coder/websocket"
)

// ErrBinary reports a binary frame. The connection stays usable.
var ErrBinary = errors.New("socket: binary frame")

// Read returns the next text frame. For a binary frame it returns ErrBinary; any other error wraps ErrDisconnected.
//
// Read does not watch the connection's context: a read that is cancelled would close the connection before the farewell. The
// farewell closes the connection, and that ends Read.
func (c *Conn) Read() ([]byte, error) {
	kind, frame, err := c.conn.Read(context.Background())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	if kind != websocket.MessageText {
		return nil, ErrBinary
	}
	return frame, nil
}

// ReadFirst is Read for the frame in which a client presents its credentials. If the frame takes longer than limit, the connection
// ends with the cause timeout.
func (c *Conn) ReadFirst(limit time.Duration, timeout error) ([]byte, error) {
	timer := time.AfterFunc(limit, func() { c.cancel(timeout) })
	defer timer.Stop()
	return c.Read()
}

// SetReadLimit replaces Options.ReadLimit for the frames after the current one.
func (c *Conn) SetReadLimit(bytes int64) { c.conn.SetReadLimit(bytes) }
