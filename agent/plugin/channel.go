package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/base/process"
)

// Channel is a plugin that takes conversations to people elsewhere, and brings what they say. Its process is started by Start,
// started again when it ends, and ended by Close.
type Channel struct{ *supervisor }

// Line is one that a channel printed.
type Line struct {
	N    int // of its output, from 1
	Type string
	JSON []byte // the whole line, which is an object
}

// Conn is a running process of a channel.
type Conn struct{ l *link }

// NewChannel returns a channel. It looks the program up and starts nothing. serve is called for each process once that is
// ready; it returns when the context is done or the lines have ended. An error has the process stopped and started again.
// Of the configuration the dialect is not used.
func NewChannel(c Config, serve func(ctx context.Context, c *Conn) error) (*Channel, error) {
	g, err := program(c)
	if err != nil {
		return nil, err
	}
	s := newSupervisor(g)
	s.kind, s.serve = kindChannel, serve
	return &Channel{s}, nil
}

// program says what is run.
func program(c Config) (process.Program, error) {
	if err := process.CheckEnv(c.Env); err != nil {
		return process.Program{}, err
	}
	path, err := process.Find(c.Command)
	if err != nil {
		return process.Program{}, err
	}
	return process.Program{
		Path: path, Command: c.Command, Dir: c.Dir, Env: process.Environment(nil, c.Env...), KillAfter: killAfter,
	}, nil
}

// Lines are what the process says, until it ends. Whoever reads slowly has it wait.
func (c *Conn) Lines() <-chan Line { return c.l.lines }

// stuck is how long a channel may read nothing while there is something for it: longer than platforms are away for.
const stuck = time.Minute

// Send queues a line for the process, of what can be encoded as JSON. It waits while the process does not read, but not for
// ever: the error is then one to return from serve.
func (c *Conn) Send(ctx context.Context, v any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stuck, &agent.Error{Code: codeStuck, Message: "the plugin does not read its input", Retryable: true})
	defer cancel()
	err := c.l.send(ctx.Done(), v)
	if errors.Is(err, process.ErrStopped) {
		return context.Cause(ctx)
	}
	return err
}

// Refuse tells the process that a line of it is wrong, and returns the error that names the line.
func (c *Conn) Refuse(n int, cause error) error {
	err := fmt.Errorf("line %d of the plugin's output: %w", n, cause)
	c.l.tell(toPlugin{Type: lineError, Line: n, Message: err.Error()})
	return &agent.Error{Code: codeStream, Message: err.Error()}
}

// State says whether a process is ready, and else why the last one ended, if there was one.
func (s *supervisor) State() (ready bool, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current != nil, s.last
}

// Check starts a process, waits until it is ready, and ends it. Where one runs already it waits for that one.
func (s *supervisor) Check(ctx context.Context) error {
	if s.hasStarted() {
		_, err := s.await(ctx)
		return err
	}
	l, err := s.launch(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	l.close()
	return nil
}
