package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/service/capture"
)

// run runs the agent of one turn. It knows the conversation only through its link to the writer. Its context ends
// with one of the causes below, from which its parts conclude whether the turn has ended or continues elsewhere.
type run struct {
	runConfig
	core    *core // of this process
	metrics *Metrics
	log     *slog.Logger

	ctx      context.Context
	cancel   context.CancelCauseFunc
	emitter  *agent.Emitter
	capture  *capture.Turn // nil if the turn's bytes are not captured
	returned chan struct{} // closed when the agent has returned

	isPushed atomic.Bool                 // a producer pushes the stream
	lastSign atomic.Int64                // last sign of life, epoch milliseconds
	lateOps  atomic.Int64                // how many operations came after the end
	trouble  atomic.Pointer[agent.Error] // why the last attempt upstream failed; nil once there is progress

	mu      sync.Mutex
	input   agent.Input // its session can change
	silence *time.Timer // the limit on silence; nil before the start and after the agent has returned
}

// runConfig describes a run.
type runConfig struct {
	link                     turnWriter
	conversation, turn, name string // name is the agent's
	agent                    Agent
	isObserved               bool // the upstream began the turn
	wasPushed                bool // the agent left the stream to a producer, in an earlier process
	TurnFiles                     // as the agent sees them, which is why they are methods of the sink
}

// Causes of the end of a run's context, which agents may get with context.Cause.
var (
	errStopped  = fmt.Errorf("%w: stopped", errOver)
	errEnded    = fmt.Errorf("%w: ended by its own stream", errOver)
	errDetached = errors.New("gateway: detached for a restart")
	errLost     = errors.New("gateway: conversation given up")
	// errOver is ErrTurnOver for agents too. It distinguishes a turn that has ended from one that is only detached.
	errOver = fmt.Errorf("%w (%w)", ErrTurnOver, agent.ErrTurnOver)
)

// isOver reports whether the turn has ended, or belongs to a writer that gave its conversation up. A detached run
// isn't over: its turn continues in the next process.
func (r *run) isOver() bool {
	cause := context.Cause(r.ctx)
	return errors.Is(cause, errOver) || errors.Is(cause, errLost)
}

// TurnEnded implements [runner]. The agent then has returnLimit to return, before the queue continues without it.
func (r *run) TurnEnded() { r.cancel(errEnded) }

// Lose implements [runner]. The emitter is closed, so that nothing that the agent still emits reaches the
// conversation's next writer.
func (r *run) Lose(reason string) {
	r.cancel(fmt.Errorf("%w: %s", errLost, reason))
	r.emitter.Close()
}

// Steerable implements [runner]. An agent without a Chooser accepts messages at any time.
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

// Drain implements [runner]. It also returns when ctx ends. It changes nothing: the caller then detaches or ends the
// turn.
func (r *run) Drain(ctx context.Context) {
	tick := time.NewTicker(drainInterval)
	defer tick.Stop()
	for !r.resumable() || r.needsDrain() {
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

// Detach implements [runner]. The agent's context ends, and its turn stays open in the log. If the turn can't be
// resumed, Detach does nothing.
func (r *run) Detach() bool {
	if !r.resumable() {
		return false
	}
	r.cancel(errDetached)
	return true
}

// resumable reports whether the next start can resume the turn.
func (r *run) resumable() bool {
	if r.isObserved {
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

// needsDrain reports whether the turn's upstream aborts it when the gateway disconnects.
func (r *run) needsDrain() bool {
	t, ok := r.agent.Agent.(agent.Drainer)
	return ok && !r.isPushed.Load() && !r.isObserved && t.NeedsDrain()
}

// currentInput returns the input with the latest session.
func (r *run) currentInput() agent.Input {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.input
}
