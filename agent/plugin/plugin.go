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
func (a *Agent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	in.Ingest = nil // its output is its stream
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
	emitter.Sent(ask)
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
			case next = <-t.Lines(): // it said that before
			default:
				return l.Cause()
			}
		}
		emitter.Received(next.data)
		if size += len(next.data); size > agent.MaxStream {
			l.tell(toPlugin{Type: lineCancel, Turn: in.Turn})
			return &agent.Error{Code: codeTooLarge, Message: agent.ErrTooLarge.Error()}
		}
		if isOver, err := a.say(l, in.Turn, d, emitter, next); isOver {
			return err
		}
	}
}

// say hands a line to the readers, and reports whether the turn is over by it.
func (a *Agent) say(l *link, id string, d *decoder, emitter *agent.Emitter, next line) (isOver bool, err error) {
	var bad error
	turnEnded := false
	decode := func() (ops []event.Event, _ json.RawMessage, _ error) {
		ops, bad = d.decode(next)
		turnEnded = d.hasEnded
		return ops, nil, nil
	}
	err = emitter.Large(len(next.data), func() error { return emitter.Decode(decode) })
	if bad == nil && next.head.Text != "" && (next.head.Type == lineText || next.head.Type == lineCallback) {
		emitter.Alive() // also for a text that is held back
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

// broken is why a turn could not be handed to the process.
func (a *Agent) sendError(ctx context.Context, l *link, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, process.ErrEnded) {
		return l.Cause()
	}
	return err
}

// Steers implements [agent.Chooser].
func (a *Agent) Steers(turn string) bool {
	l := a.linkFor(turn)
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.steers
}

// Steer implements [agent.Steerer]. A process that takes no messages, or that does not say that it took one, is not steered.
func (a *Agent) Steer(ctx context.Context, in agent.Input, m agent.Message) error {
	l := a.linkFor(in.Turn)
	if l == nil {
		return agent.ErrNotSteered
	}
	reply, ok := l.ask(m.ID)
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

// Answer implements [agent.Answerer].
func (a *Agent) Answer(ctx context.Context, in agent.Input, answer event.Answer) error {
	l := a.linkFor(in.Turn)
	if l == nil {
		return process.ErrEnded
	}
	return l.send(ctx.Done(), toPlugin{Type: lineAnswer, Turn: in.Turn, Answer: &answer})
}
