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
	"github.com/leat-dev/leat/transcript"
)

// Reasons that only these APIs have.
const (
	reasonModel    = "model_not_found"
	reasonFailed   = "turn_failed"
	reasonStopped  = "turn_stopped"
	reasonReplaced = "text_replaced"
	reasonTools    = "tools_not_supported"
)

// errReplaced is for a stream whose text was changed after it was sent.
var errReplaced = &server.Error{Status: http.StatusInternalServerError, Reason: reasonReplaced, Message: "the agent changed what it had said already; the conversation has its final text"}

// errNoAgent is for a request that names no agent, while none is configured.
var errNoAgent = server.Errorf(http.StatusServiceUnavailable, gateway.ReasonNotRunning, "Agent is not running: no agent is configured")

func unknownModel(name string) error {
	return server.Errorf(http.StatusNotFound, reasonModel, "no agent is named %q; GET /v1/models lists them", name)
}

func invalid(format string, args ...any) error {
	return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, format, args...)
}

// describe is [server.Describe], for what this surface has of its own too.
func describe(err error) *server.Error {
	if errors.Is(err, errGone) {
		return server.Errorf(http.StatusGone, server.ReasonNotFound, "the turn is no longer in its conversation")
	}
	return server.Describe(err)
}

// told reports whether a stream ends for a reason that its client should know, though its context has ended.
func told(err error) bool { return errors.Is(err, server.ErrExpired) }

// statuses are those of errors that agents hand on from their own upstreams, by the beginnings of their codes.
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

// statusOverloaded is Anthropic's own.
const statusOverloaded = 529

// failed says why a turn that is over is no answer; nil where it is one.
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

// anthropicType is the API's word for an error; those of agents and of the gateway itself are Eliza's.
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

// anthropicError answers with an error as Anthropic's API does.
func anthropicError(w http.ResponseWriter, r *http.Request, e *server.Error) {
	id := server.RequestID(r.Context())
	w.Header().Set("Request-Id", id)
	server.WriteRawJSON(w, e.Status, anthropic.AppendError(nil, anthropicType(e), e.Message, id))
}

// openaiType is the API's word for an error; its code is Leat's reason.
func openaiType(e *server.Error) string {
	switch {
	case e.Status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case e.Status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

// openaiCode is Leat's reason, unless the API has a word of its own.
func openaiCode(e *server.Error) string {
	if e.Reason == server.ReasonUnauthorized {
		return "invalid_api_key"
	}
	return e.Reason
}

func openaiParam(e *server.Error) string {
	switch e.Reason {
	case reasonModel:
		return "model"
	case reasonTools:
		return "tools"
	}
	return ""
}

// openaiError answers with an error as OpenAI's API does.
func openaiError(w http.ResponseWriter, _ *http.Request, e *server.Error) {
	server.WriteRawJSON(w, e.Status, openaichat.AppendError(nil, openaiType(e), openaiCode(e), openaiParam(e), e.Message))
}

// eitherError answers in the shape of the API whose client asks, on a path that both have.
func eitherError(w http.ResponseWriter, r *http.Request, e *server.Error) {
	if isAnthropic(r) {
		anthropicError(w, r, e)
		return
	}
	openaiError(w, r, e)
}

// isAnthropic reports whether a client of Anthropic's API asks: all of them send their version.
func isAnthropic(r *http.Request) bool {
	return r.Header.Get("Anthropic-Version") != "" || strings.HasPrefix(r.URL.Path, "/v1/messages")
}
