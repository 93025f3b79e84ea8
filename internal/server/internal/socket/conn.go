package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/server/internal/netpoll"
	"github.com/leat-dev/leat/internal/server/internal/outgoing"
)

// ErrDisconnected is the cause of an end that the client can't be informed of: it closed the connection, broke the protocol, or
// stopped accepting bytes.
var ErrDisconnected = errors.New("socket: client disconnected")

// ErrPanic is the cause of an end by a panic of the handler. Its text has the stack.
var ErrPanic = errors.New("socket: handler panicked")

// closeLimit bounds the farewell: its frame, and the client's answer to the close frame. A restart waits for it.
const closeLimit = 2 * time.Second

// Options configure a connection. Only the fields of the first group are required.
type Options struct {
	// Stall is how long one write may block. A connection whose client accepts no bytes for that long is cut.
	Stall time.Duration
	// ReadLimit is the size in bytes of the largest message that the client may send. A larger one closes the connection with 1009.
	ReadLimit int64

	// Values is the source of the values of the connection's context. If it is nil, that is the request's context.
	Values context.Context
	// Poller serves the connection without a goroutine while it is idle, if it has a file descriptor. If Poller is nil, a goroutine
	// reads the connection.
	Poller *netpoll.Poller
	// Detach lets Serve return before the connection has ended, if a poller serves it. It is called once after Handler.Begin. When the
	// connection has to end, cancel is to be called. The returned function is called after Handler.End. If Detach is nil, Serve waits.
	Detach func(cancel func(cause error)) (end func())
}

// Farewell is the end of a connection as its client sees it.
type Farewell struct {
	// A last frame before the close frame; nil for none.
	Frame []byte
	// 0 cuts the connection without a close frame.
	Code   websocket.StatusCode
	Reason string
}

// Handler is what a connection does. An error or a panic of Begin or Frame ends the connection.
type Handler interface {
	// Begin runs before the first frame is handled. It may call ReadFirst.
	Begin() error
	// Frame handles a text message, which is valid until Frame returns. The error is nil, or ErrBinary for a binary message.
	Frame(frame []byte, err error) error
	// Ready is called when a message can be written after a TryWrite that returned Busy or Pending. It must not block.
	Ready()
	// Farewell returns how to end the connection. It is called once at most, possibly while a frame is being handled.
	Farewell(cause error) Farewell
	// End is called once, after the connection and every goroutine of it have ended.
	End(cause error)
}

// Conn is one accepted WebSocket.
type Conn struct {
	net net.Conn
	// Nil if a goroutine serves the connection.
	writer     *outgoing.Conn
	handler    Handler
	stallLimit time.Duration
	ctx        context.Context
	// Only cancel calls it.
	endCtx context.CancelCauseFunc
	// From the request's context.
	unhook func() bool
	// Options.Detach, or nil.
	detach func(cancel func(cause error)) (end func())
	// Called after Handler.End: what detach has returned, or what lets Serve return.
	onEnd func()
	// Of EndAt.
	expiry *time.Timer
	beat   beat

	// Only the goroutine that reads uses these.
	parser parser
	// Nil while nothing is being read.
	buffer *[readSize]byte
	// The bytes of buffer that have not been parsed.
	input []byte
	// The client has broken the protocol, and its bytes are ignored.
	isBroken bool
	// The last read took everything that had arrived.
	isDrained bool

	mu    sync.Mutex
	tasks sync.WaitGroup
	// Serve was called.
	isServing bool
	// Finish was started.
	isFinishing bool
	// No task may start, unless by another one.
	isOver bool
	// Nothing more will be read.
	hasLeft bool
	// A goroutine reads, or nothing more will be read; only with a poller.
	isReading bool
	// There is something to read after the current read.
	hasMore bool
	// A goroutine has the write lock.
	isLocked bool
	// A close frame was written; guarded by the write lock.
	closed bool
	// Of the goroutines that wait for the write lock.
	turns []chan struct{}
	// What the reader has found to say at the end.
	answer *closing
	// Closed when hasLeft is set, if the farewell waits for it.
	exit chan struct{}

	// Runs during a write; nil with a poller.
	stall *time.Timer
	// Unix nanoseconds.
	lastWrite atomic.Int64
}

// closing is the close frame for a client that closed the connection or broke the protocol.
type closing struct {
	code   websocket.StatusCode
	reason string
	// To the client's close frame.
	isReply bool
}

// Accept answers the handshake of r. If the handshake is invalid, it sends the error response and returns false. It does not
// check the Origin header: the server has done so before it calls a handler. Compression is not negotiated, because it would cost more
// CPU than everything else at high fan-out.
func Accept(w http.ResponseWriter, r *http.Request, options Options) (*Conn, bool) {
	conn, prefix, err := shakeHands(w, r)
	if err != nil {
		return nil, false
	}
	c := &Conn{
		net: conn, stallLimit: options.Stall, parser: parser{limit: options.ReadLimit}, input: prefix, isReading: true,
	}
	// The request's context ends when its handler returns, and the connection may end later.
	values := context.WithoutCancel(r.Context())
	if options.Values != nil {
		values = options.Values
	}
	c.ctx, c.endCtx = context.WithCancelCause(values)
	c.unhook = context.AfterFunc(r.Context(), func() { c.cancel(context.Cause(r.Context())) })
	if options.Poller != nil {
		if c.writer = c.poll(conn, options.Poller); c.writer != nil {
			c.detach = options.Detach
			return c, true
		}
	}
	c.stall = time.AfterFunc(options.Stall, func() {
		c.cancel(ErrDisconnected)
		_ = c.net.Close()
	})
	c.stall.Stop()
	return c, true
}

