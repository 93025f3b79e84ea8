package matrix

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

// Codes of the specification.
const (
	// The request came too early. The answer says how long to wait.
	codeLimited = "M_LIMIT_EXCEEDED"
	// The bot isn't a member of the room, or may not write there.
	codeForbidden = "M_FORBIDDEN"
	// The event, the account data or the state doesn't exist. An event is also hidden from those who joined later.
	codeNotFound = "M_NOT_FOUND"
	// The access token was revoked, or the device was signed out.
	codeUnknownToken = "M_UNKNOWN_TOKEN"
	codeMissingToken = "M_MISSING_TOKEN"
	// An administrator has deactivated the account.
	codeDeactivated = "M_USER_DEACTIVATED"
)

// apiError is a refusal by a homeserver.
type apiError struct {
	// Route are the words of the path, because ids and tokens must not appear in logs.
	Route  string
	Status int
	Code   string // errcode
	// Text is written by the homeserver for people.
	Text string
	// RetryAfter is how long the homeserver asks to wait, if Code is M_LIMIT_EXCEEDED.
	RetryAfter time.Duration
}

// Error names the route without ids, the status, the errcode and the homeserver's text.
func (e *apiError) Error() string {
	return fmt.Sprintf("matrix: %s: %d %s: %s", e.Route, e.Status, e.Code, e.Text)
}

// code returns the errcode of a refusal, or "".
func code(err error) string { return live.Refusal[apiError](err).Code }

// status returns the HTTP status of a refusal, or 0.
func status(err error) int { return live.Refusal[apiError](err).Status }

// isFinal reports that the homeserver has refused a request for a reason that doesn't pass.
func isFinal(err error) bool {
	s := status(err)
	return s != 0 && s != http.StatusTooManyRequests && s < http.StatusInternalServerError
}

// isTokenRefused reports that the access token isn't valid (any more). The channel then ends with an error, because only an operator
// can give it another token.
func isTokenRefused(err error) bool {
	c := code(err)
	return c == codeUnknownToken || c == codeMissingToken || c == codeDeactivated
}

// retryAfter returns how long the homeserver has asked to wait, or 0.
func retryAfter(err error) time.Duration { return live.Refusal[apiError](err).RetryAfter }

// dispensable returns the error of a request that an answer can do without. A room may forbid the bot to redact events or to show that
// it types, and still take its messages.
func dispensable(err error) error {
	if refusal, ok := errors.AsType[*apiError](err); ok && errors.Is(err, channel.ErrUnreachable) {
		return refusal
	}
	return err
}

// explain returns the error of a request in the form that a [live.Chat] returns. A penalty counts for all rooms, and a message that
// is too large is sent without its HTML the next time.
func (t *chat) explain(err error) error {
	is := func(meaning error) error { return fmt.Errorf("%w: %w", meaning, err) }
	switch s := status(err); {
	case s == 0:
		return err
	case code(err) == codeLimited: // Synapse counts the events of a user in all rooms together
		t.c.block(time.Now().Add(retryAfter(err)))
		return &live.Penalty{Wait: retryAfter(err), IsGlobal: true, Err: err}
	case s >= http.StatusInternalServerError: // the request may be repeated, whatever it has done
		return is(live.ErrUnknown)
	case s == http.StatusRequestEntityTooLarge && !t.isPlain:
		t.isPlain = true
		return is(live.ErrRepeat)
	case code(err) == codeForbidden || isTokenRefused(err):
		return is(channel.ErrUnreachable)
	}
	return err
}
