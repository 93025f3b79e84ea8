package outgoing

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/server/internal/netpoll"
)

// State is what TryWrite has done with a frame.
type State uint8

const (
	// Complete means that the system has the whole frame.
	Complete State = iota
	// Pending means that the connection has taken the frame and sends the rest of it later.
	Pending
	// Busy means that the connection has taken nothing. The caller may send another frame instead when OnReady is called.
	Busy
)

// Config describes a connection.
type Config struct {
	// Conn must implement [syscall.Conn]. The outgoing connection closes it.
	Conn   net.Conn
	Poller *netpoll.Poller
	// Stall is how long the client may accept no bytes while some are waiting.
	Stall time.Duration
	Owner Owner
}

// Owner is what a connection belongs to. The poller's goroutine, among others, calls the methods, so they must not block. They may call all
// methods of the connection.
type Owner interface {
	// OnEvents is called when bytes have arrived or the client has ended its side. Events may be reported again.
	OnEvents(netpoll.Events)
	// OnReady is called when a frame can be written after a TryWrite that returned Busy or Pending.
	OnReady()
	// OnFailed is called once, with the connection closed, if a frame can't be sent after TryWrite has returned. A Write returns such
	// an error itself.
	OnFailed(error)
}

// system is what a Conn needs of the operating system. Tests replace it.
type system interface {
	// TryRead is [netpoll.Handle.TryRead].
	TryRead(b []byte) (int, error)
	// TryWrite is [netpoll.Handle.TryWrite].
	TryWrite(b []byte) (int, error)
	// await starts or ends the calls of Conn.writable. If there is room already, it is called.
	await(room bool) error
	// close ends the events and the connection.
	close()
}

// Conn writes frames to a connection. All methods are safe for concurrent use.
type Conn struct {
	system system
	stall  time.Duration
	owner  Owner

	mu sync.Mutex
	// Why the connection has ended.
	err error
	// The unsent bytes of a frame that the system has taken in part.
	tail []byte
	// The system takes no bytes, and calls writable when it does.
	full bool
	// A Write has its turn.
	isWriting bool
	// WriteLast has had its turn.
	last bool
	// Of the Writes that wait for their turn.
	turns []chan struct{}
	// Closed when tail is sent, for the Write that has its turn.
	completion chan struct{}
	// OnReady is to be called.
	notify bool
	// When the system last took bytes, while it is full.
	progress time.Time
	// Nil until the system is full for the first time.
	timer *time.Timer
}

// TryRead reads bytes that have arrived, like [netpoll.Handle.TryRead]. One goroutine at a time may call it.
func (c *Conn) TryRead(b []byte) (int, error) { return c.system.TryRead(b) }

// TryWrite writes a frame if it can do so without waiting. It keeps a reference to the frame until the frame is sent, so the frame must
// not be changed. After an error, the connection is closed.
func (c *Conn) TryWrite(frame []byte) (State, error) {
	c.mu.Lock()
	if err := c.refusal(); err != nil {
		c.mu.Unlock()
		return Busy, err
	}
	if c.busy() {
		c.notify = true
		c.mu.Unlock()
		return Busy, nil
	}
	n, err := c.push(frame)
	state := Complete
	switch {
	case err != nil:
		c.fail(err)
	case n == 0 && c.full:
		state, c.tail, c.notify = Busy, nil, true
	case c.full:
		state, c.notify = Pending, true
	}
	c.mu.Unlock()
	if err != nil {
		c.system.close()
	}
	return state, err
}

// Write writes a frame, after the frames of other goroutines. It blocks until the system has taken the frame or the connection has
// ended.
func (c *Conn) Write(frame []byte) error { return c.write(frame, false) }

// WriteLast is Write for the last frame. Every later frame is refused with errClosed, also of Writes that are waiting for their turn.
func (c *Conn) WriteLast(frame []byte) error { return c.write(frame, true) }

func (c *Conn) write(frame []byte, last bool) error {
	c.mu.Lock()
	if c.refusal() == nil && c.busy() {
		turn := make(chan struct{})
		c.turns = append(c.turns, turn)
		c.mu.Unlock()
		<-turn
		c.mu.Lock()
	}
	if err := c.refusal(); err != nil {
		c.mu.Unlock()
		return err
	}
	c.isWriting = true
	if last {
		c.last = true
		c.dismiss()
	}
	_, err := c.push(frame)
	if err == nil && c.full {
		completion := make(chan struct{})
		c.completion = completion
		c.mu.Unlock()
		<-completion
		c.mu.Lock()
	}
	c.isWriting = false
	if err != nil {
		c.fail(err)
		c.mu.Unlock()
		c.system.close()
		return err
	}
	err = c.err // it ended while Write was waiting
	isReady := c.next()
	c.mu.Unlock()
	if isReady {
		c.owner.OnReady()
	}
	return err
}