// Context ends with the connection, before the farewell.
func (c *Conn) Context() context.Context { return c.ctx }

// Serve runs the handler until the connection has ended, or until the connection is detached.
func (c *Conn) Serve(handler Handler) {
	isDetached := c.detach != nil
	end := make(chan struct{})
	c.onEnd = func() { close(end) }
	c.handler = handler
	c.tasks.Add(1)
	c.mu.Lock()
	c.isServing = true
	c.mu.Unlock()
	c.startFinish()
	if err := c.guard(handler.Begin); err != nil {
		c.cancel(err)
	}
	if isDetached {
		c.onEnd = c.detach(c.cancel)
		c.unhook()
		c.unhook, c.detach = nil, nil // they refer to the request
	}
	if c.writer != nil {
		c.pump()
	} else {
		c.readLoop()
	}
	c.tasks.Done()
	if !isDetached {
		<-end
	}
}

// guard calls fn and returns a panic as an error.
func (c *Conn) guard(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrPanic, p, debug.Stack())
		}
	}()
	return fn()
}

// Go runs task in a goroutine that ends before Handler.End is called. The task must return when the connection's context ends. Only the
// handler and other tasks may call Go.
func (c *Conn) Go(task func()) { c.tasks.Go(task) }

// TryGo is Go for callers that don't know whether the connection has ended. It returns false then, and doesn't run the task.
func (c *Conn) TryGo(task func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isOver {
		c.tasks.Go(task)
	}
	return !c.isOver
}

// AfterFunc runs task like Go, after a delay and unless the connection has ended by then. Stop the timer when the connection ends.
func (c *Conn) AfterFunc(delay time.Duration, task func()) *time.Timer {
	return time.AfterFunc(delay, func() { c.TryGo(task) })
}

// cancel ends the connection's context. Only the first cause counts.
func (c *Conn) cancel(cause error) {
	c.endCtx(cause)
	c.startFinish()
}

// startFinish has the connection finished once, if Serve was called and the context has ended. It does without [context.AfterFunc],
// which needs a tenth of the memory of an idle connection.
func (c *Conn) startFinish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isServing && !c.isFinishing && c.ctx.Err() != nil {
		c.isFinishing = true
		go c.finish() // Handler.End is its end
	}
}

// End ends the connection. It returns at once; only the first cause counts.
func (c *Conn) End(cause error) { c.cancel(cause) }

// EndAt ends the connection with cause at a time; the zero time cancels an earlier call. Only Begin and Frame may call it.
func (c *Conn) EndAt(at time.Time, cause error) {
	if c.expiry != nil {
		c.expiry.Stop()
		c.expiry = nil
	}
	if !at.IsZero() {
		c.expiry = time.AfterFunc(time.Until(at), func() { c.cancel(cause) })
	}
}

// finish ends the connection after its context has ended.
func (c *Conn) finish() {
	cause := context.Cause(c.ctx)
	c.leave(cause)
	c.mu.Lock()
	c.isOver = true
	c.mu.Unlock()
	c.tasks.Wait()
	if c.unhook != nil {
		c.unhook()
	}
	if c.stall != nil {
		c.stall.Stop()
	}
	if c.expiry != nil {
		c.expiry.Stop()
	}
	if c.beat.wheel != nil {
		c.beat.wheel.remove(c)
	}
	c.handler.End(cause)
	c.onEnd()
}

// leave says goodbye and closes the connection, within closeLimit.
func (c *Conn) leave(cause error) {
	defer c.close()
	c.mu.Lock()
	answer := c.answer
	c.mu.Unlock()
	var frames []byte
	if answer != nil {
		frames = appendClose(frames, answer.code, answer.reason)
	} else {
		farewell := c.handler.Farewell(cause)
		if farewell.Code == 0 {
			return
		}
		if farewell.Frame != nil {
			frames = appendFrame(frames, opText, farewell.Frame)
		}
		frames = appendClose(frames, farewell.Code, farewell.Reason)
	}
	limit := time.AfterFunc(closeLimit, c.close)
	defer limit.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if c.Lock(ctx) != nil {
		return // the client accepts no bytes
	}
	err := c.sendLast(frames)
	c.closed = true
	c.Unlock()
	if err != nil || answer != nil && answer.isReply {
		return
	}
	// A close with unread bytes would make the system discard the frames that the client has not read.
	select {
	case <-c.departure():
	case <-ctx.Done():
	}
}

// close closes the connection without a farewell.
func (c *Conn) close() {
	if c.writer != nil {
		c.writer.Close()
	} else {
		_ = c.net.Close()
	}
}

// departure returns a channel that is closed when the client has closed the connection.
func (c *Conn) departure() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exit = make(chan struct{})
	if c.hasLeft {
		close(c.exit)
	}
	return c.exit
}

// depart notes that nothing more will be read.
func (c *Conn) depart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hasLeft && c.exit != nil {
		close(c.exit)
	}
	c.hasLeft = true
}
