package plugin

import (
	"bufio"
	"bytes"
	"cmp"
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
	// farewell is how long the process may take to read a line, and to exit after its input was closed.
	farewell = time.Second
	// maxExcerpt is the number of bytes of an invalid line that the error quotes.
	maxExcerpt = 80
)

// link is one process of a plugin with the turns that it serves. One goroutine reads and dispatches its output.
type link struct {
	*process.Talk
	kind  string // kindChannel, or empty for an agent
	log   *slog.Logger
	ready chan struct{}           // closed when the plugin is ready
	turns process.Listeners[line] // running turns, by id

	// lines has the lines of a channel and is closed when its output ends. deafen closes unread when the receiver has stopped
	// reading; otherwise the reading goroutine would block on lines forever.
	lines  chan Line
	unread chan struct{}
	deafen func()

	mu           sync.Mutex
	hasGreeted   bool
	steers       bool
	capabilities Capabilities         // of a channel
	steerReplies map[string]chan bool // by message id: receives whether the plugin accepted the message
}

// dial starts the process and sends hello. The caller must call close, even if the process fails to become ready.
func dial(g process.Program, kind string, log *slog.Logger) (*link, error) {
	t, err := process.StartTalk(g, farewell, log)
	if err != nil {
		return nil, fmt.Errorf("the plugin's process can't be started: %w", err)
	}
	l := &link{
		Talk: t, kind: kind, log: log, ready: make(chan struct{}),
		lines: make(chan Line), unread: make(chan struct{}), steerReplies: map[string]chan bool{},
	}
	l.deafen = sync.OnceFunc(func() { close(l.unread) })
	l.Read(func() error {
		err := l.readOutput()
		l.SetCause(err) // before lines is closed, so that serve finds the reason
		close(l.lines)
		return err
	})
	l.tell(toPlugin{Type: lineHello, Protocol: protocolVersion, Kind: kind})
	return l, nil
}

// close ends the process and returns when the process and its group have ended.
func (l *link) close() {
	l.deafen()
	l.End()
}

// fail stops the process and records the reason.
func (l *link) fail(cause error) {
	l.SetCause(cause)
	l.Stop()
}

// send queues a line for the process. If the process doesn't read, send blocks until stop is closed and returns
// [process.ErrStopped].
func (l *link) send(stop <-chan struct{}, v any) error {
	b, err := encode(v)
	if err != nil {
		return fmt.Errorf("line to the plugin: %w", err)
	}
	return l.Queue(stop, b)
}

// tell queues a line that no caller waits for, such as cancel. If the process doesn't read it within the time of farewell, it
// is stopped, because it would miss the cancel and run the turn forever.
func (l *link) tell(v any) {
	stop := make(chan struct{})
	timer := time.AfterFunc(farewell, func() { close(stop) })
	defer timer.Stop()
	if err := l.send(stop, v); errors.Is(err, process.ErrStopped) {
		l.fail(&agent.Error{Code: codeStuck, Message: "the plugin does not read its input", Retryable: true})
	}
}

// readOutput reads and dispatches lines until the output ends or a line is invalid, and returns the reason. The memory of the
// line is accounted to the agents' common budget; if that is exhausted, reading ends.
func (l *link) readOutput() error {
	s := bufio.NewScanner(l.Stdout)
	s.Buffer(make([]byte, 0, 64<<10), dialect.MaxLine)
	var hold agent.Reservation
	defer hold.Release()
	// The scanner calls Split with all bytes that it holds of a line, so the memory is accounted here.
	s.Split(func(data []byte, _ bool) (int, []byte, error) {
		if err := hold.Resize(len(data)); err != nil {
			return 0, nil, err
		}
		return splitLine(data)
	})
	n := 0
	for s.Scan() {
		n++
		if b := bytes.TrimSpace(s.Bytes()); len(b) > 0 {
			if err := l.dispatch(n, b); err != nil {
				l.tell(toPlugin{Type: lineError, Line: n, Message: err.Error()})
				if agentErr, ok := errors.AsType[*agent.Error](err); ok {
					return agentErr
				}
				return &agent.Error{Code: codeStream, Message: err.Error()}
			}
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return &agent.Error{Code: codeStream, Message: fmt.Sprintf("line %d of the plugin's output has more than %d MiB", n+1, dialect.MaxLine>>20)}
	}
	if errors.Is(s.Err(), agent.ErrBusy) {
		return s.Err()
	}
	status, last, hasExited := l.Exit()
	if !hasExited {
		return &agent.Error{Code: codeExit, Message: "the plugin closed its output", Retryable: true}
	}
	return &agent.Error{Code: codeExit, Message: "the plugin's process ended" + status, Detail: last, Retryable: true}
}

// splitLine is a [bufio.SplitFunc] for lines with a line end. Unlike bufio.ScanLines it ignores an incomplete last line.
func splitLine(data []byte) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	return 0, nil, nil
}

