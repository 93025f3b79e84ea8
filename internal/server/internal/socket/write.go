package socket

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/server/internal/outgoing"
)

// maxPooled is the capacity in bytes of the largest write buffer that is used again. Few frames are larger.
const maxPooled = 64 << 10

var writeBuffers = sync.Pool{New: func() any { return new([]byte) }}

// Write writes a text message, after the writes of other goroutines. It blocks while the client accepts no bytes, at most for
// Options.Stall. Its only error is ErrDisconnected, after which the connection ends.
func (c *Conn) Write(text []byte) error {
	if err := c.Lock(c.ctx); err != nil {
		return err
	}
	defer c.Unlock()
	return c.WriteLocked(text)
}

// Lock acquires the write lock. A caller that decides late what to send acquires it first, so that it sends the newest state and
// not one that went stale while another goroutine wrote. If ctx ends first, Lock returns ErrDisconnected.
func (c *Conn) Lock(ctx context.Context) error {
	if turn := c.lock(); turn != nil {
		select {
		case <-turn:
		case <-ctx.Done():
			if c.giveUp(turn) {
				return ErrDisconnected
			}
		}
	}
	if ctx.Err() != nil { // both cases were ready
		c.Unlock()
		return ErrDisconnected
	}
	return nil
}

// lock acquires the write lock and returns nil, or returns a channel that is closed when the lock is passed to the caller.
func (c *Conn) lock() chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isLocked {
		c.isLocked = true
		return nil
	}
	turn := make(chan struct{})
	c.turns = append(c.turns, turn)
	return turn
}

// giveUp ends the wait for a turn. It returns false if the lock was passed to the caller meanwhile.
func (c *Conn) giveUp(turn chan struct{}) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.turns, turn)
	if i >= 0 {
		c.turns = slices.Delete(c.turns, i, i+1)
	}
	return i >= 0
}

// TryLock acquires the write lock if no goroutine has it.
func (c *Conn) TryLock() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	isFree := !c.isLocked
	c.isLocked = true
	return isFree
}

// Unlock releases the write lock, or passes it to the goroutine that has waited for the longest.
func (c *Conn) Unlock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.turns) == 0 {
		c.isLocked, c.turns = false, nil
		return
	}
	close(c.turns[0])
	c.turns = c.turns[1:]
}

// WriteLocked writes a text message under the write lock.
func (c *Conn) WriteLocked(text []byte) error { return c.writeFrame(opText, text) }

// writeFrame writes a frame with one system call, if the system has room for it. The caller must hold the write lock.
func (c *Conn) writeFrame(op opcode, payload []byte) error {
	if c.closed {
		return ErrDisconnected
	}
	buffer := writeBuffers.Get().(*[]byte)
	*buffer = appendFrame((*buffer)[:0], op, payload)
	err := c.send(*buffer)
	if cap(*buffer) <= maxPooled {
		writeBuffers.Put(buffer)
	}
	if err != nil {
		c.cancel(ErrDisconnected)
		return ErrDisconnected
	}
	return nil
}

// send writes whole frames. The caller must hold the write lock.
//
// The write has no context, because a context that can end costs more than the write. The stall timer and the farewell end it by closing
// the connection.
func (c *Conn) send(frames []byte) error {
	if c.writer != nil {
		err := c.writer.Write(frames)
		c.lastWrite.Store(time.Now().UnixNano())
		return err
	}
	c.stall.Reset(c.stallLimit)
	_, err := c.net.Write(frames)
	c.stall.Stop()
	c.lastWrite.Store(time.Now().UnixNano())
	return err
}

// sendLast is send for the last frames.
func (c *Conn) sendLast(frames []byte) error {
	if c.writer != nil {
		return c.writer.WriteLast(frames)
	}
	return c.send(frames)
}

// CanTry reports whether TryWrite can be used.
func (c *Conn) CanTry() bool { return c.writer != nil }

// TryWrite writes a frame of a text message, as feeds encode it, if it can do so without waiting, like [outgoing.Conn.TryWrite]. The frame
// must not be changed later. It doesn't need the write lock. Its only error is ErrDisconnected, after which the connection ends.
func (c *Conn) TryWrite(frame []byte) (outgoing.State, error) {
	if c.ctx.Err() != nil {
		return outgoing.Busy, ErrDisconnected
	}
	state, err := c.writer.TryWrite(frame)
	if err != nil {
		c.cancel(ErrDisconnected)
		return outgoing.Busy, ErrDisconnected
	}
	if state != outgoing.Busy {
		c.lastWrite.Store(time.Now().UnixNano())
	}
	return state, nil
}
