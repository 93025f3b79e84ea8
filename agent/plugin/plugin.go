package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/process"
)

const (
	// startLimit is how long a process may take until it is ready, and how long a turn waits for one.
	startLimit = 10 * time.Second
	// killAfter is how long a process that was told to end may take.
	killAfter = 5 * time.Second
)

// Config says what is run.
type Config struct {
	Command []string // program and arguments
	Dir     string   // in which it runs; empty is the gateway's own
	// Env names environment variables of this process that the program gets, beside those that every one gets.
	Env []string
	// Dialect is leat, whose events plugins speak.
	Dialect dialect.Dialect
}

// Agent is a plugin. Its process is started by Start, or by the first turn, and ended by Close. All methods may be called
// from several goroutines.
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

// New returns the agent. It looks the program up and starts nothing.
func New(c Config) (*Agent, error) {
	g, err := program(c)
	if err != nil {
		return nil, err
	}
	return &Agent{cfg: c, supervisor: newSupervisor(g)}, nil
}

// Run has the process answer a turn.
func (a *Agent) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	in.Ingest = nil // its output is its stream
	in, err := out.Inline(ctx, in)
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
	out.Sent(ask)
	if err := l.Hand(ctx.Done(), ask); err != nil {
		return a.broken(ctx, l, err)
	}
	d := newDecoder(in.Turn, a.cfg.Dialect.Decoder())
	out.OnEnd(d.held)
	size := 0
	for {
		var first line
		select {
		case first = <-t.Lines():
		case <-ctx.Done():
			l.tell(toPlugin{Type: lineCancel, Turn: in.Turn})
			return context.Cause(ctx)
		case <-l.Done():
			select {
			case first = <-t.Lines(): // it said that before
			default:
				return l.Why()
			}
		}
		out.Received(first.data)
		if size += len(first.data); size > agent.MaxStream {
			l.tell(toPlugin{Type: lineCancel, Turn: in.Turn})
			return &agent.Error{Code: codeTooLarge, Message: agent.ErrTooLarge.Error()}
		}
		if over, err := a.say(l, in.Turn, d, out, first); over {
			return err
		}
	}
}

// say hands a line to the readers, and reports whether the turn is over by it.
func (a *Agent) say(l *link, id string, d *decoder, out *agent.Emitter, one line) (over bool, err error) {
	var bad error
	ended := false
	decode := func() (ops []event.Event, _ json.RawMessage, _ error) {
		ops, bad = d.decode(one)
		ended = d.ended
		return ops, nil, nil
	}
	err = out.Large(len(one.data), func() error { return out.Decode(decode) })
	if bad == nil && one.head.Text != "" && (one.head.Type == lineText || one.head.Type == lineCallback) {
		out.Alive() // also for a text that is held back
	}
	switch {
	case bad != nil:
		l.tell(toPlugin{Type: lineError, Turn: id, Line: one.n, Message: bad.Error()})
		return true, &agent.Error{Code: codeStream, Message: bad.Error()}
	case err == nil:
		return ended, nil
	case errors.Is(err, agent.ErrTurnOver) && ended:
		return true, nil
	}
	l.tell(toPlugin{Type: lineCancel, Turn: id})
	return true, err
}

// broken is why a turn could not be handed to the process.
func (a *Agent) broken(ctx context.Context, l *link, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, process.ErrEnded) {
		return l.Why()
	}
	return err
}

// Steers implements [agent.Chooser].
func (a *Agent) Steers(turn string) bool {
	l := a.running(turn)
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.steers
}

// Steer implements [agent.Steerer]. A process that takes no messages, or that does not say that it took one, is not steered.
func (a *Agent) Steer(ctx context.Context, in agent.Input, m agent.Message) error {
	l := a.running(in.Turn)
	if l == nil {
		return agent.ErrNotSteered
	}
	taken, ok := l.ask(m.ID)
	if !ok {
		return agent.ErrNotSteered
	}
	defer l.forget(m.ID)
	if err := l.send(ctx.Done(), toPlugin{Type: lineSteer, Turn: in.Turn, Message: m}); err != nil {
		return fmt.Errorf("%w: %w", agent.ErrNotSteered, err)
	}
	select {
	case yes := <-taken:
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

// Answer implements [agent.Answerer].
func (a *Agent) Answer(ctx context.Context, in agent.Input, answer event.Answer) error {
	l := a.running(in.Turn)
	if l == nil {
		return process.ErrEnded
	}
	return l.send(ctx.Done(), toPlugin{Type: lineAnswer, Turn: in.Turn, Answer: &answer})
}
