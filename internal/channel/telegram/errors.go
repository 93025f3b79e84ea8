package telegram

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

// apiError is a refusal by the Bot API.
type apiError struct {
	// Method is the method of the API. The address isn't part of the error, because it contains the token.
	Method      string
	Code        int
	Description string
	// RetryAfter is set if Code is 429: no request for the chat is allowed before.
	RetryAfter time.Duration
	// MigratedTo is the new id of a group that became a supergroup, or 0.
	MigratedTo int64
}

// Error names the method and the refusal in the server's words, which say most to an operator.
func (e *apiError) Error() string {
	return fmt.Sprintf("telegram: %s: %d %s", e.Method, e.Code, e.Description)
}

// has reports whether an error is a refusal whose description contains one of the texts. The Bot API has no other codes for the
// reasons of a 400.
func has(err error, texts ...string) bool {
	description := live.Refusal[apiError](err).Description
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(description, text) })
}

// code returns the code of a refusal, or 0.
func code(err error) int { return live.Refusal[apiError](err).Code }

// isUnmodified reports that the message already shows what an edit wanted to show, so the edit has succeeded.
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

// isTerminal reports that nothing can be sent to the chat, for example because the person has blocked the bot.
func isTerminal(err error) bool {
	c := code(err)
	return c == http.StatusUnauthorized || c == http.StatusForbidden || has(err, "chat not found", "PEER_ID_INVALID", "group chat was deactivated")
}

// explain returns the error of a request in the form that a [live.Chat] returns. If the chat refuses something that a message can do
// without, or has another id now, that is changed for the next request.
func (t *chat) explain(err error) error {
	refusal, ok := errors.AsType[*apiError](err)
	is := func(meaning error) error { return fmt.Errorf("%w: %w", meaning, err) }
	switch {
	case !ok:
		return err
	case isUnmodified(err):
		return nil
	case refusal.Code == http.StatusTooManyRequests:
		return &live.Penalty{Wait: refusal.RetryAfter, Err: err}
	case refusal.Code >= http.StatusInternalServerError:
		return is(live.ErrUnsent)
	case isThreadMissing(err) && t.at.thread != 0:
		t.at.thread = 0
		return is(live.ErrRepeat)
	case refusal.MigratedTo != 0 && refusal.MigratedTo != t.at.chat:
		t.at.chat = refusal.MigratedTo
		return is(live.ErrRepeat)
	case refusal.Method == "sendRichMessageDraft" && !has(err, "TEXTDRAFT_PEER_INVALID") && !isTerminal(err):
		// A text can exceed the limits of rich messages on blocks and nesting, so a refusal concerns this delivery only, unless the
		// server doesn't know the method.
		t.noRich = true
		if refusal.Code == http.StatusNotFound {
			t.c.noRich.Store(true)
		}
		return is(live.ErrRepeat)
	case isMarkupRefused(err) && !t.isPlain:
		t.isPlain = true
		return is(live.ErrRepeat)
	case strings.HasSuffix(refusal.Method, "Draft") && isDraftRefused(err):
		return is(live.ErrNoDrafts)
	case isMissing(err):
		return is(live.ErrMissing)
	case isTerminal(err):
		return is(channel.ErrUnreachable)
	}
	return err
}
