// The beginning of a run: its goroutine calls the agent, or waits for the producer of a pushed turn, and reports the end to the
// writer exactly once.

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/service/capture"
)

var _ runner = (*run)(nil)

// newRun returns the run of a turn. ctx carries the turn's trace.
func newRun(ctx context.Context, core *core, c runConfig) *run {
	r := &run{runConfig: c, core: core, metrics: core.metrics, log: core.log.With("conversation", c.conversation), returned: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.emitter = agent.NewEmitter(r.ctx, (*sink)(r))
	r.isPushed.Store(c.wasPushed || c.name == PushAgent)
	return r
}

// Start implements [runner]. The goroutine that it starts is the only one that emits, except for producers.
func (r *run) Start(start runStart) {
	r.input = start.Input
	r.touch()
	r.metrics.RunningTurns.Inc()
	r.startSilence()
	// The secrets of the agent are masked in the captured bytes, so that an operator who reads them learns none.
	captures := r.core.cfg.Raw
	r.capture = captures.Turn(capture.Meta{Turn: r.turn, Conversation: r.conversation, Agent: r.name, Kind: r.agent.Kind, Secrets: r.agent.Secrets})
	r.core.tasks.Go(func() {
		defer r.capture.Close()
		defer r.metrics.RunningTurns.Dec()
		err := r.call(func(ctx context.Context) error { return r.follow(ctx, &start) })
		// An agent may answer that a producer will push the stream (a 202, for example).
		if to := r.pushedTo(err); to != nil {
			err = r.call(func(ctx context.Context) error { return r.leaveTo(ctx, to) })
		}
		r.finish(err)
	})
}

// finish ends the turn after its agent has returned.
func (r *run) finish(err error) {
	foreign := r.endedByOthers(err)
	// Before the end is committed: a silence timer that fires now must not fail a turn that has just ended.
	r.stopSilence()
	r.end(err)
	if r.isPushed.Load() {
		r.core.pusher.Release(r.turn, r.emitter) // after the end is durable, because the producer reads it then
	}
	if foreign {
		r.notifyStopped()
	}
	close(r.returned)
	// Last, because the writer may start the next turn of the queue as soon as it hears of it. The run's own context may have
	// ended.
	if err := r.link.Returned(context.WithoutCancel(r.ctx), r.turn, runReport{LateOps: r.lateOps.Load(), Foreign: foreign}); err != nil {
		r.log.Error("end of run not reported to the writer", "turn", r.turn, "error", err)
	}
}

// follow calls the agent, or waits for the producer, also of a resumed turn that its agent had left to one before the restart. A producer may
// be silent for hours, so that wait is not in callAgent, which needs a large stack.
func (r *run) follow(ctx context.Context, start *runStart) error {
	if start.Mode != startObserve && r.isPushed.Load() {
		return r.runPushed(ctx, start.State)
	}
	return r.callAgent(ctx, start)
}

// callAgent calls the agent in the mode of start.
func (r *run) callAgent(ctx context.Context, start *runStart) error {
	input := r.currentInput()
	switch start.Mode {
	case startObserve:
		return r.agent.Agent.(agent.Follower).Observe(ctx, input, start.State, r.emitter)
	case startResume:
		return r.agent.Agent.(agent.Resumer).Resume(ctx, input, start.State, r.emitter)
	}
	return r.agent.Run(ctx, input, r.emitter)
}

// leaveTo leaves the turn to a producer and waits for the end of its stream. The change is durable before the producer can see
// it.
func (r *run) leaveTo(ctx context.Context, to *agent.PushPending) error {
	state, err := r.core.pusher.NewState(to.Dialect)
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
		waits, _ := r.activity()
		return waits
	}
	return r.core.pusher.Run(ctx, PushedTurn{ID: r.turn, State: state, Emitter: r.emitter, IsCaptured: r.capture != nil, IsWaiting: isWaiting})
}

// call calls fn. A panic fails the turn, not the gateway.
func (r *run) call(fn func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("agent panicked", "agent", r.name, "turn", r.turn, "panic", p, "stack", string(debug.Stack()))
			err = errors.New("the agent panicked")
		}
	}()
	return fn(r.ctx)
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
		r.log.Warn("agent not notified that its turn was stopped", "turn", r.turn, "agent", r.name, "error", err)
	}
}
