package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/base/process"
)

const (
	// defaultKillAfter is the time from SIGTERM to SIGKILL. A program may need that long to save its work.
	defaultKillAfter = 5 * time.Second
	// defaultGoodbye is how long a process may run after the end of its stream before it gets SIGTERM. The turn has
	// ended by then, but its process still counts as running.
	defaultGoodbye = 2 * time.Second
)

// Codes of the errors with which a turn fails.
const (
	// codeNotStarted means that the system couldn't start the program, for example because it was removed after New
	// found it.
	codeNotStarted = "agent_not_started"
	// codeExit means that the process ended with a status other than 0, or by a signal, before the end of the turn.
	codeExit = "agent_exit"
	// codeCutShort means that the process ended with status 0, or closed its output, before the end of the turn.
	codeCutShort = "cut_short"
	// codeStream means that the output isn't valid in the dialect. The process is stopped.
	codeStream = "invalid_stream"
	// codeTooLarge means that the output is larger than [agent.MaxStream]. The process is stopped.
	codeTooLarge = "too_large"
)

// Config is the configuration of an [Agent].
type Config struct {
	// Command is the program and its arguments. No shell interprets them. A name without a slash is looked up in
	// PATH.
	Command []string
	Dialect dialect.Dialect
	// Env has the names of further environment variables of the gateway that the program gets, besides
	// [process.Always]. Names that begin with LEAT_ or ELIZA_ are refused, because these are the gateway's settings
	// and secrets.
	Env []string
}

// Agent starts a process for each turn. Any number of turns may run at the same time.
type Agent struct {
	cfg  Config
	path string
	// goodbye and killAfter are the default limits, except in tests.
	goodbye, killAfter time.Duration
}

var _ agent.Agent = (*Agent)(nil)

// New returns an agent. It looks up the program, but doesn't start it. So a wrong name is an error at the start of
// the gateway and not in the first turn.
func New(c Config) (*Agent, error) {
	if err := process.CheckEnv(c.Env); err != nil {
		return nil, err
	}
	path, err := process.Find(c.Command)
	if err != nil {
		return nil, err
	}
	return &Agent{c, path, defaultGoodbye, defaultKillAfter}, nil
}

// Run implements [agent.Agent]. It starts the process, emits its stream, and returns after the process has ended.
//
// Input and standard error have separate goroutines, because a process that prints before it has read its input, or
// that fills its standard error, would otherwise block forever. A process that still runs after its stream gets some
// time to end by itself. If the stream failed instead, the turn fails first and the process is stopped after that.
//
// A process that fails after a complete answer doesn't fail the turn, because the user already has the answer.
func (a *Agent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	in.Ingest = nil // the stream is the standard output, so nothing is pushed
	in, err := emitter.Inline(ctx, in)
	if err != nil {
		return err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("input: %w", err)
	}
	p, err := process.Start(process.Program{Path: a.path, Command: a.cfg.Command, Env: a.environment(in), KillAfter: a.killAfter})
	if err != nil {
		return &agent.Error{Code: codeNotStarted, Message: "the agent's process can't be started", Detail: err.Error(), Retryable: true}
	}
	aside := &process.Aside{Log: emitter.Log()}
	var tasks sync.WaitGroup
	emitter.CaptureSent(body)
	tasks.Go(func() { p.WriteInput(append(body, '\n')) })
	tasks.Go(func() { aside.ReadAll(p.Stderr) })

	s := agent.NewStream(emitter, a.cfg.Dialect)
	unwatch := context.AfterFunc(ctx, func() {
		if !s.HasEnded() {
			p.Stop()
		}
	})
	_, err = s.ReadFrom(p.Stdout)
	if err == nil || errors.Is(err, dialect.ErrCutShort) {
		// The stream is complete. The process may still clean up; its further output is discarded, so that it doesn't block.
		tasks.Go(func() { _, _ = io.Copy(io.Discard, p.Stdout) })
		p.Await(a.goodbye)
	}
	if !p.HasExited() {
		err = a.endEarly(s, err)
		p.Stop()
		<-p.ExitDone()
	}
	unwatch()
	p.Close(tasks.Wait)
	switch {
	case err == nil:
		if p.Err() != nil {
			emitter.Log().Debug("agent's process failed after its answer", "error", p.Err())
		}
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return a.failure(err, p.Err(), aside.Last())
}

// endEarly fails the turn while the process still runs, so that viewers don't wait for its end, which may take until SIGKILL. It returns
// the error that Run still has to report, or nil.
func (a *Agent) endEarly(s *agent.Stream, err error) error {
	switch {
	case err == nil, errors.Is(err, agent.ErrTurnOver), errors.Is(err, agent.ErrBroken):
		return err
	case errors.Is(err, dialect.ErrCutShort):
		return s.Fail(&agent.Error{
			Code: codeCutShort, Message: "the agent's process closed its output before the end of the turn that " + a.cfg.Dialect.Name + " requires", Retryable: true,
		})
	}
	if failure, ok := errors.AsType[*agent.Error](err); ok {
		return s.Fail(failure)
	}
	code := codeStream
	if errors.Is(err, agent.ErrTooLarge) {
		code = codeTooLarge
	}
	return s.Fail(&agent.Error{Code: code, Message: err.Error()})
}

// failure returns the error of the turn. err ended the stream, exit is the error of the process, and last is the last line of its
// standard error, which only operators see.
func (a *Agent) failure(err, exit error, last string) error {
	switch {
	case !errors.Is(err, dialect.ErrCutShort) && !errors.Is(err, agent.ErrBroken):
		return err // invalid output is the cause; the exit status only says that the process was stopped for it
	case exit != nil:
		return &agent.Error{Code: codeExit, Message: "the agent's process ended with " + exit.Error(), Detail: last, Retryable: true}
	}
	return &agent.Error{
		Code: codeCutShort, Message: "the agent's process ended before the end of the turn that " + a.cfg.Dialect.Name + " requires", Detail: last, Retryable: true,
	}
}

// defaultDialect is the default of the option dialect. It has an explicit end, so output that was cut off never looks complete.
const defaultDialect = "eliza-actions"

// Kind returns the kind exec. The registry has the dialects that its option can name.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "exec",
		Summary: "a program on this machine, started for each turn: JSON on its standard input, a stream on its standard output",
		Target:  "COMMAND",
		Options: []agent.Option{
			{Name: "dialect", Help: "the dialect of the program's output", Default: defaultDialect},
			{Name: "env", Help: "names of further environment variables for the program, separated by commas; it always gets " + strings.Join(process.Always, ", ")},
		},
		New: func(s agent.Spec) (agent.Agent, error) {
			d, err := dialects.Lookup(cmp.Or(s.Options["dialect"], defaultDialect))
			if err != nil {
				return nil, err
			}
			command, err := agent.Command(s.Target)
			if err != nil {
				return nil, err
			}
			return New(Config{Command: command, Dialect: d, Env: process.Names(s.Options["env"])})
		},
	}
}

// environment returns the environment of the program for one turn. The three ids are those of the input, so that
// simple scripts need no JSON parser. The configured variables are read from the gateway's environment at each start.
func (a *Agent) environment(in agent.Input) []string {
	variables := []string{"LEAT_CONVERSATION=" + in.Conversation, "LEAT_TURN=" + in.Turn, "LEAT_KEY=" + in.Key}
	return process.Environment(variables, a.cfg.Env...)
}
