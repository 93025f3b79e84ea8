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

// Channel is a plugin that carries conversations to another platform, such as a messenger, and brings its users' messages.
// Start runs the process and restarts it when it ends; Close ends it.
type Channel struct{ *supervisor }

// Line is a line that a channel printed.
type Line struct {
	N    int    // line number in the process's output, from 1
	Type string // the field "type"
	JSON []byte // the whole line, a JSON object
}

// Capabilities says what a channel can do besides sending text, as it declares in its ready line.
type Capabilities struct {
	Reactions  bool `json:"reactions"`  // it can mark messages with reactions
	FileUpload bool `json:"fileUpload"` // it can send files
	// ReactiveOnly means that it can only answer a recent message and can't begin a conversation.
	ReactiveOnly bool `json:"reactiveOnly"`
	// Idempotent means that a repeated delivery doesn't appear twice.
	Idempotent bool `json:"idempotent"`
}

// Conn is the connection to one running process of a channel. It is valid until the serve function that got it returns.
type Conn struct{ l *link }

// NewChannel checks the configuration and looks up the program; [Channel.Start] starts it. serve is called with each process
// that has become ready. It must return when its context is done or Lines is closed; if it returns an error, the process is
// stopped and restarted. c.Dialect is not used.
func NewChannel(c Config, serve func(ctx context.Context, c *Conn) error) (*Channel, error) {
	g, err := program(c)
	if err != nil {
		return nil, err
	}
	s := newSupervisor(g)
	s.kind, s.serve = kindChannel, serve
	return &Channel{s}, nil
}

// program returns what to run, with an environment of only the allowed variables, so that a plugin doesn't get
// the gateway's secrets.
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

// Lines returns the channel of the process's lines, which is closed when its output ends. It isn't buffered: a slow receiver
// blocks the process.
func (c *Conn) Lines() <-chan Line { return c.l.lines }

// Capabilities returns what the process has declared.
func (c *Conn) Capabilities() Capabilities {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return c.l.capabilities
}

// stuck limits how long a channel may not read its input. It is long enough for a plugin that waits for its platform to come
// back.
const stuck = time.Minute

// Send encodes v as JSON and queues it as a line for the process. It blocks while the process doesn't read, at most for the
// time of stuck; serve should return the error, so that the process is restarted.
func (c *Conn) Send(ctx context.Context, v any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stuck, &agent.Error{Code: codeStuck, Message: "the plugin does not read its input", Retryable: true})
	defer cancel()
	err := c.l.send(ctx.Done(), v)
	if errors.Is(err, process.ErrStopped) {
		return context.Cause(ctx)
	}
	return err
}

// Refuse reports the invalid line n to the process and returns an error that names the line, for serve to return.
func (c *Conn) Refuse(n int, cause error) error {
	err := fmt.Errorf("line %d of the plugin's output: %w", n, cause)
	c.l.tell(toPlugin{Type: lineError, Line: n, Message: err.Error()})
	return &agent.Error{Code: codeStream, Message: err.Error()}
}

// State reports whether a process is ready. If not, cause is the reason why the last one ended, or nil if none has ended yet.
func (s *supervisor) State() (ready bool, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current != nil, s.last
}

// Check implements [agent.Checker]. If the plugin was started, it waits until a process is ready. Otherwise it starts one,
// waits until that is ready and ends it.
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
