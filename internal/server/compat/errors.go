// The errors of both APIs. Their clients decide by type and status whether they repeat a request.

package compat

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/dialect/anthropic"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/internal/server/internal/models"
	"github.com/leat-dev/leat/transcript"
)

// Reasons that only these APIs use.
const (
	reasonFailed   = "turn_failed"
	reasonStopped  = "turn_stopped"
	reasonReplaced = "text_replaced"
)

// errReplaced ends a stream whose text changed after it was sent.
var errReplaced = &server.Error{Status: http.StatusInternalServerError, Reason: reasonReplaced, Message: "the agent changed what it had said already; the conversation has its final text"}

// describe is [server.Describe] with this package's own errors.
func describe(err error) *server.Error {
	if errors.Is(err, follow.ErrNoTurn) {
		return server.Errorf(http.StatusGone, server.ReasonNotFound, "the turn is no longer in its conversation")
	}
	return server.Describe(err)
}

// isExpired reports whether a stream ended because its token expired. The request's context has ended then, but the client is
// still connected and gets an error.
func isExpired(err error) bool { return errors.Is(err, server.ErrExpired) }

// statuses maps prefixes of the error codes that agents pass on from their upstreams.
var statuses = []struct {
	prefix string
	status int
}{
	{"rate_limit", http.StatusTooManyRequests},
	{"too_many_requests", http.StatusTooManyRequests},
	{"resource_exhausted", http.StatusTooManyRequests},
	{"429", http.StatusTooManyRequests},
	{"overloaded", statusOverloaded},
}

// statusOverloaded is Anthropic's own status.
const statusOverloaded = 529

// failed returns the error of a turn that ended without an answer, or nil.
//
// A turn that the gateway interrupted gets 503, because a repetition may succeed. An error of an upstream
// keeps its code, and the status follows from it, so that the client's own handling of rate limits works.
// RetryAfter is set only if the agent called the error retryable.
func failed(t *transcript.Turn) *server.Error {
	e := &server.Error{Status: http.StatusInternalServerError, Reason: reasonFailed, Message: "the agent could not answer"}
	switch t.Outcome {
	case event.Completed:
		return nil
	case event.Cancelled:
		e.Reason, e.Message = reasonStopped, "the turn was stopped"
		return e
	case event.Interrupted:
		e.Status = http.StatusServiceUnavailable
	}
	if t.Error == nil {
		return e
	}
	if t.Error.Message != "" {
		e.Message = t.Error.Message
	}
	if t.Error.Code != "" {
		e.Reason = t.Error.Code
	}
	for _, s := range statuses {
		if strings.HasPrefix(strings.ToLower(t.Error.Code), s.prefix) {
			e.Status = s.status
		}
	}
	if t.Error.Retryable {
		e.RetryAfter = time.Second
	}
	return e
}

// anthropicType returns the API's type of an error. Errors of agents and of the gateway have Eliza's types.
func anthropicType(e *server.Error) string {
	switch e.Status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound, http.StatusGone:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable:
		return "service_unavailable"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case statusOverloaded:
		return "overloaded_error"
	}
	if e.Status >= http.StatusInternalServerError {
		return "server_error"
	}
	return "invalid_request_error"
}

// anthropicError responds with an error in Anthropic's format.
func anthropicError(w http.ResponseWriter, r *http.Request, e *server.Error) {
	id := server.RequestID(r.Context())
	w.Header().Set("Request-Id", id)
	server.WriteRawJSON(w, e.Status, anthropic.AppendError(nil, anthropicType(e), e.Message, id))
}

// eitherError responds in the format of the client's API, on a path that both APIs have.
func eitherError(w http.ResponseWriter, r *http.Request, e *server.Error) {
	if isAnthropic(r) {
		anthropicError(w, r, e)
		return
	}
	models.RespondOpenAI(w, r, e)
}

// isAnthropic reports whether the client uses Anthropic's API. All its clients send the version.
func isAnthropic(r *http.Request) bool {
	return r.Header.Get("Anthropic-Version") != "" || strings.HasPrefix(r.URL.Path, "/v1/messages")
}
