// The errors of both APIs. Their clients decide by type and status whether they repeat a request.

package compat

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/dialect/anthropic"
	"github.com/leat-dev/leat/dialect/openaichat"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/transcript"
)

// Reasons that only these APIs use.
const (
	reasonModel    = "model_not_found"
	reasonFailed   = "turn_failed"
	reasonStopped  = "turn_stopped"
	reasonReplaced = "text_replaced"
	reasonTools    = "tools_not_supported"
)

// errReplaced ends a stream whose text changed after it was sent.
var errReplaced = &server.Error{Status: http.StatusInternalServerError, Reason: reasonReplaced, Message: "the agent changed what it had said already; the conversation has its final text"}

// errNoAgent refuses a request without an agent if none is configured.
var errNoAgent = server.Errorf(http.StatusServiceUnavailable, gateway.ReasonNotRunning, "Agent is not running: no agent is configured")

// unknownModel returns the refusal of a model that isn't an agent.
func unknownModel(name string) error {
	return server.Errorf(http.StatusNotFound, reasonModel, "no agent is named %q; GET /v1/models lists them", name)
}

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

// openaiType returns the API's type of an error. Its code is Leat's reason.
func openaiType(e *server.Error) string {
	switch {
	case e.Status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case e.Status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

// openaiCode returns Leat's reason, or the API's own code if it has one.
func openaiCode(e *server.Error) string {
	if e.Reason == server.ReasonUnauthorized {
		return "invalid_api_key"
	}
	return e.Reason
}

// openaiParam returns the parameter of the request that caused the error, or "".
func openaiParam(e *server.Error) string {
	switch e.Reason {
	case reasonModel:
		return "model"
	case reasonTools:
		return "tools"
	}
	return ""
}

// openaiError responds with an error in OpenAI's format.
func openaiError(w http.ResponseWriter, _ *http.Request, e *server.Error) {
	server.WriteRawJSON(w, e.Status, openaichat.AppendError(nil, openaiType(e), openaiCode(e), openaiParam(e), e.Message))
}

// eitherError responds in the format of the client's API, on a path that both APIs have.
func eitherError(w http.ResponseWriter, r *http.Request, e *server.Error) {
	if isAnthropic(r) {
		anthropicError(w, r, e)
		return
	}
	openaiError(w, r, e)
}

// isAnthropic reports whether the client uses Anthropic's API. All its clients send the version.
func isAnthropic(r *http.Request) bool {
	return r.Header.Get("Anthropic-Version") != "" || strings.HasPrefix(r.URL.Path, "/v1/messages")
}