// Close closes the connection. Writes that wait return errClosed. No callback starts after Close has returned, but one may still run.
func (c *Conn) Close() {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.fail(errClosed)
	c.mu.Unlock()
	c.system.close()
}

// refusal returns the error for a new frame, or nil. The caller must hold the mutex.
func (c *Conn) refusal() error {
	if c.err == nil && c.last {
		return errClosed
	}
	return c.err
}

// busy reports whether a new frame has to wait. The caller must hold the mutex.
func (c *Conn) busy() bool { return c.full || c.isWriting || len(c.turns) > 0 }

// push passes bytes to the system until it has all of them or is full, and then arranges for writable to be called. It returns
// how many the system has taken. The caller must hold the mutex.
func (c *Conn) push(b []byte) (n int, _ error) {
	n, err := c.system.TryWrite(b)
	if err != nil && !errors.Is(err, netpoll.ErrBlocked) {
		return n, err
	}
	if c.tail = b[n:]; len(c.tail) == 0 {
		c.tail = nil
		return n, nil
	}
	c.full, c.progress = true, time.Now()
	if c.timer == nil {
		c.timer = time.AfterFunc(c.stall, c.checkStall)
	} else {
		c.timer.Reset(c.stall)
	}
	return n, c.system.await(true)
}

// writable continues after the system has been full. The poller calls it, possibly more often than needed.
func (c *Conn) writable() {
	c.mu.Lock()
	if c.err != nil || !c.full {
		c.mu.Unlock()
		return
	}
	for len(c.tail) > 0 {
		n, err := c.system.TryWrite(c.tail)
		if n > 0 {
			c.tail, c.progress = c.tail[n:], time.Now()
		}
		if errors.Is(err, netpoll.ErrBlocked) {
			c.mu.Unlock()
			return // the next edge calls again
		}
		if err != nil {
			c.abort(err)
			return
		}
	}
	c.tail, c.full = nil, false
	c.timer.Stop()
	if err := c.system.await(false); err != nil {
		c.abort(err)
		return
	}
	isReady := false
	if c.completion != nil {
		close(c.completion) // its Write calls next
		c.completion = nil
	} else {
		isReady = c.next()
	}
	c.mu.Unlock()
	if isReady {
		c.owner.OnReady()
	}
}

// next gives the turn to the first Write that waits. Otherwise it reports whether OnReady is due. The caller must hold the mutex, and call
// OnReady after it has released the mutex.
func (c *Conn) next() (isReady bool) {
	switch {
	case c.err != nil:
	case len(c.turns) > 0:
		c.isWriting = true
		close(c.turns[0])
		if c.turns = slices.Delete(c.turns, 0, 1); len(c.turns) == 0 {
			c.turns = nil
		}
	case c.notify:
		c.notify = false
		return true
	}
	return false
}

// checkStall ends the connection if the client has accepted nothing for the limit.
func (c *Conn) checkStall() {
	c.mu.Lock()
	if c.err != nil || !c.full {
		c.mu.Unlock()
		return
	}
	if silence := time.Since(c.progress); silence < c.stall {
		c.timer.Reset(c.stall - silence)
		c.mu.Unlock()
		return
	}
	c.abort(errStalled)
}

// abort ends the connection while no Write or TryWrite can return the error. The caller must hold the mutex; abort releases it.
func (c *Conn) abort(err error) {
	c.fail(err)
	c.mu.Unlock()
	c.system.close()
	c.owner.OnFailed(err)
}

// fail notes why the connection ends, and wakes every Write. The caller must hold the mutex, and close the connection after it has
// released the mutex.
func (c *Conn) fail(err error) {
	c.err, c.tail, c.full = err, nil, false
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.completion != nil {
		close(c.completion)
		c.completion = nil
	}
	c.dismiss()
}

// dismiss wakes the Writes that wait for their turn, because they are refused. The caller must hold the mutex.
func (c *Conn) dismiss() {
	for _, turn := range c.turns {
		close(turn)
	}
	c.turns, c.notify = nil, false
}
