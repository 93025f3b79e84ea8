package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/base/process"
)

const (
	// defaultKillAfter is how long a process that was told to end may take.
	defaultKillAfter = 5 * time.Second
	// defaultGoodbye is how long one whose stream has ended may take before it is told.
	defaultGoodbye = 2 * time.Second
)

// The codes of the errors that turns of this agent end with.
const (
	codeNotStarted = "agent_not_started"
	codeExit       = "agent_exit"
	codeCutShort   = "cut_short"
	codeStream     = "invalid_stream"
	codeTooLarge   = "too_large"
)

// Config says what is run.
type Config struct {
	Command []string // program and arguments
	Dialect dialect.Dialect
	// Env names environment variables of this process that the program gets, beside those that every one gets.
	Env []string
}

// Agent starts a process for each turn. Several may run at the same time.
type Agent struct {
	cfg  Config
	path string
	// goodbye and killAfter are the defaults but in tests.
	goodbye, killAfter time.Duration
}

var _ agent.Agent = (*Agent)(nil)

// New returns the agent. It looks the program up and starts nothing.
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

// Run starts the process, and returns when it has ended.
func (a *Agent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	in.Ingest = nil // its output is its stream
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
		// It has said all, and has a moment for what else it has to do.
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

// endEarly ends the turn for what is known while the process still runs, so that nobody has to wait until it is gone. It
// returns what is left to be told.
func (a *Agent) endEarly(s *agent.Stream, err error) error {
	switch {
	case err == nil, errors.Is(err, agent.ErrTurnOver), errors.Is(err, agent.ErrBroken):
		return err
	case errors.Is(err, dialect.ErrCutShort):
		return s.Fail(&agent.Error{
			Code: codeCutShort, Message: "the agent's process closed its output without the end that " + a.cfg.Dialect.Name + " has", Retryable: true,
		})
	}
	if failure := (*agent.Error)(nil); errors.As(err, &failure) {
		return s.Fail(failure)
	}
	code := codeStream
	if errors.Is(err, agent.ErrTooLarge) {
		code = codeTooLarge
	}
	return s.Fail(&agent.Error{Code: code, Message: err.Error()})
}

// failure says why the turn fails: what ended the stream, how the process ended, and for operators what it printed last.
func (a *Agent) failure(err, exit error, last string) error {
	switch {
	case !errors.Is(err, dialect.ErrCutShort) && !errors.Is(err, agent.ErrBroken):
		return err // what it said can't be decoded; that it was ended for it is no news
	case exit != nil:
		return &agent.Error{Code: codeExit, Message: "the agent's process ended with " + exit.Error(), Detail: last, Retryable: true}
	}
	return &agent.Error{
		Code: codeCutShort, Message: "the agent's process ended without the end that " + a.cfg.Dialect.Name + " has", Detail: last, Retryable: true,
	}
}
