package slack

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

// The errors of the API that have a consequence.
const (
	// The names of the other errors are used once, so they are written where they matter.
	reasonLimited    = "ratelimited"
	reasonConflict   = "streaming_state_conflict"
	reasonNotStream  = "message_not_in_streaming_state"
	reasonStopped    = "stopped_by_user"
	reasonNoText     = "no_text"
	reasonNoScope    = "missing_scope"
	reasonNotMessage = "message_not_found"
)

// apiError is a refusal by the API. Slack answers most refusals with the status 200, so the reason is the only distinction.
type apiError struct {
	Method string
	Reason string // the error of the API, such as channel_not_found
	Scope  string // that the token lacks, or empty
	// RetryAfter is set if the request came too early: none is allowed before. IsOwn is set if the bot itself has found that out.
	RetryAfter time.Duration
	IsOwn      bool
}

// Error names the method and the reason, and the scope that the app lacks: an operator has to add it.
func (e *apiError) Error() string {
	if e.Scope != "" {
		return fmt.Sprintf("slack: %s: %s (%s)", e.Method, e.Reason, e.Scope)
	}
	return fmt.Sprintf("slack: %s: %s", e.Method, e.Reason)
}

// unsent returns the error of a request that took no effect.
func unsent(method string, err error) error {
	return fmt.Errorf("slack: %s: %w (%w)", method, live.ErrUnsent, err)
}

// is reports whether an error is a refusal for one of the reasons.
func is(err error, reasons ...string) bool {
	return slices.Contains(reasons, live.Refusal[apiError](err).Reason)
}

// retryAfter returns how long the server has asked to wait, or 0.
func retryAfter(err error) time.Duration { return live.Refusal[apiError](err).RetryAfter }

// isOwnLimit reports that a request was not made, to stay within the limit of its method. The method may be replaced by another one
// with a separate limit, for example a stream by a message.
func isOwnLimit(err error) bool { return live.Refusal[apiError](err).IsOwn }

// isUnknown reports whether a request may have taken effect.
func isUnknown(err error) bool { return errors.Is(err, live.ErrUnknown) }

// isRefusal reports whether an error is an answer of the API.
func isRefusal(err error) bool {
	_, ok := errors.AsType[*apiError](err)
	return ok
}

// isRefused reports that the token is not accepted, and will not be. Only an operator can change that, so the channel ends and shows
// the error.
func isRefused(err error) bool {
	return is(err, "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type")
}

// isNoStream reports that a stream can't be started there, but a message can perhaps be sent. The list is long because the reasons
// depend on the workspace, the app and the kind of the channel.
func isNoStream(err error) bool {
	return is(err, "channel_type_not_supported", "unknown_method", "method_deprecated", reasonNoScope, "no_permission", "missing_recipient_user_id",
		"missing_recipient_team_id", "user_not_found", "team_not_found", "invalid_arguments", "invalid_thread_ts", "invalid_chunks", "restricted_action",
		"messages_tab_disabled", "enterprise_is_restricted")
}

// explain returns the error of a request in the form that a [live.Chat] returns. Reasons that aren't listed are refusals that a
// repetition would not change.
func explain(err error) error {
	meaning := func(m error) error { return fmt.Errorf("%w: %w", m, err) }
	switch {
	case err == nil:
		return nil
	case retryAfter(err) > 0:
		return &live.Penalty{Wait: retryAfter(err), Err: err}
	case is(err, "rate_limited", "message_limit_exceeded"): // the channel has too many messages; the API names no time
		return &live.Penalty{Wait: time.Minute, Err: err}
	case is(err, "internal_error", "fatal_error", "request_timeout"): // "some aspect of the operation may have succeeded"
		return meaning(live.ErrUnknown)
	case is(err, "service_unavailable", "team_added_to_org", "external_channel_migrating"):
		return meaning(live.ErrUnsent)
	case is(err, reasonNotMessage, "cant_update_message", "cant_delete_message", "edit_window_closed", "message_not_owned_by_app"):
		return meaning(live.ErrMissing)
	case isRefused(err), is(err, "channel_not_found", "not_in_channel", "is_archived", "is_inactive", "restricted_action", "messages_tab_disabled",
		"ekm_access_denied", "thread_not_found", "restricted_action_thread_locked", "restricted_action_read_only_channel"):
		return meaning(channel.ErrUnreachable)
	}
	return err
}
