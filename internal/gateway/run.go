package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/capture"
)

// run runs the agent of one turn. It knows the conversation only through its link to the writer.
type run struct {
	runConfig
	g       *Gateway // of this process
	metrics *Metrics
	log     *slog.Logger

	ctx      context.Context
	cancel   context.CancelCauseFunc
	out      *agent.Emitter
	capture  *capture.Turn // nil if the turn's bytes are not captured
	returned chan struct{} // closed when the agent has returned

	isPushed atomic.Bool                 // a producer pushes the stream
	lastSign atomic.Int64                // last sign of life, epoch milliseconds
	lateOps  atomic.Int64                // how many operations came after the end
	trouble  atomic.Pointer[agent.Error] // why the last attempt upstream failed; nil once there is progress

	mu      sync.Mutex
	input   agent.Input // its session changes
	silence *time.Timer // nil before the start and after the return
}

// runConfig describes a run.
type runConfig struct {
	link                     turnWriter
	conversation, turn, name string // name is the agent's
	agent                    Agent
	observed                 bool // the upstream began the turn
	pushed                   bool // the agent left the stream to a producer, in an earlier process
	files                    TurnFiles
}

var _ runner = (*run)(nil)

// Causes of the end of a run's context, which agents may get with context.Cause.
var (
	errStopped  = fmt.Errorf("%w: stopped", errOver)
	errEnded    = fmt.Errorf("%w: ended by its own stream", errOver)
	errDetached = errors.New("gateway: detached for a restart")
	errLost     = errors.New("gateway: conversation given up")
	// errOver is ErrTurnOver for agents too. It distinguishes a turn that has ended from one that is only detached.
	errOver = fmt.Errorf("%w (%w)", ErrTurnOver, agent.ErrTurnOver)
)

// Codes of the errors with which the gateway itself ends turns.
const (
	codeSilence    = "silence"       // the agent showed no progress for too long
	codeTurnLimit  = "turn_limit"    // the turn ran for too long
	codeLease      = "lease_expired" // the producer of a pushed turn didn't come back
	codeWait       = "wait_expired"  // nobody answered
	codeUntold     = "not_answered"  // the agent did not accept the answer
	codeStream     = "invalid_stream"
	codeCutShort   = "cut_short"     // the agent's stream was interrupted before its end
	codeAgent      = "agent_error"   // the agent returned an error of no other kind
	codeNotStarted = "not_started"   // the request did not reach the agent; the same send may run again
	codeRuns       = "too_many_runs" // of others, at once in one conversation
	codeRestart    = "gateway_restart"
)

// newRun returns the run of a turn. ctx carries the turn's trace.
func newRun(ctx context.Context, g *Gateway, c runConfig) *run {
	r := &run{runConfig: c, g: g, metrics: g.metrics, log: g.log.With("conversation", c.conversation), returned: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.out = agent.NewEmitter(r.ctx, (*sink)(r))
	r.isPushed.Store(c.pushed || c.name == PushAgent)
	return r
}

// Start implements [runner]. The goroutine that it starts is the only one that emits, except for producers.
func (r *run) Start(start runStart) {
	r.input = start.Input
	r.touch()
	r.metrics.Running.Inc()
	r.startSilence()
	captures := r.g.cfg.Raw
	r.capture = captures.Turn(capture.Meta{Turn: r.turn, Conversation: r.conversation, Agent: r.name, Kind: r.agent.Kind, Secrets: r.agent.Secrets})
	r.g.tasks.Go(func() {
		defer r.capture.Close()
		defer r.metrics.Running.Dec()
		err := r.call(func(ctx context.Context) error { return r.callAgent(ctx, start) })
		if to := pushedTo(r.agent, err); to != nil && !r.observed {
			err = r.call(func(ctx context.Context) error { return r.leaveTo(ctx, to) })
		}
		foreign := r.endedByOthers(err)
		r.stopSilence()
		r.end(err)
		if r.isPushed.Load() {
			r.g.pusher.Release(r.turn, r.out) // after the end is durable, because the producer reads it then
		}
		if foreign {
			r.notifyStopped()
		}
		close(r.returned)
		if err := r.link.Returned(context.WithoutCancel(r.ctx), r.turn, runReport{Late: r.lateOps.Load(), Foreign: foreign}); err != nil {
			r.log.Error("return of agent not reported", "turn", r.turn, "error", err)
		}
	})
}

// callAgent calls the agent as start says.
func (r *run) callAgent(ctx context.Context, start runStart) error {
	switch {
	case start.Mode == startObserve:
		return r.agent.Agent.(agent.Follower).Observe(ctx, r.currentInput(), start.State, r.out)
	case r.isPushed.Load():
		return r.runPushed(ctx, start.State)
	case start.Mode == startResume:
		return r.agent.Agent.(agent.Resumer).Resume(ctx, r.currentInput(), start.State, r.out)
	}
	return r.agent.Run(ctx, r.currentInput(), r.out)
}

// leaveTo leaves the turn to a producer, durably, and waits for the end of its stream.
func (r *run) leaveTo(ctx context.Context, to *agent.Pushed) error {
	state, err := r.g.pusher.NewState(to.Dialect)
	if err != nil {
		return err
	}
	if err := r.link.SetPushed(ctx, r.turn, state); err != nil {
		return fmt.Errorf("leave turn to its producer: %w", err)
	}
	r.isPushed.Store(true)
	return r.runPushed(ctx, state)
}

// runPushed waits for the end of the stream that a producer pushes.
func (r *run) runPushed(ctx context.Context, state json.RawMessage) error {
	isWaiting := func() bool {
		waiting, _ := r.activity()
		return waiting
	}
	return r.g.pusher.Run(ctx, PushedTurn{ID: r.turn, State: state, Out: r.out, IsCaptured: r.capture != nil, IsWaiting: isWaiting})
}

// call calls fn. A panic fails the turn, not the gateway.
func (r *run) call(fn func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("agent panicked", "agent", r.name, "turn", r.turn, "panic", p, "stack", string(debug.Stack()))
			err = errors.New("the agent failed unexpectedly")
		}
	}()
	return fn(r.ctx)
}

