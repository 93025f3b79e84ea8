// The process of an ACP agent: JSON-RPC over its standard input and output.

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
	// farewell is how long the process may take to exit after its input was closed, and to accept a message that must not be delayed,
	// such as session/cancel.
	farewell = 2 * time.Second
	// maxExcerpt is the number of bytes of an invalid line that the error quotes.
	maxExcerpt = 80
)

// peer is one process with the requests and sessions that are in progress on its pipes. One goroutine reads its output and
// dispatches each line to the listener of a request or of a session; everything else may be called concurrently.
type peer struct {
	*process.Talk
	log   *slog.Logger
	can   abilities               // the result of initialize; set before the peer is shared
	turns process.Listeners[line] // running turns, by session id

	mu           sync.Mutex
	calls        int                                // number of requests so far, which is the id of the last one
	replies      map[string]*process.Listener[line] // by request id
	openSessions map[string]bool                    // ids of sessions that this process has opened
}

// line is one message of the agent. raw is the line as received, for the decoder and the capture.
type line struct {
	message
	raw []byte
}

// dial starts the process and waits for its answer to initialize. ctx limits that wait.
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

// greet sends initialize, which must be the first request. It declares that Leat has no file system and no terminal, so that a
// conforming agent uses its own.
func (c *peer) greet(ctx context.Context) error {
	hello := initializeParams{
		Protocol: version,
		Can:      map[string]any{"fs": map[string]bool{"readTextFile": false, "writeTextFile": false}, "terminal": false},
		Info:     map[string]any{"name": "leat", "title": "Leat", "version": "0"},
	}
	if err := c.call(ctx, "initialize", hello, &c.can); err != nil {
		return c.requestError("the agent refused to initialize", err)
	}
	if c.can.Protocol != version {
		return &agent.Error{Code: codeNotStarted, Message: fmt.Sprintf("the agent speaks version %d of the protocol, but Leat speaks version %d", c.can.Protocol, version)}
	}
	return nil
}

// requestError returns the error that a turn ends with if a request failed: the agent's own error under the given summary, or
// the reason why the process ended. Other errors, such as a cancelled context, are returned unchanged.
func (c *peer) requestError(summary string, err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.agentError(summary)
	}
	if errors.Is(err, process.ErrEnded) {
		return c.Cause()
	}
	return err
}

// send queues a message for the process. If the process doesn't read, send blocks until ctx is done and returns
// the cause. After the process has ended it returns [process.ErrEnded].
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

// request sends a request and returns its id. The response is delivered to r unless [peer.drop] is called
// first. A turn passes the listener of its session, so that the response arrives in order after the session's
// updates: the agent's answer to a prompt means that all updates of the turn have been sent, and the turn must
// have seen them.
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

// drop stops waiting for the response to a request. A later response is ignored.
func (c *peer) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.replies, id)
}

// call sends a request, waits for the response and decodes its result into v. An error response is returned as a *failure.
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
			return &agent.Error{Code: codeStream, Message: fmt.Sprintf("the agent's response to %s is invalid: %v", method, err)}
		}
		return nil
	case <-c.Done():
		return process.ErrEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// readOutput reads and dispatches lines until the output ends or violates the protocol, and returns the reason. It stops the
// process if it can't continue: after a line that is too long or not JSON-RPC, the position in the stream is not reliable. The
// memory of the line is accounted to the agents' common budget; if that is exhausted, the process is stopped as well.
func (c *peer) readOutput() error {
	r := bufio.NewReaderSize(c.Stdout, 64<<10)
	var hold agent.Reservation
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
			break // an incomplete last line is ignored
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
		return &agent.Error{Code: codeExit, Message: "the agent closed its output", Retryable: true}
	}
	return &agent.Error{Code: codeExit, Message: "the agent's process ended" + status, Detail: last, Retryable: true}
}

// readLine reads a line including its line end. It returns [bufio.ErrTooLong] for a line above [dialect.MaxLine], and io.EOF
// for a last line without a line end.
func readLine(r *bufio.Reader, hold *agent.Reservation) ([]byte, error) {
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

// dispatch delivers one line: a response to the listener of its request, and an update or permission request to
// the turn of its session. It blocks while that listener's queue is full. Updates without a running turn are
// dropped. Requests that Leat doesn't support, and permission requests without a running turn, are answered
// here.
//
// A response whose request is unknown or was dropped is ignored. An error means that the output violates the
// protocol, or that the process doesn't read the answer to its request; the caller then stops the process.
func (c *peer) dispatch(b []byte) error {
	l := line{raw: b}
	if err := json.Unmarshal(b, &l.message); err != nil || b[0] != '{' {
		return &agent.Error{Code: codeStream, Message: "is not a JSON-RPC message", Detail: strconv.Quote(process.Clean(string(b[:min(len(b), maxExcerpt)])))}
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
	_ = json.Unmarshal(l.Params, &of) // a message without a session belongs to no turn
	if t := c.turns.Of(of.Session); t != nil && (l.ID == nil || l.Method == "session/request_permission") && t.Deliver(l) {
		return nil
	}
	if l.ID == nil {
		return nil
	}
	answer := toAgent{ID: l.ID, Error: &failure{Code: noMethod, Message: "Leat does not support " + l.Method}}
	if l.Method == "session/request_permission" {
		answer = toAgent{ID: l.ID, Result: permissionResult{outcome{Outcome: "cancelled"}}} // no turn can ask its readers
	}
	// This goroutine reads the process's output. If the process waits for its output to be read before it reads its input, an
	// unlimited send would block both forever.
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if err := c.send(ctx, answer); err != nil && !errors.Is(err, process.ErrEnded) {
		return errors.New("is a request, but the agent doesn't read the response")
	}
	return nil
}

// knows reports whether the session is open in this process, so that it needs no session/load or session/resume.
func (c *peer) knows(session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.openSessions[session]
}

// learn records whether a session is open in this process.
func (c *peer) learn(session string, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.openSessions[session] = is
}
