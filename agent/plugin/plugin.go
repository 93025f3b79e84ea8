package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/process"
)

const (
	// startLimit limits the time from the start of a process until it is ready, and the time that a turn waits for a ready process.
	startLimit = 10 * time.Second
	// killAfter is the time between SIGTERM and SIGKILL.
	killAfter = 5 * time.Second
)

// Config describes the program to run.
type Config struct {
	Command []string // program and arguments
	Dir     string   // working directory; if empty, the gateway's
	// Env names the gateway's environment variables that the program gets in addition to [process.Always].
	Env []string
	// Dialect must be the dialect "leat".
	Dialect dialect.Dialect
}

// Agent is a plugin that answers turns. Its process is started by Start or by the first turn, and ended by Close. All methods
// are safe for concurrent use.
type Agent struct {
	cfg Config
	*supervisor
}

var (
	_ agent.Agent    = (*Agent)(nil)
	_ agent.Steerer  = (*Agent)(nil)
	_ agent.Chooser  = (*Agent)(nil)
	_ agent.Answerer = (*Agent)(nil)
	_ agent.Checker  = (*Agent)(nil)
	_ agent.Keeper   = (*Agent)(nil)
)

// New checks the configuration and looks up the program. It doesn't start the process.
func New(c Config) (*Agent, error) {
	g, err := program(c)
	if err != nil {
		return nil, err
	}
	return &Agent{cfg: c, supervisor: newSupervisor(g)}, nil
}

// Run implements [agent.Agent]. The turn stays with the process that it started on.
//
// The first turn starts the process if Start wasn't called, as for an agent that is used without a gateway. The
// turn listens for lines before its own line is sent, so none is missed. If the process ends, lines that it
// printed before are handled first: the last of them may end the turn.
func (a *Agent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	in.Ingest = nil // a plugin answers on its output, so it needs no address to push to
	in, err := emitter.Inline(ctx, in)
	if err != nil {
		return err
	}
	a.Start(slog.New(slog.DiscardHandler))
	l, err := a.await(ctx)
	if err != nil {
		return err
	}
	t := l.turns.Begin(in.Turn)
	defer l.turns.End(in.Turn, t)
	l.Aside.Refill()
	ask, err := encode(turnLine{lineTurn, in})
	if err != nil {
		return fmt.Errorf("line to the plugin: %w", err)
	}
	emitter.CaptureSent(ask)
	if err := l.Queue(ctx.Done(), ask); err != nil {
		return a.sendError(ctx, l, err)
	}
	d := newDecoder(in.Turn, a.cfg.Dialect.Decoder())
	emitter.OnEnd(d.flush)
	size := 0
	for {
		var next line
		select {
		case next = <-t.Lines():
		case <-ctx.Done():
			l.tell(toPlugin{Type: lineCancel, Turn: in.Turn})
			return context.Cause(ctx)
		case <-l.Done():
			select {
			case next = <-t.Lines(): // printed before the process ended
			default:
				return l.Cause()
			}
		}
		emitter.CaptureReceived(next.data)
		if size += len(next.data); size > agent.MaxStream {
			l.tell(toPlugin{Type: lineCancel, Turn: in.Turn})
			return &agent.Error{Code: codeTooLarge, Message: agent.ErrTooLarge.Error()}
		}
		if isOver, err := a.handle(l, in.Turn, d, emitter, next); isOver {
			return err
		}
	}
}

// handle emits the events of a line and reports whether that ended the turn: because the plugin ended it, the
// line is invalid, or the turn was ended from outside. In the last two cases it notifies the plugin, which
// would otherwise continue to work on the turn.
//
// An invalid line is reported to the plugin with its number, so that its author can find the fault; the turn's
// error has the same text.
func (a *Agent) handle(l *link, id string, d *decoder, emitter *agent.Emitter, next line) (isOver bool, err error) {
	var bad error
	turnEnded := false
	decode := func() (ops []event.Event, _ json.RawMessage, _ error) {
		ops, bad = d.decode(next)
		turnEnded = d.hasEnded
		return ops, nil, nil
	}
	err = emitter.WithLargeFrame(len(next.data), func() error { return emitter.Decode(decode) })
	if bad == nil && next.head.Text != "" && (next.head.Type == lineText || next.head.Type == lineCallback) {
		emitter.ReportProgress() // also for text that the decoder still buffers
	}
	switch {
	case bad != nil:
		l.tell(toPlugin{Type: lineError, Turn: id, Line: next.n, Message: bad.Error()})
		return true, &agent.Error{Code: codeStream, Message: bad.Error()}
	case err == nil:
		return turnEnded, nil
	case errors.Is(err, agent.ErrTurnOver) && turnEnded:
		return true, nil
	}
	l.tell(toPlugin{Type: lineCancel, Turn: id})
	return true, err
}

// sendError returns the reason why a line could not be queued: the turn was stopped, or the process ended. The
// reason of the process is better for the reader than the error of the queue, which only says that the process
// is gone.
func (a *Agent) sendError(ctx context.Context, l *link, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, process.ErrEnded) {
		return l.Cause()
	}
	return err
}

// Steers implements [agent.Chooser]: a plugin announces in ready whether it accepts messages during a turn.
func (a *Agent) Steers(turn string) bool {
	l := a.linkFor(turn)
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.steers
}

// Steer implements [agent.Steerer]. It returns [agent.ErrNotSteered] unless the plugin confirms the message, so that the
// gateway can send it as the next turn instead; without the confirmation a message could get lost between the end of the turn
// and its arrival.
func (a *Agent) Steer(ctx context.Context, in agent.Input, m agent.Message) error {
	l := a.linkFor(in.Turn)
	if l == nil {
		return agent.ErrNotSteered
	}
	reply, ok := l.expectReply(m.ID)
	if !ok {
		return agent.ErrNotSteered
	}
	defer l.forget(m.ID)
	if err := l.send(ctx.Done(), toPlugin{Type: lineSteer, Turn: in.Turn, Message: m}); err != nil {
		return fmt.Errorf("%w: %w", agent.ErrNotSteered, err)
	}
	select {
	case yes := <-reply:
		if yes {
			return nil
		}
		return agent.ErrNotSteered
	case <-l.Done():
		return fmt.Errorf("%w: %w", agent.ErrNotSteered, process.ErrEnded)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", agent.ErrNotSteered, context.Cause(ctx))
	}
}

// Answer implements [agent.Answerer]. The answer goes to the process that runs the turn; after a restart of that process the
// turn has failed already.
func (a *Agent) Answer(ctx context.Context, in agent.Input, answer event.Answer) error {
	l := a.linkFor(in.Turn)
	if l == nil {
		return process.ErrEnded
	}
	return l.send(ctx.Done(), toPlugin{Type: lineAnswer, Turn: in.Turn, Answer: &answer})
}

// Kind returns the agent kind "plugin". Its agents decode events with the dialect "leat" of dialects.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "plugin",
		Summary: "a long-running program on this machine that serves many turns at once; see docs/plugins.md",
		Target:  "COMMAND",
		Options: []agent.Option{
			{Name: "env", Help: "environment variables to pass on, separated by commas, in addition to " + strings.Join(process.Always, ", ")},
		},
		New: func(s agent.Spec) (agent.Agent, error) {
			leat, err := dialects.Lookup("leat")
			if err != nil {
				return nil, err
			}
			command, err := agent.Command(s.Target)
			if err != nil {
				return nil, err
			}
			return New(Config{Command: command, Env: process.Names(s.Options["env"]), Dialect: leat})
		},
	}
}
