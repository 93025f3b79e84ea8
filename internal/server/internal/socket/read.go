package socket

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrBinary reports a binary message. The connection stays usable.
var ErrBinary = errors.New("socket: binary frame")

// errClosed reports the client's close frame.
var errClosed = errors.New("socket: client closed the connection")

// readSize is how many bytes are read at once. Messages of users are smaller, as a rule.
const readSize = 4 << 10

var readBuffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// ReadFirst returns the message in which a client presents its credentials. If the message takes longer than limit, the connection
// ends with the cause timeout. Only Handler.Begin may call it. The message is valid until Begin returns.
//
// For a binary message the error is ErrBinary; any other error wraps ErrDisconnected.
func (c *Conn) ReadFirst(limit time.Duration, timeout error) ([]byte, error) {
	timer := time.AfterFunc(limit, func() { c.cancel(timeout) })
	defer timer.Stop()
	m, err := c.next(c.net.Read)
	if err != nil {
		return nil, c.stop(err)
	}
	if c.ctx.Err() != nil {
		return nil, ErrDisconnected
	}
	return text(m)
}

// SetReadLimit replaces Options.ReadLimit for the messages after the current one. Only Begin and Frame may call it.
func (c *Conn) SetReadLimit(bytes int64) { c.parser.limit = bytes }

// text returns a message as Handler.Frame gets it.
func text(m message) ([]byte, error) {
	if m.op != opText {
		return nil, ErrBinary
	}
	return m.payload, nil
}

// readLoop handles messages until nothing more can be read. When the connection's context has ended, it ignores messages and waits for the
// client's close frame. The farewell closes the connection, and that ends a read.
func (c *Conn) readLoop() {
	defer c.releaseBuffer()
	for !c.isGone() {
		m, err := c.next(c.net.Read)
		switch {
		case err != nil:
			_ = c.stop(err)
		case c.ctx.Err() == nil:
			c.handle(m)
		}
	}
}

// handle passes a message to the handler.
func (c *Conn) handle(m message) {
	if err := c.guard(func() error { return c.handler.Frame(text(m)) }); err != nil {
		c.cancel(err)
	}
}

// next returns the next text or binary message. It answers control frames, and calls source when it needs further bytes. It returns the
// error of source, a violation, or errClosed.
func (c *Conn) next(source func([]byte) (int, error)) (message, error) {
	for {
		for len(c.input) > 0 && !c.isBroken {
			n, m, complete, v := c.parser.parse(c.input)
			c.input = c.input[n:]
			switch {
			case v != nil:
				return m, v
			case !complete:
			case !m.op.isControl():
				return m, nil
			default:
				if err := c.control(m); err != nil {
					return m, err
				}
			}
		}
		if c.buffer == nil {
			c.buffer = readBuffers.Get().(*[readSize]byte)
		}
		n, err := source(c.buffer[:])
		if err != nil {
			return message{}, err
		}
		c.input = c.buffer[:n]
	}
}

// control handles a control frame.
func (c *Conn) control(m message) error {
	switch m.op {
	case opPing:
		if c.Lock(c.ctx) == nil { // otherwise the connection is ending
			_ = c.writeFrame(opPong, m.payload)
			c.Unlock()
		}
	case opPong:
		c.beat.pong(m.payload)
	case opClose:
		code, reason, v := parseClose(m.payload)
		if v != nil {
			return v
		}
		c.setAnswer(closing{code, reason, true})
		return errClosed
	}
	return nil
}

// stop ends the connection after an error of next. It returns the cause, which wraps ErrDisconnected.
func (c *Conn) stop(err error) error {
	if v, ok := errors.AsType[*violation](err); ok {
		c.isBroken = true
		c.setAnswer(closing{v.code, v.reason, false})
	} else {
		c.depart()
	}
	err = fmt.Errorf("%w: %w", ErrDisconnected, err)
	c.cancel(err)
	return err
}

// setAnswer sets the close frame unless there is one.
func (c *Conn) setAnswer(answer closing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answer == nil {
		c.answer = &answer
	}
}

// isGone reports whether nothing more can be read.
func (c *Conn) isGone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hasLeft
}

// releaseBuffer returns the buffer to its pool.
func (c *Conn) releaseBuffer() {
	if c.buffer != nil {
		readBuffers.Put(c.buffer)
		c.buffer = nil
	}
	c.input = nil
}
