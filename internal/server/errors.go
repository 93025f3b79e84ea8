// The errors of the API and their JSON: one place decides the status, the code and the text for each error of the gateway.

package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
)

var (
	// errOpen reports a server without tokens that would listen on an address that other machines can reach.
	errOpen = errors.New("server: without a token, only loopback addresses are allowed; configure a token or listen on 127.0.0.1")
	// ErrShutdown is the cause of the end of a stream when the server stops.
	ErrShutdown = errors.New("server: shutting down")
	// ErrExpired reports a token that was valid and has expired. It is also the cause of the end of a stream whose token
	// expires.
	ErrExpired = errors.New("server: the token has expired")
	// ErrNotNow reports that a token could not be checked, because the verifier's keys are not available now.
	ErrNotNow = errors.New("server: tokens can't be checked at the moment")
)

// Error is an error for the client. Reason is for programs and part of the protocol, Message is for people.
//
// Handlers return it directly if the client can do something about the fault. Its Message is shown to
// people, so it names the faulty value and what to send instead, and never contains secrets or paths of
// the machine.
type Error struct {
	Status  int    `json:"-"`
	Message string `json:"error"`
	Reason  string `json:"reason,omitempty"`
	// Rejected reports that a command was understood and refused.
	Rejected bool `json:"rejected,omitempty"`
	// RetryAfter is when the client should retry. If it is 0, the error makes no statement.
	RetryAfter time.Duration `json:"-"`
}

func (e *Error) Error() string { return e.Message }