// isOver reports whether the turn has ended, or belongs to a writer that gave its conversation up.
func (r *run) isOver() bool {
	cause := context.Cause(r.ctx)
	return errors.Is(cause, errOver) || errors.Is(cause, errLost)
}

// end ends the turn after the agent has returned, if nothing else ended it.
func (r *run) end(err error) {
	if errors.Is(context.Cause(r.ctx), errDetached) || r.isOver() {
		return
	}
	body := event.Body{Outcome: event.Completed}
	if err != nil {
		failure := failureOf(err)
		r.explain(failure)
		body = event.Body{Outcome: event.Failed, Error: failure.Shown()}
	}
	if err := r.link.End(context.WithoutCancel(r.ctx), r.turn, body); err != nil {
		r.log.Error("end of turn not written; recovery will", "turn", r.turn, "error", err)
	}
}

// fail ends the turn with an error while the agent still runs.
func (r *run) fail(e *agent.Error) {
	r.explain(e)
	body := event.Body{Outcome: event.Failed, Error: e.Shown()}
	r.g.tasks.Go(func() { // the run itself is a task until it returns, so none is added too late
		if err := r.link.End(context.WithoutCancel(r.ctx), r.turn, body); err != nil {
			r.log.Error("end of turn not written; recovery will", "turn", r.turn, "error", err)
		}
	})
}

// Stop implements [runner].
func (r *run) Stop() []event.Event {
	r.cancel(errStopped) // an Emit that waits for room in the queue must not block Close
	return bareOps(r.out.Close(), r.files)
}

// Ended implements [runner].
func (r *run) Ended() { r.cancel(errEnded) }

// Lose implements [runner].
func (r *run) Lose(reason string) {
	r.cancel(fmt.Errorf("%w: %s", errLost, reason))
	r.out.Close()
}

// Steerable implements [runner].
func (r *run) Steerable() bool {
	if _, ok := r.agent.Agent.(agent.Steerer); !ok {
		return false
	}
	c, ok := r.agent.Agent.(agent.Chooser)
	return !ok || c.Steers(r.turn)
}

// Steer implements [runner].
func (r *run) Steer(ctx context.Context, m agent.Message) error {
	s, ok := r.agent.Agent.(agent.Steerer)
	if !ok {
		return agent.ErrNotSteered
	}
	return s.Steer(ctx, r.currentInput(), m)
}

// Drain implements [runner].
func (r *run) Drain(ctx context.Context) {
	tick := time.NewTicker(drainInterval)
	defer tick.Stop()
	for !r.resumable() || r.tied() {
		select {
		case <-r.returned:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// drainInterval is how often Drain checks whether the turn can be resumed now, because its agent left it to a producer.
const drainInterval = 100 * time.Millisecond

// Detach implements [runner].
func (r *run) Detach() bool {
	if !r.resumable() {
		return false
	}
	r.cancel(errDetached)
	return true
}

// resumable reports whether the next start can resume the turn.
func (r *run) resumable() bool {
	if r.observed {
		_, ok := r.agent.Agent.(agent.Follower)
		return ok
	}
	return resumes(r.agent, r.isPushed.Load())
}

// resumes reports whether a turn can be resumed in another process.
func resumes(a Agent, isPushed bool) bool {
	_, ok := a.Agent.(agent.Resumer)
	return ok || isPushed
}

// tied reports whether the turn's upstream aborts it when the gateway disconnects.
func (r *run) tied() bool {
	t, ok := r.agent.Agent.(agent.Tied)
	return ok && !r.isPushed.Load() && !r.observed && t.Tied()
}

// currentInput returns the input with the latest session.
func (r *run) currentInput() agent.Input {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.input
}

// endedByOthers reports, once the agent has returned err, whether something other than the agent ended the turn.
func (r *run) endedByOthers(err error) bool {
	cause := context.Cause(r.ctx)
	return errors.Is(cause, errStopped) || cause == nil && err != nil && r.isPushed.Load() // the lease expired, or the stream was invalid
}

// stopLimit is how long an agent's Stop may take.
const stopLimit = 5 * time.Second

// notifyStopped calls the agent's Stop.
func (r *run) notifyStopped() {
	s, ok := r.agent.Agent.(agent.Stopper)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), stopLimit)
	defer cancel()
	if err := s.Stop(ctx, r.currentInput()); err != nil {
		r.log.Warn("agent not told that its turn was stopped", "turn", r.turn, "agent", r.name, "error", err)
	}
}
