package acp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/base/process"
)

const (
	// startLimit is how long a process may take until it greets: some fetch themselves first.
	startLimit = time.Minute
	// killAfter is how long a process that was told to end may take.
	killAfter = 5 * time.Second
	// defaultGrace is how long an agent may take to end a turn that was stopped.
	defaultGrace = 3 * time.Second
)

// ErrClosed says that the agent was closed.
var ErrClosed = errors.New("acp: the agent is closed")

// Config says what is run, and where.
type Config struct {
	Command []string // program and arguments
	Dir     string   // in which it works; empty is that of the gateway
	// Env names environment variables of this process that the program gets, beside those that every one gets.
	Env     []string
	Dialect dialect.Dialect
}

// Agent is one process that answers turns of all conversations. It is started by the first turn.
type Agent struct {
	cfg     Config
	program process.Program
	grace   time.Duration // defaultGrace but in tests

	life   context.Context
	cancel context.CancelFunc

	lock chan struct{} // holds one while nobody has what follows
	log  *slog.Logger
	peer *peer // nil: none runs
}

var (
	_ agent.Agent   = (*Agent)(nil)
	_ agent.Keeper  = (*Agent)(nil)
	_ agent.Checker = (*Agent)(nil)
)

// New returns the agent. It looks the program up and starts nothing.
func New(c Config) (*Agent, error) {
	if err := process.CheckEnv(c.Env); err != nil {
		return nil, err
	}
	path, err := process.Find(c.Command)
	if err != nil {
		return nil, err
	}
	// The protocol wants absolute paths.
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return nil, fmt.Errorf("dir: %w", err)
	}
	if st, err := os.Stat(c.Dir); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("dir: %s is no folder", c.Dir)
	}
	a := &Agent{
		cfg: c, grace: defaultGrace, lock: make(chan struct{}, 1), log: slog.New(slog.DiscardHandler),
		program: process.Program{Path: path, Command: c.Command, Dir: c.Dir, Env: process.Environment(nil, c.Env...), KillAfter: killAfter},
	}
	a.life, a.cancel = context.WithCancel(context.Background())
	return a, nil
}

// Start implements [agent.Keeper]. The process itself comes with the first turn.
func (a *Agent) Start(log *slog.Logger) {
	a.lock <- struct{}{}
	defer func() { <-a.lock }()
	a.log = log
}

// Close implements [agent.Keeper].
func (a *Agent) Close() {
	a.cancel()
	a.lock <- struct{}{}
	defer func() { <-a.lock }()
	if a.peer != nil {
		a.peer.End()
		a.peer = nil
	}
}

// connect returns the process, which it starts if need be.
func (a *Agent) connect(ctx context.Context) (*peer, error) {
	select {
	case a.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-a.lock }()
	if a.life.Err() != nil {
		return nil, ErrClosed
	}
	if a.peer != nil && !a.peer.OutputEnded() {
		return a.peer, nil
	}
	if a.peer != nil {
		a.log.Warn("the agent's process has ended and is started again", "error", a.peer.Cause())
		a.peer.End()
		a.peer = nil
	}
	slow := &agent.Error{Code: codeNotStarted, Message: "the agent's process did not greet within " + startLimit.String(), Retryable: true}
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, slow)
	defer cancel()
	defer context.AfterFunc(a.life, cancel)()
	p, err := dial(ctx, a.program, a.log)
	if err != nil {
		return nil, err
	}
	a.peer = p
	return p, nil
}

// Check implements [agent.Checker]: the process starts, and greets.
func (a *Agent) Check(ctx context.Context) error {
	_, err := a.connect(ctx)
	return err
}

// Run has the process answer a turn.
func (a *Agent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	in, err := emitter.Inline(ctx, in)
	if err != nil {
		return err
	}
	p, err := a.connect(ctx)
	if err != nil {
		return err
	}
	session, isNew, err := a.openSession(ctx, p, in, emitter)
	if err != nil {
		return err
	}
	t := &turn{peer: p, session: session, emitter: emitter, dialect: a.cfg.Dialect, dec: a.cfg.Dialect.Decoder(), grace: a.grace}
	return t.run(ctx, promptParams{ID: session, Prompt: blocks(in, isNew, &p.can)})
}
