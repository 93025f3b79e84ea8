package discord

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/channel/live"
)

// Codes of refusals that have a meaning for the bot.
const (
	// The names are those of the documentation's list of JSON error codes. The channel was deleted, or the bot was removed from its
	// server.
	codeUnknownChannel = 10003
	// A person or a moderator has deleted the message. The engine sends another one.
	codeUnknownMessage = 10008
	// The reply to an interaction is gone, or its token has expired. A normal message replaces it.
	codeUnknownWebhook = 10015
	// The interaction wasn't confirmed in time. The platform has already shown that as an error.
	codeUnknownInteraction = 10062
	codeOldMessage         = 30046 // too many edits of a message that is older than an hour
	// An earlier confirmation has arrived, although its answer didn't.
	codeAcknowledged = 40060
	// The bot can't see the channel. An administrator has to grant it access.
	codeNoAccess = 50001
	// Only messages of the bot can be edited. It means that an id is wrong.
	codeNotOwn = 50005
	// The person accepts no direct messages from the bot.
	codeClosedDirect = 50007
	// The channel has no messages, for example a category.
	codeNotText = 50008
	// The bot may see the channel, but not write in it.
	codeNoPermission = 50013
	// The token of the interaction has expired after 15 minutes.
	codeWebhookToken = 50027
	// A field of the body is wrong. The details say which, and an error of the bot is the usual cause.
	codeInvalidForm = 50035
	// The thread is archived. A new message opens it again, an edit doesn't.
	codeArchived = 50083
	// Direct messages need a server that the bot and the person share.
	codeNoCommonServer = 50278
	codeNoHistory      = 160002 // a reply needs the permission to read the history
	// Only moderators may write in the thread.
	codeThreadLocked = 160005
)

// apiError is a refusal by the API.
type apiError struct {
	// Route is the method and the template of the path, without ids and tokens.
	Route string
	// Status is that of HTTP. Code is that of the platform, or 0 if the answer had none.
	Status int
	Code   int
	// Message is the platform's text for people, or that of the status.
	Message string
	// Details name the fields of an invalid form and what is wrong with them.
	Details string
	// RetryAfter is set if Status is 429: no such request is allowed before. Global means none at all.
	RetryAfter time.Duration
	Global     bool
}

// Error contains the route without ids and tokens, so it can be logged and shown to an operator.
func (e *apiError) Error() string {
	text := fmt.Sprintf("discord: %s: %d %s", e.Route, e.Status, e.Message)
	if e.Code != 0 {
		text += fmt.Sprintf(" (code %d)", e.Code)
	}
	if e.Details != "" {
		text += ": " + e.Details
	}
	return text
}

// decodeError returns the error of a response that isn't a success. A proxy in front of the API has no body in the API's form; what it
// refuses it has not passed on, and the outcome of what it fails to pass on is unknown. A wait is rounded up to milliseconds: one
// that is a little too short would be refused again.
func decodeError(route string, status int, header http.Header, raw []byte) error {
	var body struct {
		Message    string          `json:"message"`
		Code       int             `json:"code"`
		Errors     json.RawMessage `json:"errors"`
		RetryAfter float64         `json:"retry_after"` // seconds
		Global     bool            `json:"global"`
	}
	isAPI := json.Unmarshal(raw, &body) == nil && body.Message != ""
	e := &apiError{Route: route, Status: status, Code: body.Code, Message: cmp.Or(body.Message, http.StatusText(status)), Details: details(body.Errors)}
	switch {
	case status == http.StatusTooManyRequests:
		seconds := body.RetryAfter
		if seconds == 0 {
			seconds, _ = strconv.ParseFloat(header.Get("Retry-After"), 64) // 0 if it is missing
		}
		e.RetryAfter = time.Duration(math.Ceil(seconds*1000)) * time.Millisecond
		e.Global = body.Global || !isAPI || header.Get("X-RateLimit-Global") != ""
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("%w: %w", live.ErrUnknown, e)
	}
	return e
}

// details returns the first field of an invalid form and what is wrong with it. The path through the form is joined by colons, as in
// "content: Must be 2000 or fewer in length.".
func details(raw json.RawMessage) string {
	var problems []struct {
		Message string `json:"message"`
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || len(fields) == 0 {
		return ""
	}
	if json.Unmarshal(fields["_errors"], &problems) == nil && len(problems) > 0 {
		return problems[0].Message
	}
	name := slices.Min(slices.Collect(maps.Keys(fields)))
	return name + ": " + details(fields[name])
}

// refusal returns the refusal in an error, or an empty one. The zero value has the status 0 and no code, so callers can compare
// fields without a test for nil.
func refusal(err error) apiError { return *live.Refusal[apiError](err) }

// hasCode reports whether an error is a refusal with one of the codes.
func hasCode(err error, codes ...int) bool {
	code := refusal(err).Code
	return code != 0 && slices.Contains(codes, code)
}

// isMissing reports that a message can't be edited or deleted (any more). One in an archived thread can't be, but a new message
// opens the thread again.
func isMissing(err error) bool {
	return hasCode(err, codeUnknownMessage, codeOldMessage, codeNotOwn, codeArchived)
}

// isReplyRefused reports that the message could be sent if it were not a reply.
func isReplyRefused(err error) bool {
	return hasCode(err, codeNoHistory) || hasCode(err, codeInvalidForm) && strings.HasPrefix(refusal(err).Details, "message_reference")
}

// isTerminal reports that nothing can be sent to the chat. The pipeline then stops sending to the chat until a person writes there
// again.
func isTerminal(err error) bool {
	return refusal(err).Status == http.StatusUnauthorized ||
		hasCode(err, codeUnknownChannel, codeNoAccess, codeClosedDirect, codeNotText, codeNoPermission, codeNoCommonServer, codeThreadLocked)
}