// dispatch delivers line n. For a channel, and for a turn whose queue is full, it blocks until the line is
// received, which slows down the process.
//
// The order of the cases matters: ready is accepted at any time (handleReady rejects a second one), a channel's
// lines go to its serve function whatever their type is, and all other lines need a turn. An error ends the
// process, because it concerns no single turn.
func (l *link) dispatch(n int, b []byte) error {
	at := line{n: n}
	if err := json.Unmarshal(b, &at.head); err != nil {
		show := process.Clean(string(b[:min(len(b), maxExcerpt)]))
		return &agent.Error{Code: codeStream, Message: fmt.Sprintf("line %d of the plugin's output is not a JSON object of the protocol", n), Detail: strconv.Quote(show)}
	}
	switch {
	case at.head.Type == lineReady:
		return l.handleReady(n, &at.head)
	case at.head.Type == "":
		return fmt.Errorf("line %d of the plugin's output has no type", n)
	case l.kind == kindChannel:
		if !l.isReady() {
			return fmt.Errorf("line %d of the plugin's output was printed before ready", n)
		}
		select {
		case l.lines <- Line{N: n, Type: at.head.Type, JSON: bytes.Clone(b)}:
		case <-l.unread:
		}
		return nil
	case at.head.Type == lineSteered:
		l.mu.Lock()
		reply := l.steerReplies[at.head.Message]
		delete(l.steerReplies, at.head.Message)
		l.mu.Unlock()
		if reply != nil {
			reply <- at.head.IsTaken
		}
		return nil
	case at.head.of() == "":
		return fmt.Errorf("line %d of the plugin's output, of type %s, has no turn", n, at.head.Type)
	}
	if !l.isReady() {
		return fmt.Errorf("line %d of the plugin's output was printed before ready", n)
	}
	t := l.turns.Of(at.head.of())
	if t == nil {
		l.log.Debug("line for a turn that isn't running was dropped", "turn", at.head.of(), "line", n)
		return nil
	}
	at.data = bytes.Clone(b) // the scanner reuses its buffer
	t.Deliver(at)
	return nil
}

// handleReady handles the line "ready", which must be the first and only one of its type.
func (l *link) handleReady(n int, head *fromPlugin) error {
	if head.Protocol != protocolVersion {
		return fmt.Errorf("line %d of the plugin's output: it speaks version %d of the protocol, but this gateway speaks version %d", n, head.Protocol, protocolVersion)
	}
	if is := cmp.Or(head.Kind, kindAgent); is != cmp.Or(l.kind, kindAgent) {
		return fmt.Errorf("line %d of the plugin's output: it is of kind %s, but was started as %s", n, is, cmp.Or(l.kind, kindAgent))
	}
	var capabilities Capabilities
	if l.kind == kindChannel && head.Capabilities != nil {
		if err := json.Unmarshal(head.Capabilities, &capabilities); err != nil {
			return fmt.Errorf("line %d of the plugin's output: capabilities: %w", n, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hasGreeted {
		return fmt.Errorf("line %d of the plugin's output: ready was printed twice", n)
	}
	l.hasGreeted, l.steers, l.capabilities = true, head.Steer, capabilities
	close(l.ready)
	return nil
}

// isReady reports whether the plugin has printed ready. It may print nothing else before.
func (l *link) isReady() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hasGreeted
}

// expectReply registers a message that is sent into a running turn. The returned channel receives whether the plugin has
// accepted it. It returns false if the plugin doesn't accept messages during a turn, or if a message with this id already waits
// for its reply.
func (l *link) expectReply(message string) (reply chan bool, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.steers || l.steerReplies[message] != nil {
		return nil, false
	}
	reply = make(chan bool, 1)
	l.steerReplies[message] = reply
	return reply, true
}

// forget stops waiting for the reply to a message. A later reply is ignored.
func (l *link) forget(message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.steerReplies, message)
}
