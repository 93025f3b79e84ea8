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
	shown = 80
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

	mu     sync.Mutex
	isUp   bool
	steers bool
	asked  map[string]chan bool // by message: whether it is taken
}

// dial starts the process. Whoever does calls close once it is done.
func dial(g process.Program, kind string, log *slog.Logger) (*link, error) {
	t, err := process.StartTalk(g, farewell, log)
	if err != nil {
		return nil, fmt.Errorf("the plugin's process can't be started: %w", err)
	}
	l := &link{
		Talk: t, kind: kind, log: log, ready: make(chan struct{}),
		lines: make(chan Line), unread: make(chan struct{}), asked: map[string]chan bool{},
	}
	l.deafen = sync.OnceFunc(func() { close(l.unread) })
	l.Read(func() error {
		err := l.read()
		l.Blame(err) // before its lines end
		close(l.lines)
		return err
	})
	l.tell(toPlugin{Type: lineHello, Protocol: Protocol, Kind: kind})
	return l, nil
}

// close ends the process and returns when it and its group are gone.
func (l *link) close() {
	l.deafen()
	l.End()
}

// fail stops the process for a reason.
func (l *link) fail(why error) {
	l.Blame(why)
	l.Stop()
}

// send queues a line for the process. It waits while the process does not read, until stop is closed.
func (l *link) send(stop <-chan struct{}, v any) error {
	b, err := encode(v)
	if err != nil {
		return fmt.Errorf("line to the plugin: %w", err)
	}
	return l.Hand(stop, b)
}

// tell queues a line that matters to the process alone. One that does not read is stopped.
func (l *link) tell(v any) {
	stop := make(chan struct{})
	late := time.AfterFunc(farewell, func() { close(stop) })
	defer late.Stop()
	if err := l.send(stop, v); errors.Is(err, process.ErrStopped) {
		l.fail(&agent.Error{Code: codeStuck, Message: "the plugin does not read its input", Retryable: true})
	}
}

// read hands on what the process says, until it ends or says what can't be read. It returns why there is no more.
func (l *link) read() error {
	s := bufio.NewScanner(l.Stdout)
	s.Buffer(make([]byte, 0, 64<<10), dialect.MaxLine)
	var hold agent.Hold
	defer hold.Release()
	s.Split(func(data []byte, _ bool) (int, []byte, error) {
		if err := hold.Resize(len(data)); err != nil {
			return 0, nil, err
		}
		return whole(data)
	})
	n := 0
	for s.Scan() {
		n++
		if b := bytes.TrimSpace(s.Bytes()); len(b) > 0 {
			if err := l.take(n, b); err != nil {
				l.tell(toPlugin{Type: lineError, Line: n, Message: err.Error()})
				if known := (*agent.Error)(nil); errors.As(err, &known) {
					return known
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
	how, last, ended := l.Exit()
	if !ended {
		return &agent.Error{Code: codeExit, Message: "the plugin has closed its output", Retryable: true}
	}
	return &agent.Error{Code: codeExit, Message: "the plugin's process ended" + how, Detail: last, Retryable: true}
}

// whole splits off lines that have an end. What was cut is no line.
func whole(data []byte) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	return 0, nil, nil
}

// take hands one line on.
func (l *link) take(n int, b []byte) error {
	at := line{n: n}
	if err := json.Unmarshal(b, &at.head); err != nil {
		show := process.Clean(string(b[:min(len(b), shown)]))
		return &agent.Error{Code: codeStream, Message: fmt.Sprintf("line %d of the plugin's output is no JSON object of the protocol", n), Detail: strconv.Quote(show)}
	}
	switch {
	case at.head.Type == lineReady:
		return l.greeted(n, &at.head)
	case at.head.Type == "":
		return fmt.Errorf("line %d of the plugin's output has no type", n)
	case l.kind == kindChannel:
		if !l.up() {
			return fmt.Errorf("line %d of the plugin's output comes before it is ready", n)
		}
		select {
		case l.lines <- Line{N: n, Type: at.head.Type, JSON: bytes.Clone(b)}:
		case <-l.unread:
		}
		return nil
	case at.head.Type == lineSteered:
		l.mu.Lock()
		asked := l.asked[at.head.Message]
		delete(l.asked, at.head.Message)
		l.mu.Unlock()
		if asked != nil {
			asked <- at.head.Taken
		}
		return nil
	case at.head.of() == "":
		return fmt.Errorf("line %d of the plugin's output, of type %s, names no turn", n, at.head.Type)
	}
	if !l.up() {
		return fmt.Errorf("line %d of the plugin's output comes before it is ready", n)
	}
	t := l.turns.Of(at.head.of())
	if t == nil {
		l.log.Debug("plugin spoke for a turn that does not run", "turn", at.head.of(), "line", n)
		return nil
	}
	at.data = bytes.Clone(b)
	t.Tell(at)
	return nil
}

// greeted takes the plugin's first line.
func (l *link) greeted(n int, head *fromPlugin) error {
	if head.Protocol != Protocol {
		return fmt.Errorf("line %d of the plugin's output: it speaks version %d of the protocol, this gateway version %d", n, head.Protocol, Protocol)
	}
	if is := cmp.Or(head.Kind, kindAgent); is != cmp.Or(l.kind, kindAgent) {
		return fmt.Errorf("line %d of the plugin's output: it is of kind %s, and was started as %s", n, is, cmp.Or(l.kind, kindAgent))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isUp {
		return fmt.Errorf("line %d of the plugin's output: it is ready for the second time", n)
	}
	l.isUp, l.steers = true, head.Steer
	close(l.ready)
	return nil
}

func (l *link) up() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isUp
}

// ask makes a place for the word on whether a message is taken. It reports false where the plugin takes none.
func (l *link) ask(message string) (taken chan bool, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.steers || l.asked[message] != nil {
		return nil, false
	}
	taken = make(chan bool, 1)
	l.asked[message] = taken
	return taken, true
}

func (l *link) forget(message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.asked, message)
}
