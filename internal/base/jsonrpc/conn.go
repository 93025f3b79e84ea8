package jsonrpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxLine is the limit of a message, in bytes. Editors send pictures inside messages, in base64.
	maxLine = 64 << 20
	// farewell is how long Serve waits for its goroutines. One that writes to a peer that doesn't read would otherwise block the end.
	farewell = 5 * time.Second
)

// Work carries out a request, in a separate goroutine. ctx ends when the peer cancels the request and when the connection ends. Other errors than
// *Error are answered as InternalError.
type Work func(ctx context.Context) (result any, err error)

// Options describe what a connection does. Output and Handle are required.
type Options struct {
	Output io.Writer
	// Handle gets the requests and notifications of the peer in their order, and must not block. The work that it returns answers a request.
	// It returns nil for a method that it doesn't know, and for a notification that needs no work.
	Handle func(method string, params json.RawMessage) Work
	// CancelMethod is the notification with which both sides give up their requests. Its params have the key requestId.
	CancelMethod string
}

// Conn is one side of a connection. Call and Notify may be called from several goroutines, also during Serve.
type Conn struct {
	o     Options
	write sync.Mutex // held while a message is written
	tasks sync.WaitGroup
	ctx   context.Context // ends with the connection
	end   context.CancelCauseFunc
	// hasBatches is true if the peer may send batches.
	hasBatches atomic.Bool

	mu       sync.Mutex
	calls    int64                         // number of own requests; the id of the last one
	pending  map[string]chan<- message     // own requests by id
	requests map[string]context.CancelFunc // requests of the peer that are carried out, by id
}

// New returns a connection, which works when [Conn.Serve] is called.
func New(o Options) *Conn {
	ctx, end := context.WithCancelCause(context.Background())
	return &Conn{o: o, ctx: ctx, end: end, pending: map[string]chan<- message{}, requests: map[string]context.CancelFunc{}}
}

