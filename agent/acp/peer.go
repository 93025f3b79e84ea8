package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/base/process"
)

const (
	// farewell is how long a process whose input has ended may take to end.
	farewell = 2 * time.Second
	// shown is how many bytes of a line that can't be read are shown.
	maxExcerpt = 80
)

// peer is one process, with what runs over its pipes.
type peer struct {
	*process.Talk
	log   *slog.Logger
	can   abilities
	turns process.Listeners[line] // by session

	mu           sync.Mutex
	calls        int
	replies      map[string]*process.Listener[line] // by id; a turn hears its own among the lines of its session, in order
	openSessions map[string]bool                    // sessions that this process knows
}

// line is one message, and how it came.
type line struct {
	message
	raw []byte
}

// dial starts the process and greets it.
func dial(ctx context.Context, g process.Program, log *slog.Logger) (*peer, error) {
	t, err := process.StartTalk(g, farewell, log)
	if err != nil {
		return nil, &agent.Error{Code: codeNotStarted, Message: "the agent's process can't be started", Detail: err.Error(), Retryable: true}
	}
	c := &peer{Talk: t, log: log, replies: map[string]*process.Listener[line]{}, openSessions: map[string]bool{}}
	c.Read(c.readOutput)
	if err := c.greet(ctx); err != nil {
		c.End()
		return nil, err
	}
	return c, nil
}

func (c *peer) greet(ctx context.Context) error {
	hello := initializeParams{
		Protocol: version,
		Can:      map[string]any{"fs": map[string]bool{"readTextFile": false, "writeTextFile": false}, "terminal": false},
		Info:     map[string]any{"name": "leat", "title": "Leat", "version": "0"},
	}
	if err := c.call(ctx, "initialize", hello, &c.can); err != nil {
		return c.requestError("the agent refuses to begin", err)
	}
	if c.can.Protocol != version {
		return &agent.Error{Code: codeNotStarted, Message: fmt.Sprintf("the agent speaks version %d of the protocol, Leat version %d", c.can.Protocol, version)}
	}
	return nil
}

// refused is what readers are told of a request that failed.
func (c *peer) requestError(summary string, err error) error {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.agentError(summary)
	case errors.Is(err, process.ErrEnded):
		return c.Cause()
	}
	return err
}

// send queues a line for the process. It waits while the process does not read.
func (c *peer) send(ctx context.Context, m toAgent) error {
	m.Version = "2.0"
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("line to the agent: %w", err)
	}
	if err = c.Queue(ctx.Done(), append(b, '\n')); errors.Is(err, process.ErrStopped) {
		return context.Cause(ctx)
	}
	return err
}

// request sends a request, and returns its id. Its answer goes to r until the id is dropped.
func (c *peer) request(ctx context.Context, method string, params any, r *process.Listener[line]) (id string, err error) {
	c.mu.Lock()
	c.calls++
	n := c.calls
	id = strconv.Itoa(n)
	c.replies[id] = r
	c.mu.Unlock()
	if err = c.send(ctx, toAgent{ID: n, Method: method, Params: params}); err != nil {
		c.drop(id)
	}
	return id, err
}

func (c *peer) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.replies, id)
}

// call makes a request and reads what it gives into v. What the agent refuses is a *failure.
func (c *peer) call(ctx context.Context, method string, params, v any) error {
	reply := process.NewListener[line]()
	id, err := c.request(ctx, method, params, reply)
	if err != nil {
		return err
	}
	defer c.drop(id)
	select {
	case l := <-reply.Lines():
		if l.Error != nil {
			return l.Error
		}
		if err := json.Unmarshal(l.Result, v); err != nil {
			return &agent.Error{Code: codeStream, Message: fmt.Sprintf("the agent's answer to %s can't be read: %v", method, err)}
		}
		return nil
	case <-c.Done():
		return process.ErrEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// read hands on what the process says, until it ends or says what can't be read. It returns why there is no more.
func (c *peer) readOutput() error {
	r := bufio.NewReaderSize(c.Stdout, 64<<10)
	var hold agent.Hold
	defer hold.Release()
	for n := 1; ; n++ {
		b, err := readLine(r, &hold)
		if errors.Is(err, bufio.ErrTooLong) {
			c.Stop()
			return &agent.Error{Code: codeTooLarge, Message: fmt.Sprintf("line %d of the agent's output has more than %d MiB", n, dialect.MaxLine>>20)}
		}
		if errors.Is(err, agent.ErrBusy) {
			c.Stop()
			return err
		}
		if err != nil {
			break // what was cut is no line
		}
		if b = bytes.TrimSpace(b); len(b) == 0 {
			continue
		}
		if err := c.dispatch(b); err != nil {
			c.Stop()
			reason := &agent.Error{Message: err.Error()}
			errors.As(err, &reason)
			return &agent.Error{Code: codeStream, Message: fmt.Sprintf("line %d of the agent's output %s", n, reason.Message), Detail: reason.Detail}
		}
	}
	status, last, hasExited := c.Exit()
	if !hasExited {
		c.Stop()
		return &agent.Error{Code: codeExit, Message: "the agent has closed its output", Retryable: true}
	}
	return &agent.Error{Code: codeExit, Message: "the agent's process ended" + status, Detail: last, Retryable: true}
}

// readLine reads a line with its end.
func readLine(r *bufio.Reader, hold *agent.Hold) ([]byte, error) {
	var b []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(b)+len(piece) > dialect.MaxLine {
			return nil, bufio.ErrTooLong
		}
		b = append(b, piece...)
		if err := hold.Resize(len(b)); err != nil {
			return nil, err
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return b, err
		}
	}
}

// take hands one line on: a reply to whoever asked, the rest to the turn of its session.
func (c *peer) dispatch(b []byte) error {
	l := line{raw: b}
	if err := json.Unmarshal(b, &l.message); err != nil || b[0] != '{' {
		return &agent.Error{Code: codeStream, Message: "is no message of JSON-RPC", Detail: strconv.Quote(process.Clean(string(b[:min(len(b), maxExcerpt)])))}
	}
	if l.Method == "" {
		c.mu.Lock()
		listener := c.replies[string(l.ID)]
		delete(c.replies, string(l.ID))
		c.mu.Unlock()
		if listener != nil {
			listener.Deliver(l)
		}
		return nil
	}
	if string(l.ID) == "null" {
		l.ID = nil
	}
	var of struct {
		Session string `json:"sessionId"`
	}
	_ = json.Unmarshal(l.Params, &of) // one without a session is nobody's
	if t := c.turns.Of(of.Session); t != nil && (l.ID == nil || l.Method == "session/request_permission") && t.Deliver(l) {
		return nil
	}
	if l.ID == nil {
		return nil
	}
	answer := toAgent{ID: l.ID, Error: &failure{Code: noMethod, Message: "Leat has no " + l.Method}}
	if l.Method == "session/request_permission" {
		answer = toAgent{ID: l.ID, Result: permissionResult{outcome{Outcome: "cancelled"}}} // nobody is there to be asked
	}
	// Not to wait for a process that does not read while it waits to be read: that would be for ever.
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if err := c.send(ctx, answer); err != nil && !errors.Is(err, process.ErrEnded) {
		return errors.New("has a request whose answer it does not read")
	}
	return nil
}

// knows and learn keep which sessions the process has open.
func (c *peer) knows(session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.openSessions[session]
}

func (c *peer) learn(session string, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is {
		c.openSessions[session] = true
	} else {
		delete(c.openSessions, session)
	}
}
