package models

import (
	"net/http"

	"github.com/leat-dev/leat/dialect/openaichat"
	"github.com/leat-dev/leat/internal/server"
)

// ReasonTools is the reason of a request that offers or uses tools in a way that agents don't have.
const ReasonTools = "tools_not_supported"

// OpenAIType returns OpenAI's type of an error. Its code is Leat's reason.
func OpenAIType(e *server.Error) string {
	switch {
	case e.Status == http.StatusTooManyRequests:
		return "rate_limit_error"
	// The clients repeat requests by the status and not by the type, which is for people who read the error.
	case e.Status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

// OpenAICode returns Leat's reason, or OpenAI's own code if it has one.
func OpenAICode(e *server.Error) string {
	if e.Reason == server.ReasonUnauthorized {
		return "invalid_api_key"
	}
	return e.Reason
}

// param returns the parameter of the request that caused the error, or "".
func param(e *server.Error) string {
	switch e.Reason {
	case reasonModel:
		return "model"
	case ReasonTools:
		return "tools"
	}
	return ""
}

// RespondOpenAI responds with an error in OpenAI's format.
func RespondOpenAI(w http.ResponseWriter, _ *http.Request, e *server.Error) {
	server.WriteRawJSON(w, e.Status, openaichat.AppendError(nil, OpenAIType(e), OpenAICode(e), param(e), e.Message))
}
