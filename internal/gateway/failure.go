package gateway

import (
	"errors"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/capture"
)

// FailureWatcher is a [Watcher] that gets the reasons for which turns fail, in words for operators.
type FailureWatcher interface {
	// TurnFailed is called before the end of the turn is committed. detail is one line, without secrets.
	TurnFailed(turn, detail string)
}

var _ agent.FailureSink = (*sink)(nil)

// Failed implements [agent.FailureSink].
func (s *sink) Failed(e *agent.Error) { (*run)(s).explain(e) }

// explain gives operators the detail of a failure, which readers don't get: in the capture of the turn, in what watchers
// show, and in the log. There it is at debug, like what programs print, because it may quote the conversation.
func (r *run) explain(e *agent.Error) {
	if e == nil || e.Detail == "" {
		return
	}
	detail := capture.Mask(r.agent.Secrets, agent.OneLine(e))
	r.log.Debug("agent failed", "turn", r.turn, "agent", r.name, "code", e.Code, "error", detail)
	r.capture.Failed(detail)
	for _, w := range r.g.cfg.Watchers {
		if f, ok := w.(FailureWatcher); ok {
			f.TurnFailed(r.turn, detail)
		}
	}
}

// failureOf returns what is known of an error that an agent returned.
func failureOf(err error) *agent.Error {
	var known *agent.Error
	var bad *dialect.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, dialect.ErrCutShort):
		return &agent.Error{Code: codeCutShort, Message: "the agent's stream was cut short", Retryable: true}
	case errors.As(err, &bad), errors.Is(err, event.ErrInvalid):
		return &agent.Error{Code: codeStream, Message: err.Error()}
	}
	return &agent.Error{Code: codeAgent, Message: "the agent failed", Detail: err.Error()}
}
