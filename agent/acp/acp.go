package acp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/base/process"
)

const (
	// startLimit limits the time from the start of the process to its answer to initialize. Programs run through npx or uvx download
	// themselves first, which can take most of it.
	startLimit = time.Minute
	// killAfter is the time between SIGTERM and SIGKILL.
	killAfter = 5 * time.Second
	// defaultGrace is how long an agent may take to answer the prompt of a turn after session/cancel.
	defaultGrace = 3 * time.Second
)

// errClosed is returned by turns and checks after Close.
var errClosed = errors.New("acp: the agent is closed")

// Config describes the program to run.
type Config struct {
	Command []string // program and arguments
	Dir     string   // working directory of the process and of its sessions; if empty, the gateway's
	// Env names the gateway's environment variables that the program gets in addition to [process.Always].
	Env     []string
	Dialect dialect.Dialect // decodes the lines of a session
}

// Agent is one process that answers the turns of all conversations. All methods are safe for concurrent use.
type Agent struct {
	cfg     Config
	program process.Program
	grace   time.Duration // defaultGrace, except in tests

	life   context.Context // done after Close
	cancel context.CancelFunc

	lock chan struct{} // a mutex for the fields below: a send locks it, a receive unlocks it
	log  *slog.Logger
	peer *peer // nil if no process runs
}

var (
	_ agent.Agent   = (*Agent)(nil)
	_ agent.Keeper  = (*Agent)(nil)
	_ agent.Checker = (*Agent)(nil)
)

// New checks the configuration and looks up the program. It doesn't start the process.
func New(c Config) (*Agent, error) {
	if err := process.CheckEnv(c.Env); err != nil {
		return nil, err
	}
	path, err := process.Find(c.Command)
	if err != nil {
		return nil, err
	}
	// The protocol requires an absolute path as the directory of a session.
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return nil, fmt.Errorf("dir: %w", err)
	}
	if st, err := os.Stat(c.Dir); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("dir: %s is not a folder", c.Dir)
	}
	a := &Agent{
		cfg: c, grace: defaultGrace, lock: make(chan struct{}, 1), log: slog.New(slog.DiscardHandler),
		program: process.Program{Path: path, Command: c.Command, Dir: c.Dir, Env: process.Environment(nil, c.Env...), KillAfter: killAfter},
	}
	a.life, a.cancel = context.WithCancel(context.Background())
	return a, nil
}

// Start implements [agent.Keeper]. It only sets the logger; the first turn or check starts the process.
func (a *Agent) Start(log *slog.Logger) {
	a.lock <- struct{}{}
	defer func() { <-a.lock }()
	a.log = log
}

// Close implements [agent.Keeper]. It ends the process and interrupts a start that is in progress. Running turns fail with the
// reason why the process ended.
func (a *Agent) Close() {
	a.cancel()
	a.lock <- struct{}{}
	defer func() { <-a.lock }()
	if a.peer != nil {
		a.peer.End()
		a.peer = nil
	}
}

// connect returns the running process, or starts one and waits until it has answered initialize. Concurrent
// turns wait here for the same start. The lock is a channel rather than a mutex so that a waiting turn can be
// stopped.
//
// A process whose output has ended is replaced, even if it still runs: it can't answer any more. The start is
// limited by startLimit and ends early if the turn or the agent does.
func (a *Agent) connect(ctx context.Context) (*peer, error) {
	select {
	case a.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-a.lock }()
	if a.life.Err() != nil {
		return nil, errClosed
	}
	if a.peer != nil && !a.peer.OutputEnded() {
		return a.peer, nil
	}
	if a.peer != nil {
		a.log.Warn("agent process ended; starting it again", "error", a.peer.Cause())
		a.peer.End()
		a.peer = nil
	}
	slow := &agent.Error{Code: codeNotStarted, Message: "the agent's process did not answer initialize within " + startLimit.String(), Retryable: true}
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

// Check implements [agent.Checker]. It succeeds if the process runs or can be started and initialized; a started process is
// kept for the turns to come.
func (a *Agent) Check(ctx context.Context) error {
	_, err := a.connect(ctx)
	return err
}

// Run implements [agent.Agent]. Attachments are inlined first, because the agent can't fetch files from the
// gateway. If the process ends during the turn, the turn fails; it isn't repeated, because the agent may have
// changed files before.
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

// Kind returns the agent kind "acp". Its agents decode their streams with the dialect "acp" of dialects.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "acp",
		Summary: "a coding agent as a child process that speaks the Agent Client Protocol",
		Target:  "COMMAND",
		Options: []agent.Option{
			{Name: "dir", Help: "working directory of the agent", Default: "the gateway's"},
			{Name: "env", Help: "environment variables to pass on, separated by commas, in addition to " + strings.Join(process.Always, ", ")},
		},
		New: func(s agent.Spec) (agent.Agent, error) {
			d, err := dialects.Lookup("acp")
			if err != nil {
				return nil, err
			}
			command, err := agent.Command(s.Target)
			if err != nil {
				return nil, err
			}
			return New(Config{Command: command, Dir: s.Options["dir"], Env: process.Names(s.Options["env"]), Dialect: d})
		},
	}
}
