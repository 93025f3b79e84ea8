package agent

import "github.com/leat-dev/leat/event"

// Error is a failure that an agent reports. Readers get Code and Message, which name the kind of failure; the log, the
// overview and the capture of the turn get Detail too. For any other error, readers learn only that the agent failed.
type Error struct {
	Code      string
	Message   string
	Retryable bool
	// Detail is for operators: addresses, the last line of a program, what an upstream answered. It is masked and is never
	// written to the conversation.
	Detail string
}

// Error returns the whole text, for operators.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Message
	}
	return e.Message + ": " + e.Detail
}

// Shown returns what readers get.
func (e *Error) Shown() *event.Error {
	return &event.Error{Code: e.Code, Message: e.Message, Retryable: e.Retryable}
}

// FailureSink is a sink that reports to operators why a turn fails.
type FailureSink interface {
	// Failed is called before the end of the turn that it explains.
	Failed(e *Error)
}

// Failed reports to operators why the turn is about to fail. An agent that returns an [*Error] or calls [Stream.Fail] need
// not call it.
func (e *Emitter) Failed(err *Error) {
	if s, ok := e.sink.(FailureSink); ok {
		s.Failed(err)
	}
}
