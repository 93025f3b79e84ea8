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
	// farewell is how long a process may take to read what it is told last.
	farewell = time.Second
	// shown is how many bytes of a line that can't be read are shown.
	maxExcerpt = 80
)

// link is one process of a plugin, with what runs over its pipes.
type link struct {
	*process.Talk
	kind  string // empty is an agent
	log   *slog.Logger
	ready chan struct{} // closed when it is
	turns process.Listeners[line]

	// lines is what a channel says; closed when it says no more. Nobody reads it any more once unread is closed, by deafen.
	lines  chan Line
	unread chan struct{}
	deafen func()

	mu           sync.Mutex
	hasGreeted   bool
	steers       bool
	steerReplies map[string]chan bool // by message: whether it is taken
}

// dial starts the process. Whoever does calls close once it is done.
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
		l.SetCause(err) // before its lines end
		close(l.lines)
		return err
	})
	l.tell(toPlugin{Type: lineHello, Protocol: protocolVersion, Kind: kind})
	return l, nil
}

// close ends the process and returns when it and its group are gone.
func (l *link) close() {
	l.deafen()
	l.End()
}

// fail stops the process for a reason.
func (l *link) fail(cause error) {
	l.SetCause(cause)
	l.Stop()
}

// send queues a line for the process. It waits while the process does not read, until stop is closed.
func (l *link) send(stop <-chan struct{}, v any) error {
	b, err := encode(v)
	if err != nil {
		return fmt.Errorf("line to the plugin: %w", err)
	}
	return l.Queue(stop, b)
}

// tell queues a line that matters to the process alone. One that does not read is stopped.
func (l *link) tell(v any) {
	stop := make(chan struct{})
	timer := time.AfterFunc(farewell, func() { close(stop) })
	defer timer.Stop()
	if err := l.send(stop, v); errors.Is(err, process.ErrStopped) {
		l.fail(&agent.Error{Code: codeStuck, Message: "the plugin does not read its input", Retryable: true})
	}
}

// read hands on what the process says, until it ends or says what can't be read. It returns why there is no more.
func (l *link) readOutput() error {
	s := bufio.NewScanner(l.Stdout)
	s.Buffer(make([]byte, 0, 64<<10), dialect.MaxLine)
	var hold agent.Hold
	defer hold.Release()
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
				if agentErr := (*agent.Error)(nil); errors.As(err, &agentErr) {
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
		return &agent.Error{Code: codeExit, Message: "the plugin has closed its output", Retryable: true}
	}
	return &agent.Error{Code: codeExit, Message: "the plugin's process ended" + status, Detail: last, Retryable: true}
}

// whole splits off lines that have an end. What was cut is no line.
func splitLine(data []byte) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	return 0, nil, nil
}

// take hands one line on.
func (l *link) dispatch(n int, b []byte) error {
	at := line{n: n}
	if err := json.Unmarshal(b, &at.head); err != nil {
		show := process.Clean(string(b[:min(len(b), maxExcerpt)]))
		return &agent.Error{Code: codeStream, Message: fmt.Sprintf("line %d of the plugin's output is no JSON object of the protocol", n), Detail: strconv.Quote(show)}
	}
	switch {
	case at.head.Type == lineReady:
		return l.handleReady(n, &at.head)
	case at.head.Type == "":
		return fmt.Errorf("line %d of the plugin's output has no type", n)
	case l.kind == kindChannel:
		if !l.isReady() {
			return fmt.Errorf("line %d of the plugin's output comes before it is ready", n)
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
		return fmt.Errorf("line %d of the plugin's output, of type %s, names no turn", n, at.head.Type)
	}
	if !l.isReady() {
		return fmt.Errorf("line %d of the plugin's output comes before it is ready", n)
	}
	t := l.turns.Of(at.head.of())
	if t == nil {
		l.log.Debug("plugin spoke for a turn that does not run", "turn", at.head.of(), "line", n)
		return nil
	}
	at.data = bytes.Clone(b)
	t.Deliver(at)
	return nil
}

// greeted takes the plugin's first line.
func (l *link) handleReady(n int, head *fromPlugin) error {
	if head.Protocol != protocolVersion {
		return fmt.Errorf("line %d of the plugin's output: it speaks version %d of the protocol, this gateway version %d", n, head.Protocol, protocolVersion)
	}
	if is := cmp.Or(head.Kind, kindAgent); is != cmp.Or(l.kind, kindAgent) {
		return fmt.Errorf("line %d of the plugin's output: it is of kind %s, and was started as %s", n, is, cmp.Or(l.kind, kindAgent))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hasGreeted {
		return fmt.Errorf("line %d of the plugin's output: it is ready for the second time", n)
	}
	l.hasGreeted, l.steers = true, head.Steer
	close(l.ready)
	return nil
}

func (l *link) isReady() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hasGreeted
}

// ask makes a place for the word on whether a message is taken. It reports false where the plugin takes none.
func (l *link) ask(message string) (reply chan bool, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.steers || l.steerReplies[message] != nil {
		return nil, false
	}
	reply = make(chan bool, 1)
	l.steerReplies[message] = reply
	return reply, true
}

func (l *link) forget(message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.steerReplies, message)
}