// message is any message. A request has a method and an id, a notification a method, and a response an id.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// Serve reads messages until the input ends, ctx is done or a line is too long. At the end of the input it returns nil. It is called once.
//
// When it returns, all requests have ended: those of the peer are canceled, and own ones return ErrClosed.
func (c *Conn) Serve(ctx context.Context, input io.Reader) error {
	defer c.await()
	defer c.end(ErrClosed)
	defer context.AfterFunc(ctx, func() { c.end(context.Cause(ctx)) })()
	lines := make(chan []byte)
	failure := make(chan error, 1)
	// A read from a terminal or a pipe can't be interrupted. So the goroutine that reads may outlive Serve, until the program ends.
	go func() { failure <- readLines(c.ctx, input, lines) }()
	for {
		select {
		case line := <-lines:
			c.receive(line)
		case err := <-failure:
			return err
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
	}
}

// Context returns a context that ends with the connection.
func (c *Conn) Context() context.Context { return c.ctx }

// Go runs a function in a goroutine of the connection, with its context. Serve waits for it.
func (c *Conn) Go(f func(context.Context)) { c.tasks.Go(func() { f(c.ctx) }) }

// readLines passes the lines of the input. It reads in pieces and not with a scanner, whose buffer would stay as large as the longest line. An incomplete last line is ignored.
func readLines(ctx context.Context, input io.Reader, lines chan<- []byte) error {
	r := bufio.NewReaderSize(input, 64<<10)
	for {
		var line []byte
		for {
			piece, err := r.ReadSlice('\n')
			line = append(line, piece...)
			if len(line) > maxLine {
				return fmt.Errorf("%w: more than %d MiB", errTooLong, maxLine>>20)
			}
			if err == nil {
				break
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return fmt.Errorf("jsonrpc: read: %w", err)
			}
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		select {
		case lines <- line:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// await waits for the goroutines of the connection, within a limit. Their context has ended, so only a write can still block them.
func (c *Conn) await() {
	tasksDone := make(chan struct{})
	go func() {
		c.tasks.Wait()
		close(tasksDone)
	}()
	limit := time.NewTimer(farewell)
	defer limit.Stop()
	select {
	case <-tasksDone:
	case <-limit.C:
	}
}

// receive handles a line of the peer. An error while the response is written isn't reported: the peer has closed its input, and closes its output
// or exits next, which ends Serve.
func (c *Conn) receive(line []byte) {
	if line[0] == '[' && c.hasBatches.Load() {
		c.receiveBatch(line)
		return
	}
	c.receiveMessage(line, func(m *message) {
		if m != nil {
			_ = c.send(m)
		}
	})
}

// receiveMessage handles one message of the peer. It returns true if the message is a request or invalid: then respond is called once, maybe later,
// with the response, or with nil if the request must not be answered.
func (c *Conn) receiveMessage(b []byte, respond func(*message)) bool {
	var m message
	if err := json.Unmarshal(b, &m); err != nil {
		respond(responseOf(nil, nil, Errorf(parseError, "invalid message: %v", err)))
		return true
	}
	isRequest := len(m.ID) > 0 && string(m.ID) != "null"
	switch {
	case m.Method == "" && isRequest:
		c.resolve(m)
	case m.Method == "":
		respond(responseOf(nil, nil, Errorf(invalidRequest, "a message needs a method or an id")))
		return true
	case m.Method == c.o.CancelMethod && !isRequest:
		var p struct {
			ID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &p) == nil { // else it names no request
			c.cancel(string(p.ID))
		}
	default:
		c.begin(m, isRequest, respond)
		return isRequest
	}
	return false
}

// begin starts the work of a request or a notification. The request is registered before its work starts, so that a notification that cancels it,
// which may be the next line, finds it.
func (c *Conn) begin(m message, isRequest bool, respond func(*message)) {
	work := c.o.Handle(m.Method, m.Params)
	if work == nil {
		if isRequest {
			respond(responseOf(m.ID, nil, Errorf(methodNotFound, "unknown method %s", m.Method)))
		}
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	if isRequest {
		c.mu.Lock()
		c.requests[string(m.ID)] = cancel
		c.mu.Unlock()
	}
	c.tasks.Go(func() {
		defer cancel()
		result, err := work(ctx)
		if !isRequest {
			return // a notification gets no response, so its work reports its errors itself
		}
		c.mu.Lock()
		delete(c.requests, string(m.ID))
		c.mu.Unlock()
		respond(responseOf(m.ID, result, err))
	})
}

// cancel ends the work of a request. A request that has been answered is ignored, as the notification may cross its response.
func (c *Conn) cancel(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.requests[id]; cancel != nil {
		cancel()
	}
}

// responseOf returns the response to a request, or nil if it gets none. Without an id it is the response to an invalid message.
func responseOf(id json.RawMessage, result any, err error) *message {
	if id == nil {
		id = json.RawMessage("null")
	}
	m := &message{ID: id}
	if err == nil {
		m.Result, err = marshal(result)
	}
	switch failure, isError := errors.AsType[*Error](err); {
	case err == nil:
	case errors.Is(err, ErrNoResponse):
		return nil
	case isError:
		m.Error = failure
	case errors.Is(err, context.Canceled):
		m.Error = Errorf(canceled, "the request was canceled")
	default:
		m.Error = Errorf(InternalError, "%v", err)
	}
	return m
}

// marshal returns a value as JSON, and an empty object for nil: peers expect a result.
func marshal(v any) (json.RawMessage, error) {
	if v == nil {
		return json.RawMessage("{}"), nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("jsonrpc: encode: %w", err)
	}
	return b, nil
}

// resolve passes a response to the call that waits for it. A response without one is ignored, since the call may have been given up meanwhile.
func (c *Conn) resolve(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if result, ok := c.pending[string(m.ID)]; ok {
		delete(c.pending, string(m.ID))
		result <- m // buffered
	}
}

// send writes a message. A peer that doesn't read blocks it, and with it everything that is written after it. This is meant: a gateway merges what
// a slow reader hasn't read, so nothing is buffered here.
func (c *Conn) send(m *message) error {
	m.Version = "2.0"
	return c.writeLine(m)
}

// writeLine writes a message or a batch.
func (c *Conn) writeLine(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("jsonrpc: encode: %w", err)
	}
	c.write.Lock()
	defer c.write.Unlock()
	if _, err := c.o.Output.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("jsonrpc: write: %w", err)
	}
	return nil
}

// Notify sends a notification.
func (c *Conn) Notify(method string, params any) error {
	b, err := marshal(params)
	if err != nil {
		return err
	}
	return c.send(&message{Method: method, Params: b})
}

// Call sends a request, waits for its response and decodes its result into result, unless that is nil. An error response is returned as an
// *Error. If ctx is done first, Call tells the peer that it has given up the request, and returns the context's cause.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	b, err := marshal(params)
	if err != nil {
		return err
	}
	response := make(chan message, 1)
	c.mu.Lock()
	c.calls++
	id := strconv.FormatInt(c.calls, 10)
	c.pending[id] = response
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()
	if err := c.send(&message{ID: json.RawMessage(id), Method: method, Params: b}); err != nil {
		return err
	}
	select {
	case m := <-response:
		if m.Error != nil {
			return m.Error
		}
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("jsonrpc: result of %s: %w", method, err)
		}
		return nil
	case <-ctx.Done():
		withdrawal := map[string]json.RawMessage{"requestId": json.RawMessage(id)}
		return errors.Join(context.Cause(ctx), c.Notify(c.o.CancelMethod, withdrawal))
	case <-c.ctx.Done():
		return ErrClosed
	}
}

// Decode reads the params of a request. Its error is an *Error with InvalidParams.
func Decode(params json.RawMessage, v any) error {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if err := json.Unmarshal(params, v); err != nil {
		return Errorf(InvalidParams, "invalid params: %v", err)
	}
	return nil
}
