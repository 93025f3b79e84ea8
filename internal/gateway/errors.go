package gateway

import (
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

var (
	// ErrNotFound is returned if something doesn't exist, or if the principal must not learn that it exists.
	ErrNotFound = errors.New("not found")
	// ErrForbidden is returned if the principal may see something but not do the action.
	ErrForbidden = errors.New("forbidden")
	// ErrExists is returned if an id is in use, or was used by a conversation that is deleted.
	ErrExists = errors.New("already exists")
	// ErrUnavailable is returned if the gateway can't do something now, because it is stopping or commits fail. A retry can succeed.
	ErrUnavailable = errors.New("unavailable")
	// ErrDamaged is returned if the stored data of a conversation are damaged. Such a conversation can only be deleted.
	ErrDamaged = errors.New("the conversation is damaged")
	// ErrTurnOver is returned if a turn has ended.
	ErrTurnOver = errors.New("turn is over")
	// ErrNotKept is returned if there is no capture of a turn.
	ErrNotKept = errors.New("the bytes of this turn are not kept: it is too old, its agent exchanges none, or recording is off")
	// ErrClosed is returned by a gateway that has stopped.
	ErrClosed = errors.New("gateway closed")
)

// Rejection is the refusal of a command, with a reason for programs and a message for people.
type Rejection struct {
	Reason  string
	Message string
	// RetryAfter is how long to wait before a retry; 0 if it is unknown.
	RetryAfter time.Duration
}

func (r *Rejection) Error() string { return r.Message }

// The reasons of rejections.
const (
	ReasonInvalid      = "invalid"         // the command itself is malformed
	ReasonConflict     = "conflict"        // the key was used with another body, or an id is taken
	ReasonUnknownAgent = "unknown_agent"   // no agent has that name
	ReasonUnknown      = "unknown"         // no such message, turn or request
	ReasonUnfinished   = "unfinished"      // a turn is unfinished
	ReasonFull         = "queue_full"      // too many turns wait
	ReasonAnswered     = "already_ended"   // the request was answered, or the turn ended
	ReasonDraining     = "draining"        // the gateway is stopping; try again
	ReasonDeleted      = "deleted"         // the conversation was deleted
	ReasonTooLarge     = "too_large"       // beyond a limit
	ReasonHeld         = "held"            // a legal hold protects it
	ReasonDialect      = "unknown_dialect" // no such dialect
	ReasonRateLimited  = "rate_limited"    // too many messages per minute
	ReasonNotRunning   = "not_running"     // the agent was stopped or paused
	ReasonQuota        = "quota"           // a quota of the user or the tenant is exceeded
)

// reject returns a refusal with a reason and a formatted message.
func reject(reason, format string, args ...any) *Rejection {
	return &Rejection{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// JournalError translates an error of the journal into the errors of this package. op names the operation that failed.
func JournalError(op string, err error) error {
	switch {
	case errors.Is(err, journal.ErrNotFound), errors.Is(err, journal.ErrDeleted):
		return ErrNotFound
	case errors.Is(err, journal.ErrExists):
		return ErrExists
	case errors.Is(err, journal.ErrFull), errors.Is(err, journal.ErrFenced), errors.Is(err, journal.ErrUnknown), errors.Is(err, journal.ErrClosed):
		return fmt.Errorf("%w: %s: %w", ErrUnavailable, op, err)
	case damaged(err):
		return fmt.Errorf("%w: %s: %w", ErrDamaged, op, err)
	}
	return fmt.Errorf("gateway: %s: %w", op, err)
}

// damaged reports whether an error means that the journal found a conversation damaged.
func damaged(err error) bool {
	_, ok := errors.AsType[*journal.DamageError](err)
	return ok
}

// ReasonFile is the reason of a rejection, and the code of a part's error, if the file of a message can't be read.
const ReasonFile = "file_unavailable"
