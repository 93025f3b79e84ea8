// The ends of a run: which outcome and error a turn gets for the error that its agent returned, and for a run that the gateway
// itself ended.

package gateway

import (
	"context"
	"errors"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/capture"
)

// explain gives operators the detail of a failure, which readers don't get: in the capture of the turn, in what watchers
// show, and in the log. There it is at debug, like what programs print, because it may quote the conversation.
func (r *run) explain(e *agent.Error) {
	if e == nil || e.Detail == "" {
		return
	}
	detail := capture.Mask(r.agent.Secrets, agent.OneLine(e))
	r.log.Debug("agent failed", "turn", r.turn, "agent", r.name, "code", e.Code, "error", detail)
	r.capture.Failed(detail)
	for _, w := range r.core.cfg.Watchers {
		if f, ok := w.(FailureWatcher); ok {
			f.TurnFailed(r.turn, detail)
		}
	}
}

// failureOf returns an error that an agent returned in the form that readers and operators get. Errors of unknown kinds may
// contain secrets, so readers get only "the agent failed".
func failureOf(err error) *agent.Error {
	var agentErr *agent.Error
	var bad *dialect.Error
	switch {
	case errors.As(err, &agentErr):
		return agentErr
	case errors.Is(err, dialect.ErrCutShort):
		return &agent.Error{Code: codeCutShort, Message: "the agent's stream was cut short", Retryable: true}
	case errors.As(err, &bad), errors.Is(err, event.ErrInvalid):
		return &agent.Error{Code: codeStream, Message: err.Error()}
	}
	return &agent.Error{Code: codeAgent, Message: "the agent failed", Detail: err.Error()}
}

// pushedTo returns the error with which the agent leaves its turn to a producer, or nil if err is another one. An observed turn has no
// producer.
func (r *run) pushedTo(err error) *agent.PushPending {
	var to *agent.PushPending
	if _, ok := r.agent.Agent.(agent.Pusher); ok && !r.isObserved && errors.As(err, &to) {
		return to
	}
	return nil
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
		body = event.Body{Outcome: event.Failed, Error: failure.ViewerError()}
	}
	if err := r.link.End(context.WithoutCancel(r.ctx), r.turn, body); err != nil {
		r.log.Error("end of turn not committed; recovery ends the turn", "turn", r.turn, "error", err)
	}
}

// fail ends the turn with an error while the agent still runs. It doesn't block.
func (r *run) fail(e *agent.Error) {
	r.explain(e)
	body := event.Body{Outcome: event.Failed, Error: e.ViewerError()}
	r.core.tasks.Go(func() { // the run itself is a task until it returns, so none is added too late
		if err := r.link.End(context.WithoutCancel(r.ctx), r.turn, body); err != nil {
			r.log.Error("end of turn not committed; recovery ends the turn", "turn", r.turn, "error", err)
		}
	})
}

// Stop implements [runner].
func (r *run) Stop() []event.Event {
	r.cancel(errStopped) // an Emit that waits for room in the queue must not block Close
	return bareOps(r.emitter.Close(), r.TurnFiles)
}
