package socket

import (
	"context"
	"time"

	"github.com/coder/websocket"
)

// Write writes a text frame, after the writes of other goroutines. It blocks while the client accepts no bytes, at most for
// Options.Stall. Its only error is ErrDisconnected, after which the connection ends.
func (c *Conn) Write(frame []byte) error {
	if err := c.Lock(c.ctx); err != nil {
		return err
	}
	defer c.Unlock()
	return c.WriteLocked(frame)
}

// Lock acquires the write lock. A caller that decides late what to send acquires it first, so that it sends the newest state and
// not one that went stale while another goroutine wrote. If ctx ends first, Lock returns ErrDisconnected.
func (c *Conn) Lock(ctx context.Context) error {
	select {
	case c.writeLock <- struct{}{}:
	case <-ctx.Done():
		return ErrDisconnected
	}
	if ctx.Err() != nil { // both cases were ready
		c.Unlock()
		return ErrDisconnected
	}
	return nil
}

// TryLock acquires the write lock if no goroutine has it.
func (c *Conn) TryLock() bool {
	select {
	case c.writeLock <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock releases the write lock.
func (c *Conn) Unlock() { <-c.writeLock }

// WriteLocked writes a text frame under the write lock.
//
// The write itself has no context, because a context that can end costs more than the write. The stall timer and the farewell end
// it by closing the connection.
func (c *Conn) WriteLocked(frame []byte) error {
	c.stall.Reset(c.options.Stall)
	err := c.conn.Write(context.Background(), websocket.MessageText, frame)
	c.stall.Stop()
	c.lastWrite.Store(time.Now().UnixNano())
	if err != nil {
		c.cancel(ErrDisconnected)
		return ErrDisconnected
	}
	return nil
}

// Heartbeat writes frame whenever nothing was written for the interval, until the connection ends.
func (c *Conn) Heartbeat(interval time.Duration, frame []byte) {
	c.Go(func() {
		timer := time.NewTimer(interval)
		defer timer.Stop()
		for {
			select {
			case <-c.ctx.Done():
				return
			case <-timer.C:
			}
			if silence := time.Since(time.Unix(0, c.lastWrite.Load())); silence < interval {
				timer.Reset(interval - silence)
				continue
			}
			timer.Reset(interval)
			if !c.TryLock() {
				continue // another frame is being written
			}
			err := c.WriteLocked(frame)
			c.Unlock()
			if err != nil {
				return
			}
		}
	})
}

// Ping sends a WebSocket ping at every interval, until the connection ends. A client that does not answer within Options.Stall is
// disconnected.
func (c *Conn) Ping(interval time.Duration) {
	c.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-c.ctx.Done():
				return
			case <-ticker.C:
			}
			// Behind a blocked write, coder/websocket gives up a ping after 5 s. Options.Stall is to decide about such a client.
			if len(c.writeLock) > 0 {
				continue
			}
			// Like Read, Ping must not watch the connection's context.
			ctx, cancel := context.WithTimeout(context.Background(), c.options.Stall)
			err := c.conn.Ping(ctx)
			cancel()
			if err != nil && len(c.writeLock) == 0 {
				c.cancel(ErrDisconnected)
				return
			}
		}
	})
}
