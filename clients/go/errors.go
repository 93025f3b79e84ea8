package leat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

var (
	// ErrStop is returned by a callback to end the call, such as Follow, without an error.
	ErrStop = errors.New("leat: stop following")
	// ErrToken wraps the error of a Client's TokenSource.
	ErrToken = errors.New("leat: no token")
	// ErrForeign reports a file that isn't stored at the gateway, but only referred to.
	ErrForeign = errors.New("leat: the file is not at the gateway")
	// ErrProtocol reports that the server isn't a Leat gateway, or speaks another version of the protocol.
	ErrProtocol = errors.New("leat: not the protocol of this client")
)

// Error is the gateway's response to a request that it refused or that failed.
type Error struct {
	Status  int    // HTTP status; 0 for an error frame in a stream
	Message string // for people
	Reason  string // for programs, such as "unknown_agent"; see docs/protocol.md
	// Rejected is true if the gateway understood a command and refused it, so that the command had no effect.
	Rejected bool
	// RetryAfter is the wait that the gateway asks for before a retry, or 0.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	if e.Reason == "" || e.Message == "" {
		return fmt.Sprintf("leat: %s%s (status %d)", e.Message, e.Reason, e.Status)
	}
	return "leat: " + e.Message
}

// Temporary reports whether the same request may succeed later.
func (e *Error) Temporary() bool {
	if e.Reason == "damaged" {
		return false // stored data stays damaged
	}
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case 0:
		return e.Reason == "unavailable" || e.Reason == "internal" || e.Reason == "timeout"
	}
	return e.Status >= 500 && e.Status != http.StatusNotImplemented
}

// maxRetryAfter is the longest Retry-After that is accepted, in seconds: a day.
const maxRetryAfter = 24 * 60 * 60

// maxErrorBody is the number of bytes of an error body that are read.
const maxErrorBody = 64 << 10

// errorOf returns the error for a response that isn't a success.
func errorOf(r *http.Response) *Error {
	e := &Error{Status: r.StatusCode}
	if s, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && s >= 0 {
		e.RetryAfter = min(time.Duration(s), maxRetryAfter) * time.Second
	}
	var body struct {
		Error    string `json:"error"`
		Reason   string `json:"reason"`
		Rejected bool   `json:"rejected"`
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxErrorBody))
	if err != nil || json.Unmarshal(b, &body) != nil || body.Error == "" {
		// A body that isn't the gateway's JSON comes from a proxy.
		e.Message = "the server responded with " + r.Status
		return e
	}
	e.Message, e.Reason, e.Rejected = body.Error, body.Reason, body.Rejected
	return e
}

// temporary reports whether a retry may succeed. It returns false for an [*Error] that isn't temporary, an invalid URL, and
// [ErrProtocol]. All other errors are those of the network or of TokenSource, which may go away.
func temporary(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Temporary()
	}
	if bad, ok := errors.AsType[*url.Error](err); ok && bad.Op == "parse" {
		return false // the URL is invalid
	}
	return !errors.Is(err, ErrProtocol)
}
