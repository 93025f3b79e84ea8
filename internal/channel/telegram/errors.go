package telegram

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

var (
	// errUnknown means that a request may have taken effect: the connection was made, but no answer arrived.
	errUnknown = errors.New("telegram: no answer; the request may have taken effect")
	// errUnsent means that a request took no effect, because no connection was made.
	errUnsent = errors.New("telegram: no connection")
)

// apiError is a refusal by the Bot API.
type apiError struct {
	Method      string
	Code        int
	Description string
	// RetryAfter is set if Code is 429: no request for the chat is allowed before.
	RetryAfter time.Duration
	// MigratedTo is the new id of a group that became a supergroup, or 0.
	MigratedTo int64
}

func (e *apiError) Error() string {
	return fmt.Sprintf("telegram: %s: %d %s", e.Method, e.Code, e.Description)
}

// has reports whether an error is a refusal whose description contains one of the texts. The Bot API has no other codes for the
// reasons of a 400.
func has(err error, texts ...string) bool {
	refusal, ok := errors.AsType[*apiError](err)
	if !ok {
		return false
	}
	for _, text := range texts {
		if strings.Contains(refusal.Description, text) {
			return true
		}
	}
	return false
}

// code returns the code of a refusal, or 0.
func code(err error) int {
	if refusal, ok := errors.AsType[*apiError](err); ok {
		return refusal.Code
	}
	return 0
}

func isUnmodified(err error) bool { return has(err, "message is not modified") }

// isMissing reports that a message can't be edited or deleted (any more).
func isMissing(err error) bool {
	return has(err, "message to edit not found", "message can't be edited", "message to delete not found", "message can't be deleted", "MESSAGE_ID_INVALID")
}

// isMarkupRefused reports that the formatting was refused, so that the text can be sent without it.
func isMarkupRefused(err error) bool { return has(err, "can't parse entities", "ENTITY", "entity") }

// isDraftRefused reports that the chat or the server has no drafts.
func isDraftRefused(err error) bool {
	return code(err) == http.StatusNotFound || has(err, "TEXTDRAFT_PEER_INVALID", "unknown method", "unsupported", "can't be used", "can be used only")
}

// isThreadMissing reports that the topic of the chat no longer exists.
func isThreadMissing(err error) bool { return has(err, "message thread not found") }

// isPassing reports that a refusal may not last: the server has a fault.
func isPassing(err error) bool {
	return errors.Is(err, errUnsent) || code(err) >= http.StatusInternalServerError
}

// isTerminal reports that nothing can be sent to the chat, for example because the person has blocked the bot.
func isTerminal(err error) bool {
	c := code(err)
	return c == http.StatusUnauthorized || c == http.StatusForbidden || has(err, "chat not found", "PEER_ID_INVALID", "group chat was deactivated")
}
