// Errors of requests, and failures of turns.

package responses

import (
	"errors"
	"net/http"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/transcript"
)

// Reasons that only this API uses.
const (
	// reasonFailed is the code of a failure that has none. It is OpenAI's, because clients may know it.
	reasonFailed      = "server_error"
	reasonNotLast     = "previous_response_not_last"
	reasonNoOutput    = "no_tool_output"
	reasonUnsupported = "unsupported_parameter"
)

var (
	// errPaused ends the reading of a response whose turn waits for the client.
	errPaused = errors.New("responses: the turn waits")
	// errCurrent ends the reading of a response that has everything up to the head of the log.
	errCurrent = errors.New("responses: up to date")
)

// errNoResponse refuses the id of a response that doesn't exist, or not for the caller.
var errNoResponse = server.Errorf(http.StatusNotFound, server.ReasonNotFound, "Response not found.")

// unsupported refuses a parameter or a request that would mean something that Leat doesn't have.
func unsupported(format string, args ...any) error {
	return server.Errorf(http.StatusBadRequest, reasonUnsupported, format, args...)
}

// describe is [server.Describe] with this package's own errors.
func describe(err error) *server.Error {
	if errors.Is(err, follow.ErrNoTurn) {
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "the response is no longer in its conversation")
	}
	return server.Describe(err)
}

// failure is the error of a response that ended without an answer.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// failureOf returns the error of a turn that has ended, or nil.
func failureOf(t *transcript.Turn) *failure {
	f := &failure{reasonFailed, "the agent could not answer"}
	switch t.Outcome {
	case event.Failed:
	case event.Interrupted:
		f.Message = "the answer was interrupted by a restart of the gateway"
	default:
		return nil
	}
	// The agent's own code and text are more useful than any of OpenAI's.
	if t.Error != nil {
		if t.Error.Code != "" {
			f.Code = t.Error.Code
		}
		if t.Error.Message != "" {
			f.Message = t.Error.Message
		}
	}
	return f
}
