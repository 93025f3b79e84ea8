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
	// ErrStop, returned by a function that follows, ends the following without an error.
	ErrStop = errors.New("leat: stop following")
	// ErrToken says that a Client's TokenSource had no token to give.
	ErrToken = errors.New("leat: no token")
	// ErrProtocol says that what answers is no gateway of a version that this client knows.
	ErrProtocol = errors.New("leat: not the protocol of this client")
)

// Error is what the gateway says of a request that it did not carry out.
type Error struct {
	Status  int    // of HTTP; 0 for an error that came in a stream
	Message string // for people
	Reason  string // for programs, such as "unknown_agent"; see docs/protocol.md
	// Rejected says that a command was understood and refused.
	Rejected bool
	// RetryAfter is when a repeat is worth it; 0 says nothing.
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
		return false // what is stored stays as it is
	}
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case 0:
		return e.Reason == "unavailable" || e.Reason == "internal" || e.Reason == "timeout"
	}
	return e.Status >= 500 && e.Status != http.StatusNotImplemented
}

// maxRetryAfter bounds what is believed of a time to wait, in seconds: a day.
const maxRetryAfter = 24 * 60 * 60

// maxErrorBody bounds how much of an error's body is read, in bytes.
const maxErrorBody = 64 << 10

// errorOf reads an answer that is none of success.
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
		// Something between here and the gateway has answered.
		e.Message = "the server answered " + r.Status
		return e
	}
	e.Message, e.Reason, e.Rejected = body.Error, body.Reason, body.Rejected
	return e
}

// temporary reports whether a repeat may help: after every error but those that the gateway means.
func temporary(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Temporary()
	}
	var bad *url.Error
	if errors.As(err, &bad) && bad.Op == "parse" {
		return false // the address itself is wrong
	}
	return !errors.Is(err, ErrProtocol)
}
