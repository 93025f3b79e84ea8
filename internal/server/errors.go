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
	// ErrOpen says that a server without a token was to listen where others than this machine reach it.
	ErrOpen = errors.New("server: without a token only loopback addresses may be listened on")
	// ErrShutdown is the cause with which the server ends streams.
	ErrShutdown = errors.New("server: shutting down")
	// ErrExpired says that a token was good and is too old now. It is the cause with which streams end when theirs is.
	ErrExpired = errors.New("server: the token has expired")
	// ErrNotNow says that it can't be found out now whose a token is.
	ErrNotNow = errors.New("server: tokens can't be checked now")
)

// Error is what a client is told. Reason is for programs and part of the protocol, Message for people.
type Error struct {
	Status  int    `json:"-"`
	Message string `json:"error"`
	Reason  string `json:"reason,omitempty"`
	// Rejected says that a command was understood and refused.
	Rejected bool `json:"rejected,omitempty"`
	// RetryAfter is when it is worth to try again; 0 says nothing.
	RetryAfter time.Duration `json:"-"`
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an Error.
func Errorf(status int, reason, format string, args ...any) *Error {
	return &Error{Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// The reasons of errors that are not a command's refusal; those are the gateway's.
const (
	ReasonUnauthorized = "unauthorized" // no token, or a wrong one
	ReasonExpired      = "expired"      // the token was good, and is too old now
	ReasonAttempts     = "attempts"     // too many wrong tokens
	ReasonForbidden    = "forbidden"
	ReasonNotFound     = "not_found"
	ReasonMethod       = "method_not_allowed"
	ReasonExists       = "conflict"
	ReasonInvalid      = gateway.ReasonInvalid
	ReasonTooLarge     = gateway.ReasonTooLarge
	ReasonTurnOver     = gateway.ReasonAnswered
	ReasonUnavailable  = "unavailable" // the gateway can't now and may soon
	ReasonStream       = "invalid_stream"
	ReasonTimeout      = "timeout"
	ReasonInternal     = "internal"
	ReasonDamaged      = "damaged"  // what is stored can't be read
	ReasonBusy         = "busy"     // too many of something at once
	ReasonNotKept      = "not_kept" // it was there, and is kept no more
)

// statusClosed is what the log shows of a request whose client went away; nobody reads it.
const statusClosed = 499

const (
	// retrySoon is how long a client should stay away from a gateway that drains or whose commits fail.
	retrySoon = 2 * time.Second
	// retryRestart is how long the reader of a stream should: a gateway that takes another one's place is there in less.
	retryRestart = 250 * time.Millisecond
)

// Restarting reports whether an error says that this process is about to end, and that the client is to come back to the next.
func Restarting(err error) bool {
	return errors.Is(err, ErrShutdown) || errors.Is(err, feed.ErrClosed) || errors.Is(err, gateway.ErrClosed)
}

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

// Describe says what a client is told of an error. The text of one that it does not know stays here: such an Error has
// the status 500, and the caller logs err.
func Describe(err error) *Error {
	var known *Error
	var rejected *gateway.Rejection
	var tooLarge *http.MaxBytesError
	var bad *dialect.Error
	var damage *journal.DamageError
	switch {
	case errors.As(err, &known):
		return known
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
	case errors.Is(err, feed.ErrDeleted):
		return &Error{Status: http.StatusNotFound, Reason: gateway.ReasonDeleted, Message: "the conversation was deleted"}
	case errors.Is(err, feed.ErrNoMessage):
		return &Error{Status: http.StatusNotFound, Reason: gateway.ReasonUnknown, Message: "there is no such message"}
	case errors.Is(err, ErrExpired):
		return &Error{Status: http.StatusUnauthorized, Reason: ReasonExpired, Message: "the token has expired; come back with a new one"}
	case errors.Is(err, ErrNotNow):
		return &Error{Status: http.StatusServiceUnavailable, Reason: ReasonUnavailable, Message: "tokens of users can't be checked now; try again in a moment", RetryAfter: retrySoon}
	case errors.Is(err, gateway.ErrNotKept):
		return &Error{Status: http.StatusNotFound, Reason: ReasonNotKept, Message: gateway.ErrNotKept.Error()}
	case errors.Is(err, gateway.ErrNotFound):
		return &Error{Status: http.StatusNotFound, Reason: ReasonNotFound, Message: "not found"}
	case errors.Is(err, gateway.ErrForbidden):
		return &Error{Status: http.StatusForbidden, Reason: ReasonForbidden, Message: "forbidden"}
	case errors.Is(err, gateway.ErrExists):
		return &Error{Status: http.StatusConflict, Reason: ReasonExists, Message: "the id is taken"}
	case errors.Is(err, gateway.ErrTurnOver):
		return &Error{Status: http.StatusConflict, Reason: ReasonTurnOver, Message: err.Error()}
	case Restarting(err):
		return &Error{Status: http.StatusServiceUnavailable, Reason: ReasonUnavailable, Message: "the gateway is stopping; another one may follow at once", RetryAfter: retryRestart}
	case errors.Is(err, gateway.ErrUnavailable), errors.Is(err, feed.ErrLost):
		return &Error{Status: http.StatusServiceUnavailable, Reason: ReasonUnavailable, Message: "the gateway can't do this now; try again in a moment", RetryAfter: retrySoon}
	case errors.Is(err, gateway.ErrDamaged), errors.As(err, &damage):
		return &Error{Status: http.StatusInternalServerError, Reason: ReasonDamaged, Message: "this conversation is damaged in the gateway's store and can't be read; the gateway's log says what to do"}
	case errors.Is(err, event.ErrInvalid):
		return &Error{Status: http.StatusBadRequest, Reason: ReasonInvalid, Message: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Status: http.StatusGatewayTimeout, Reason: ReasonTimeout, Message: "it took too long; a repeat with the same key tells what became of it"}
	case errors.Is(err, context.Canceled):
		return &Error{Status: statusClosed, Reason: ReasonTimeout, Message: "cancelled"}
	}
	return &Error{Status: http.StatusInternalServerError, Reason: ReasonInternal, Message: "internal error"}
}

// errorBody is an Error as REST has it.
type errorBody struct {
	*Error
	RetryAfter int64 `json:"retryAfter,omitempty"` // milliseconds, as in the frames of streams
}

// WriteError answers a request with an error. Nothing may have been written before.
func WriteError(w http.ResponseWriter, err error) {
	e := Describe(err)
	setErrorHeaders(w, e)
	WriteJSON(w, e.Status, errorBody{e, e.RetryAfter.Milliseconds()})
}

// ErrorWriter writes the body of an error, with the status, in the shape that some clients know. Headers that say when to come
// back and what is lacking are set before.
type ErrorWriter func(http.ResponseWriter, *http.Request, *Error)

// ErrorsBelow has what is refused below a path, without a route that says how, answered in another shape than Leat's own.
func (s *Server) ErrorsBelow(prefix string, write ErrorWriter) {
	if s.shapes == nil {
		s.shapes = map[string]ErrorWriter{}
	}
	s.shapes[prefix] = write
}

// writeError is WriteError in the shape of the endpoint, which may be nil.
func (s *Server) writeError(e *endpoint, w http.ResponseWriter, r *http.Request, err error) {
	var write ErrorWriter
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
		WriteError(w, err)
		return
	}
	d := Describe(err)
	setErrorHeaders(w, d)
	write(w, r, d)
}

func setErrorHeaders(w http.ResponseWriter, e *Error) {
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="leat"`)
	}
}
