package agent

import "github.com/leat-dev/leat/event"

// Error is a failure that an agent reports. Viewers see Code and Message; operators see Detail too, in the log, the overview and the
// capture of the turn. After any other error of Run, viewers see only that the agent failed.
type Error struct {
	Code      string
	Message   string
	Retryable bool
	// Detail is for operators, such as addresses, the last line of a program's output or an upstream's error text. Secrets in it are
	// masked, and it is never written to the conversation.
	Detail string
}

// Error returns Message and Detail, for operators.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Message
	}
	return e.Message + ": " + e.Detail
}

// ViewerError returns the error that viewers see.
func (e *Error) ViewerError() *event.Error {
	return &event.Error{Code: e.Code, Message: e.Message, Retryable: e.Retryable}
}

// FailureSink is a sink that reports the cause of a failed turn to operators.
type FailureSink interface {
	// Failed is called before the turn ends.
	Failed(e *Error)
}

// Failed reports to operators why the turn is about to fail. Agents that return an [*Error] or call [Stream.Fail] don't need it.
func (e *Emitter) Failed(err *Error) {
	if s, ok := e.sink.(FailureSink); ok {
		s.Failed(err)
	}
}
