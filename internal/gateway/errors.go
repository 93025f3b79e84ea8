package gateway

import (
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/store/journal"
)

var (
	// ErrNotFound says that there is no such thing, or none that the principal may know of.
	ErrNotFound = errors.New("not found")
	// ErrForbidden says that the principal may see the thing but not do this to it.
	ErrForbidden = errors.New("forbidden")
	// ErrExists says that the id is taken.
	ErrExists = errors.New("already exists")
	// ErrUnavailable says that the gateway can't do it now and may soon: it drains, or commits fail.
	ErrUnavailable = errors.New("unavailable")
	// ErrDamaged says that what is stored of the conversation is not what was written. It can only be deleted.
	ErrDamaged = errors.New("the conversation is damaged")
	// ErrTurnOver says that the turn has ended.
	ErrTurnOver = errors.New("turn is over")
	// ErrNotKept says that the bytes of a turn are not kept, or not any more.
	ErrNotKept = errors.New("the bytes of this turn are not kept: it is too old, its agent exchanges none, or recording is off")
	// ErrClosed says that the gateway has stopped.
	ErrClosed = errors.New("gateway closed")
)

// Rejection is a command's refusal, with a reason for programs and a text for people.
type Rejection struct {
	Reason  string
	Message string
	// RetryAfter is when it is worth to try again; 0 says nothing.
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
	ReasonDeleted      = "deleted"         // the conversation is gone
	ReasonTooLarge     = "too_large"       // beyond a limit
	ReasonHeld         = "held"            // a legal hold keeps it
	ReasonDialect      = "unknown_dialect" // no such dialect
	ReasonRateLimited  = "rate_limited"    // too many messages a minute
	ReasonNotRunning   = "not_running"     // the agent was stopped or paused
	ReasonQuota        = "quota"           // a user or tenant uses all that it may
)

func reject(reason, format string, args ...any) *Rejection {
	return &Rejection{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// JournalError translates an error of the journal into the errors of this package. op says what failed.
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

// damaged reports whether an error says that a conversation is damaged in the journal.
func damaged(err error) bool {
	_, ok := errors.AsType[*journal.DamageError](err)
	return ok
}

// ReasonFile is the reason of a rejection, and the code of a part's error, if a named file can't be read.
const ReasonFile = "file_unavailable"