// Errorf returns an Error without RetryAfter.
func Errorf(status int, reason, format string, args ...any) *Error {
	return &Error{Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns the error of a request that the client must correct before it sends it again: status 400.
func Invalid(format string, args ...any) *Error {
	return Errorf(http.StatusBadRequest, ReasonInvalid, format, args...)
}

// Reasons of errors, except for refused commands: those are in package gateway.
const (
	ReasonUnauthorized = "unauthorized" // no token, or an invalid one
	ReasonExpired      = "expired"      // the token was valid and has expired
	ReasonAttempts     = "attempts"     // too many wrong tokens
	ReasonForbidden    = "forbidden"
	ReasonNotFound     = "not_found"
	ReasonMethod       = "method_not_allowed"
	ReasonExists       = "conflict"
	ReasonInvalid      = gateway.ReasonInvalid
	ReasonTooLarge     = gateway.ReasonTooLarge
	ReasonTurnOver     = gateway.ReasonAnswered
	ReasonUnavailable  = "unavailable" // temporary
	ReasonStream       = "invalid_stream"
	ReasonTimeout      = "timeout"
	ReasonInternal     = "internal"
	ReasonDamaged      = "damaged"  // stored data is unreadable
	ReasonBusy         = "busy"     // too many of something at the same time
	reasonNotKept      = "not_kept" // no longer stored
)

// statusClosed is the status that the log has for a request whose client disconnected. No client gets it.
const statusClosed = 499

const (
	// retrySoon is the retry delay while the gateway drains or its commits fail.
	retrySoon = 2 * time.Second
	// retryRestart is the retry delay of a stream at a restart. The next process is ready earlier.
	retryRestart = 250 * time.Millisecond
)

// Restarting reports whether err means that this process is about to stop, and that the client should reconnect to the next
// one.
func Restarting(err error) bool {
	return errors.Is(err, ErrShutdown) || errors.Is(err, feed.ErrClosed) || errors.Is(err, gateway.ErrClosed)
}

// rejections maps the reasons of commands that the gateway refused to a status. A reason that is missing
// here gets 409.
var rejections = map[string]int{
	gateway.ReasonInvalid:      http.StatusBadRequest,
	gateway.ReasonConflict:     http.StatusConflict,
	gateway.ReasonUnknownAgent: http.StatusBadRequest,
	gateway.ReasonDialect:      http.StatusBadRequest,
	gateway.ReasonUnknown:      http.StatusNotFound,
	gateway.ReasonUnfinished:   http.StatusConflict,
	gateway.ReasonHeld:         http.StatusConflict,
	gateway.ReasonFull:         http.StatusTooManyRequests,
	gateway.ReasonAnswered:     http.StatusConflict,
	gateway.ReasonDraining:     http.StatusServiceUnavailable,
	gateway.ReasonDeleted:      http.StatusNotFound,
	gateway.ReasonTooLarge:     http.StatusRequestEntityTooLarge,
	gateway.ReasonRateLimited:  http.StatusTooManyRequests,
	gateway.ReasonNotRunning:   http.StatusServiceUnavailable,
	gateway.ReasonQuota:        http.StatusTooManyRequests,
	gateway.ReasonUpstream:     http.StatusBadGateway,
}

// descriptions maps errors whose description is always the same.
var descriptions = []struct {
	err error
	Error
}{
	{feed.ErrDeleted, Error{Status: http.StatusNotFound, Reason: gateway.ReasonDeleted, Message: "the conversation was deleted"}},
	{feed.ErrNoMessage, Error{Status: http.StatusNotFound, Reason: gateway.ReasonUnknown, Message: "unknown message"}},
	{ErrExpired, Error{Status: http.StatusUnauthorized, Reason: ReasonExpired, Message: "the token has expired; send a new one"}},
	{ErrNotNow, Error{Status: http.StatusServiceUnavailable, Reason: ReasonUnavailable, Message: "user tokens can't be checked at the moment; try again soon", RetryAfter: retrySoon}},
	{gateway.ErrNotKept, Error{Status: http.StatusNotFound, Reason: reasonNotKept, Message: gateway.ErrNotKept.Error()}},
	{gateway.ErrNotFound, Error{Status: http.StatusNotFound, Reason: ReasonNotFound, Message: "not found"}},
	{gateway.ErrForbidden, Error{Status: http.StatusForbidden, Reason: ReasonForbidden, Message: "forbidden"}},
	{gateway.ErrExists, Error{Status: http.StatusConflict, Reason: ReasonExists, Message: "the id already exists"}},
}

// Describe converts an error for the client. It does not reveal the text of an unknown error: that becomes status 500, and the
// caller must log err.
//
// Errors that have their own description come first, then refusals of the gateway and faults of the body,
// then sentinels. An error that wraps several of them is described by
// the first in this order. The caller must not change the result, which may be shared.
func Describe(err error) *Error {
	var described *Error
	var rejected *gateway.Rejection
	var tooLarge *http.MaxBytesError
	var bad *dialect.Error
	var damage *journal.DamageError
	switch {
	case errors.As(err, &described):
		return described
	case errors.As(err, &rejected):
		status, ok := rejections[rejected.Reason]
		if !ok {
			status = http.StatusConflict
		}
		e := &Error{Status: status, Reason: rejected.Reason, Message: rejected.Message, Rejected: true, RetryAfter: rejected.RetryAfter}
		if e.RetryAfter == 0 && (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests) {
			e.RetryAfter = retrySoon
		}
		return e
	case errors.As(err, &tooLarge):
		return Errorf(http.StatusRequestEntityTooLarge, ReasonTooLarge, "the body is larger than %d bytes", tooLarge.Limit)
	case errors.As(err, &bad):
		return &Error{Status: http.StatusUnprocessableEntity, Reason: ReasonStream, Message: bad.Error()}
	}
	for _, d := range descriptions {
		if errors.Is(err, d.err) {
			return &d.Error
		}
	}
	switch {
	case errors.Is(err, gateway.ErrTurnOver):
		return &Error{Status: http.StatusConflict, Reason: ReasonTurnOver, Message: err.Error()}
	case Restarting(err):
		return &Error{Status: http.StatusServiceUnavailable, Reason: ReasonUnavailable, Message: "the gateway is stopping; try again at once", RetryAfter: retryRestart}
	case errors.Is(err, gateway.ErrUnavailable), errors.Is(err, feed.ErrLost):
		return &Error{Status: http.StatusServiceUnavailable, Reason: ReasonUnavailable, Message: "the gateway can't do this now; try again in a moment", RetryAfter: retrySoon}
	case errors.Is(err, gateway.ErrDamaged), errors.As(err, &damage):
		return &Error{Status: http.StatusInternalServerError, Reason: ReasonDamaged, Message: "this conversation is damaged in the gateway's store and can't be read; the gateway's log says what to do"}
	case errors.Is(err, event.ErrInvalid):
		return &Error{Status: http.StatusBadRequest, Reason: ReasonInvalid, Message: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Status: http.StatusGatewayTimeout, Reason: ReasonTimeout, Message: "timeout: the request may still succeed; repeat it with the same key to get its result"}
	case errors.Is(err, context.Canceled):
		return &Error{Status: statusClosed, Reason: ReasonTimeout, Message: "cancelled"}
	}
	return Errorf(http.StatusInternalServerError, ReasonInternal, "internal error")
}

// errorBody is an Error in a REST response.
type errorBody struct {
	*Error
	RetryAfter int64 `json:"retryAfter,omitempty"` // milliseconds, as in the frames of streams
}

// writePlainError responds with an error. The handler must not have written anything.
func writePlainError(w http.ResponseWriter, err error) {
	e := Describe(err)
	setErrorHeaders(w, e)
	WriteJSON(w, e.Status, errorBody{e, e.RetryAfter.Milliseconds()})
}

// errorWriter writes the status and the body of an error in the format of certain clients. The headers for retry and
// authentication are set before.
type errorWriter func(http.ResponseWriter, *http.Request, *Error)

// ErrorsBelow sets the format of errors for paths with a prefix that no route handles.
//
// It is called while routes are registered. If prefixes overlap, it is undefined which of them applies.
func (s *Server) ErrorsBelow(prefix string, write errorWriter) {
	if s.shapes == nil {
		s.shapes = map[string]errorWriter{}
	}
	s.shapes[prefix] = write
}

// writeError is writePlainError in the endpoint's format. e may be nil.
//
// The headers are the same in every format.
func (s *Server) writeError(e *endpoint, w http.ResponseWriter, r *http.Request, err error) {
	var write errorWriter
	if e != nil {
		write = e.Errors
	} else {
		for prefix, fn := range s.shapes {
			if strings.HasPrefix(r.URL.Path, prefix) {
				write = fn
			}
		}
	}
	if write == nil {
		writePlainError(w, err)
		return
	}
	d := Describe(err)
	setErrorHeaders(w, d)
	write(w, r, d)
}

// setErrorHeaders sets Retry-After in whole seconds, rounded up so that a client never retries too early,
// and the challenge that HTTP requires with 401 (RFC 9110, section 15.5.2).
func setErrorHeaders(w http.ResponseWriter, e *Error) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="leat"`)
	}
}
