package langgraph

import (
	"errors"
	"net/http"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// errPaused ends the run stream of a turn that waits.
var errPaused = errors.New("langgraph: the turn waits")

// Texts of errors that pages show as they are.
const (
	textInterrupted = "The answer was interrupted by a restart. Try again."
	textRemoved     = "This answer was removed from the thread."
	textExpired     = "Your session has expired. Sign in again."
)

// errorBody is the body of an error. LangGraph's own errors have a detail only, which the SDK for Python shows. The client of the thread stream
// shows the message.
type errorBody struct {
	Detail  string `json:"detail"`
	Message string `json:"message"`
}

// respondError responds with an error in LangGraph's form.
func respondError(w http.ResponseWriter, _ *http.Request, e *server.Error) {
	w.Header().Set("Leat-Reason", e.Reason)
	text := chats.Sentence(e.Message)
	server.WriteJSON(w, e.Status, errorBody{text, text})
}

// notFound is the error for a thing that the caller doesn't have.
func notFound(format string, args ...any) error {
	return server.Errorf(http.StatusNotFound, server.ReasonNotFound, format, args...)
}

// unsupported is the error for what LangGraph has and this server doesn't: 422, which clients don't retry.
func unsupported(format string, args ...any) error {
	return server.Errorf(http.StatusUnprocessableEntity, server.ReasonInvalid, format, args...)
}
